"""Captured training runs: read back, judged against the oracles, and held against each other.

run          what `refkernels.capture` recorded (docs/capture.md)
differences  what differs before any number: data, weights, hyper-parameters, schedule
local        every captured layer and update judged on its own inputs
clipping     what became of the gradients on their way to the update
curves       the losses beside rounding-only runs
metric       SQuAD's scores, and whether two differ by more than sampling
verdict      what can be concluded
align        all of it
"""

from refkernels.alignment.align import Alignment, align
from refkernels.alignment.run import CaptureError, Run

__all__ = ["Alignment", "CaptureError", "Run", "align"]
