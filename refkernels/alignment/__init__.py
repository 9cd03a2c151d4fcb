"""Captured training runs: read back, judged by the oracles, and compared with each other (`align`);
apart from them, two scores (`metric`) and printed learning rates (`rates`)."""

from refkernels.alignment.align import Alignment, align
from refkernels.alignment.run import CaptureError, Run

__all__ = ["Alignment", "CaptureError", "Run", "align"]
