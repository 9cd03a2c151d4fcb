"""Captured training runs: read back, judged by the oracles, and compared with each other.

run          a run that `refkernels.capture` recorded (docs/capture.md)
differences  what differs before any computation: data, weights, hyper-parameters, schedule
local        every captured layer and update judged on its own inputs
clipping     how gradients change between the backward pass and the update
comparison   where the values of two runs diverge first
curves       the losses beside rounding-only runs
verdict      the conclusion
align        runs all of these
metric       apart from them: SQuAD's scores, and whether two differ by more than sampling
"""

from refkernels.alignment.align import Alignment, align
from refkernels.alignment.run import CaptureError, Run

__all__ = ["Alignment", "CaptureError", "Run", "align"]
