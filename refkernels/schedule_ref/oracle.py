"""The cosine decay with a certificate.

    lr(t) = min_lr + (max_lr - min_lr) / 2 (1 + cos(pi min(t, T) / T)),   T = decay_steps

t and T are whole numbers, T >= 1; min_lr and max_lr are taken exactly, as binary64; t / T is the
rational number and pi the real one. Evaluated as min_lr + (max_lr - min_lr) cos^2(pi t / (2 T)),
which does not cancel at the end as 1 + cos does. Source of the schedule: Loshchilov, Hutter (2017),
"SGDR: stochastic gradient descent with warm restarts", arXiv:1608.03983, without restarts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import tiers
from refkernels.arithmetic.arrays import as_whole_numbers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import from_integer_balls
from refkernels.arithmetic.ladder import Indices, refine
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify, Question
from refkernels.arithmetic.scalars import as_count, as_real
from refkernels.elementwise import balls
from refkernels.elementwise.function import Ball

Steps = npt.NDArray[np.int64]

PRECISIONS = (160, 320, 640, 1280)
# cos^2(pi q / 2) where it is rational for a rational 0 <= q <= 1: the cosine of a rational multiple
# of pi is rational only for 0, ±1/2 and ±1 (Niven 1956, corollary 3.12), so nowhere else.
RATIONAL = {
    Fraction(0): Fraction(1),
    Fraction(1, 3): Fraction(3, 4),
    Fraction(1, 2): Fraction(1, 2),
    Fraction(2, 3): Fraction(1, 4),
    Fraction(1): Fraction(0),
}


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
    question = Question.parse(certify)
    steps, min_lr, max_lr, decay_steps = checked(step, min_lr, max_lr, decay_steps)
    flat = np.minimum(steps.reshape(-1), decay_steps).tolist()
    ends = Fraction(min_lr), Fraction(max_lr)
    rates = _enclose(_balls(flat, decay_steps, ends, PRECISIONS[0]))

    def sharper(left: Indices, precision: int, before: Enclosure) -> Enclosure:
        return _enclose(_balls([flat[i] for i in left], decay_steps, ends, precision))

    left = np.flatnonzero(question.undecided(rates))
    rates = refine(rates, left, PRECISIONS[1:], sharper, question.undecided)
    tiers.answered("exact", len(flat))
    return rates.reshape(steps.shape)


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
    steps = as_whole_numbers(step, "step")
    if steps.size and int(steps.min()) < 0:
        raise ValueError(f"step has the element {int(steps.min())}: a schedule starts at step 0.")
    decay_steps = as_count(decay_steps, "decay_steps")
    min_lr, max_lr = as_real(min_lr, "min_lr"), as_real(max_lr, "max_lr")
    if not (math.isfinite(min_lr) and math.isfinite(max_lr) and min_lr <= max_lr):
        raise ValueError(
            f"min_lr {min_lr!r} and max_lr {max_lr!r} are not a range of learning rates."
        )
    return steps, min_lr, max_lr, decay_steps


def _balls(
    steps: Iterable[int], decay_steps: int, ends: tuple[Fraction, Fraction], precision: int
) -> list[Ball]:
    """A ball of each step in that many bits of working precision, exact where lr is rational."""
    import flint

    low, high = ends
    with flint.ctx.workprec(precision):
        lowest, span = (flint.arb(_fmpq(flint, value)) for value in (low, high - low))
        rational = _rational_steps(decay_steps)
        rates = []
        for step in steps:
            if step in rational or low == high:
                rates.append(_dyadic(low + (high - low) * rational.get(step, 0)))
                continue
            # Near the end the sine of the remaining angle is sharper than 1 + the cosine.
            root = flint.arb.sin_pi_fmpq(flint.fmpq(decay_steps - step, 2 * decay_steps))
            rates.append(balls.of(lowest + span * root * root, 2 * precision))
        return rates


def _rational_steps(decay_steps: int) -> dict[int, Fraction]:
    """cos^2 at the steps where it is rational."""
    places = {decay_steps * part: share for part, share in RATIONAL.items()}
    return {int(step): share for step, share in places.items() if step.denominator == 1}


def _dyadic(value: Fraction) -> Ball:
    """The exact ball: sums of binary64 numbers and their quarters have a power of two below."""
    return value.numerator, 0, 1 - value.denominator.bit_length()


def _fmpq(flint: Any, value: Fraction) -> Any:
    return flint.fmpq(value.numerator, value.denominator)


def _enclose(rates: list[Ball]) -> Enclosure:
    mids, radii, exponents = zip(*rates, strict=True) if rates else ((), (), ())
    return from_integer_balls(mids, radii, exponents, (len(rates),))
