"""The cosine decay with a certificate.

    lr(t) = min_lr + (max_lr - min_lr) / 2 (1 + cos(pi min(t, T) / T)),   T = decay_steps

t and T are whole numbers, T >= 1; min_lr and max_lr are taken exactly, as binary64; t / T is the
rational number and pi the real one. Evaluated as min_lr + (max_lr - min_lr) cos^2(pi t / (2 T)),
which does not cancel at the end as 1 + cos does. Source of the schedule: Loshchilov, Hutter (2017),
"SGDR: stochastic gradient descent with warm restarts", arXiv:1608.03983, without restarts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify
from refkernels.schedule_ref.schedules import Schedule, rate, whole_steps

Steps = npt.NDArray[np.int64]


@with_default_fenv
def cosine_decay(
    step: npt.ArrayLike,
    *,
    min_lr: float,
    max_lr: float,
    decay_steps: int,
    certify: Certify = "enclosure",
) -> Enclosure:
    """lr(t) of every step, to a relative 2^-105 (min_lr >= 0) and as sharp as the question asks.

    step: whole numbers >= 0, any shape; steps beyond decay_steps count as decay_steps.
    Where the value is rational (t / T = 0, 1/3, 1/2, 2/3, 1) the Enclosure is exact. Elsewhere it
    is irrational (unless min_lr = max_lr), never a tie, so that some precision decides it.
    Raises TypeError where steps are not whole numbers, ValueError for a negative step, for
    decay_steps < 1, and unless min_lr <= max_lr are finite.
    """
    steps, min_lr, max_lr, decay_steps = checked(step, min_lr, max_lr, decay_steps)
    return rate(steps, Schedule(max_lr, "cosine", decay_steps, min_lr), certify=certify)


@with_default_fenv
def amplification(step: npt.ArrayLike, *, decay_steps: int) -> npt.NDArray[np.float64]:
    """The factor that 1 + cos applies to a relative error of the cosine: |cos| / (1 + cos).

    0 where the cosine is 0, infinite at the end of the schedule, where nothing is left of 1 + cos
    but the cosine's own error. float64, to a few units in the last place. Raises as `cosine_decay`.
    """
    steps, _, _, decay_steps = checked(step, 0.0, 1.0, decay_steps)
    left = decay_steps - np.minimum(steps, decay_steps)
    half = np.sin(np.pi * (left / (2.0 * decay_steps))) ** 2  # (1 + cos) / 2
    with np.errstate(divide="ignore"):
        result: npt.NDArray[np.float64] = np.abs(2.0 * half - 1.0) / (2.0 * half)
    return result


def checked(
    step: npt.ArrayLike, min_lr: float, max_lr: float, decay_steps: int
) -> tuple[Steps, float, float, int]:
    """The arguments: steps as int64, two finite floats in order, and an integer."""
    asked = Schedule(max_lr, "cosine", decay_steps, min_lr)
    return whole_steps(step), asked.min_lr, asked.max_lr, asked.decay_steps
