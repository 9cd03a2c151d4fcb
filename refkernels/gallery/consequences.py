"""The effect of an operator's error on the learning-rate schedule that uses it.

The schedule is the cosine decay, with a device's recorded cosine at pi, with one that is 2 ulp off,
and with the thread's two cures. Only the value at pi is recorded: the other steps use NumPy's
cosine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import schedule_ref
from refkernels.schedule_ref.formulas import Kernel

Array = npt.NDArray[Any]
PI, THREE_HALVES = np.float32(np.pi), np.float32(1.5 * np.pi)
RECORDED_COSINE = np.float32(-(1 + 34 * 2.0**-23))  # -1.000004
RECORDED_SINE = np.float32(-0.9999996)
QUESTION: dict[str, Any] = {"min_lr": 0.0, "max_lr": 1e-5, "decay_steps": 1000}


def with_value(kernel: Kernel, argument: np.float32, value: np.float32) -> Kernel:
    """The kernel, but with this value at one argument."""

    def changed(x: Array) -> Array:
        result: Array = np.where(x == argument, value, kernel(x))
        return result

    return changed


def cosine_decay() -> dict[str, Any]:
    """{"question", "schedules": {name: Examination}, "amplification"} as strict JSON. The
    amplification is that of the last step but one, because that of the last is infinite."""
    steps = np.arange(QUESTION["decay_steps"] + 1)
    recorded = with_value(np.cos, PI, RECORDED_COSINE)
    two_ulp_off = with_value(np.cos, PI, np.float32(-1 - 2.0**-23))
    sine = with_value(np.sin, THREE_HALVES, RECORDED_SINE)
    rates = {
        "cos(pi) = -1": schedule_ref.formula(steps, **QUESTION),
        "cos(pi) = -1.000004, as recorded": schedule_ref.formula(
            steps, **QUESTION, cosine=recorded
        ),
        "cos(pi) = -1 - 2^-23, 2 ulp off": schedule_ref.formula(
            steps, **QUESTION, cosine=two_ulp_off
        ),
        "as recorded, 1 + cos clipped at 0": schedule_ref.clipped(
            steps, **QUESTION, cosine=recorded
        ),
        "sine, sin(3 pi / 2) = -0.9999996 as recorded": schedule_ref.through_sine(
            steps, **QUESTION, sine=sine
        ),
    }
    schedules = {
        name: schedule_ref.examine(rate, steps, **QUESTION).to_dict()
        for name, rate in rates.items()
    }
    last = schedule_ref.amplification(steps[-2:], decay_steps=QUESTION["decay_steps"])
    return {"question": QUESTION, "schedules": schedules, "amplification": float(last[0])}
