"""The cosine decay where it is rational, and the ways frameworks write it."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refkernels import schedule_ref

PI = np.float32(np.pi)
QUESTION: dict[str, Any] = {"min_lr": 0.0, "max_lr": 1e-5, "decay_steps": 1000}
ALL = np.arange(1001)


def cosine_off_by(ulp: int) -> Any:
    """At pi. Ascend's is recorded: -1.000004, off by 34."""
    return lambda x: np.where(x == PI, np.float32(-1 - ulp * 2.0**-23), np.cos(x))


def test_rational_values_are_exact() -> None:
    low, high = 1e-6, 0.1
    enclosure = schedule_ref.cosine_decay(
        [0, 2, 3, 4, 6, 7, 600], min_lr=low, max_lr=high, decay_steps=6
    )
    a, b = Fraction(low), Fraction(high)
    shares = [Fraction(1), Fraction(3, 4), Fraction(1, 2), Fraction(1, 4), 0, 0, 0]
    for index, share in enumerate(shares):
        assert enclosure.contains(index, a + (b - a) * share)
        assert enclosure.radius[index] <= 2.0**-105 * enclosure.hi[index]
    assert (enclosure.hi[0], enclosure.hi[4]) == (high, low)


@pytest.mark.parametrize("format", ["float32", "float64"])
def test_every_rounding_can_be_certified_and_keeps_the_invariants(format: str) -> None:
    enclosure = schedule_ref.cosine_decay(ALL, **QUESTION, certify=("rounding", format))
    rates, certified = enclosure.round(format)
    assert certified.all()
    examined = schedule_ref.examine(rates, ALL, **QUESTION)
    assert examined.holds
    assert examined.max_ulp is not None
    assert examined.max_ulp <= 0.5


@pytest.mark.parametrize("format", ["float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1e-5), (1e-7, 0.3), (0.0, 1.0)])
def test_the_formula_keeps_to_its_bound(format: str, low: float, high: float) -> None:
    question: dict[str, Any] = {"min_lr": low, "max_lr": high, "decay_steps": 997}
    steps = np.arange(998)
    exact = np.asarray(schedule_ref.cosine_decay(steps, **question))
    error = 4 * float(np.finfo(format).eps)  # NumPy's cosine is good to 4 ulp
    bound = schedule_ref.formula_bound(steps, **question, format=format, cosine_error=error)
    rates = schedule_ref.formula(steps, **question, format=format)
    assert np.all(np.abs(rates.astype(np.float64) - exact) <= bound)


@pytest.mark.parametrize("error", [-1e-7, float("nan"), float("inf")])
def test_an_error_is_a_number_of_at_least_0_and_a_format_one_of_the_formula(error: float) -> None:
    with pytest.raises(ValueError, match=r"cosine_error is .* at least 0"):
        schedule_ref.formula_bound(ALL, **QUESTION, cosine_error=error)
    with pytest.raises(ValueError, match="float32 or float64"):
        schedule_ref.formula_bound(ALL, **QUESTION, format="bfloat16", cosine_error=1e-7)


def test_the_recorded_cosine_makes_the_last_rate_negative_and_clipping_cures_it() -> None:
    """As do two ulp, which every vendor permits."""
    rates = schedule_ref.formula(ALL, **QUESTION, cosine=cosine_off_by(34))
    examined = schedule_ref.examine(rates, ALL, **QUESTION)
    counted = examined.holds, examined.below, examined.negative, examined.increases
    assert (*counted, f"{examined.last:.3g}") == (False, 1, 1, 0, "-2.03e-11")
    assert float(rates[-1]) == pytest.approx(-34 * 2.0**-23 * 5e-6, rel=1e-6)
    rates = schedule_ref.formula(ALL, **QUESTION, cosine=cosine_off_by(2))
    assert schedule_ref.examine(rates, ALL, **QUESTION).negative == 1
    rates = schedule_ref.clipped(ALL, **QUESTION, cosine=cosine_off_by(34))
    examined = schedule_ref.examine(rates, ALL, **QUESTION)
    assert (examined.below, examined.negative, examined.last) == (0, 0, 0.0)


def test_the_sine_cures_the_sign_and_leaves_a_rate_that_should_be_zero() -> None:
    """The thread's sine of 3 pi / 2 on Ascend is -0.9999996."""

    def sine(x: np.ndarray) -> np.ndarray:
        return np.where(x == PI * np.float32(1.5), np.float32(-0.9999996), np.sin(x))

    rates = schedule_ref.through_sine(ALL, **QUESTION, sine=sine)
    examined = schedule_ref.examine(rates, ALL, **QUESTION)
    assert examined.negative == 0
    assert 0 < examined.last < 1e-11


def test_the_amplification_is_that_of_one_plus_cosine() -> None:
    factors = schedule_ref.amplification([0, 1, 2, 3], decay_steps=3)
    assert factors[:3] == pytest.approx([0.5, 1 / 3, 1.0])
    assert math.isinf(factors[3])


def test_rates_out_of_order_are_counted() -> None:
    question: dict[str, Any] = {"min_lr": 0.0, "max_lr": 1.0, "decay_steps": 4}
    exact = np.asarray(schedule_ref.cosine_decay(np.arange(5), **question))
    swapped = exact[[0, 2, 1, 3, 4]] + np.array([0.5, 0, 0, 0, 0])
    examined = schedule_ref.examine(swapped, np.arange(5), **question)
    assert (examined.above, examined.below, examined.increases, examined.holds) == (1, 0, 1, False)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"step": [0.5]}, TypeError, "whole numbers"),
        ({"step": [-1]}, ValueError, "starts at step 0"),
        ({"decay_steps": 0}, ValueError, "at least 1"),
        ({"decay_steps": 2.5}, TypeError, "must be an integer"),
        ({"decay_steps": 2**63}, ValueError, "less than 2"),
        ({"min_lr": "0"}, TypeError, "real number"),
        ({"step": [2**64 - 1]}, ValueError, "int64"),
        ({"min_lr": 1.0}, ValueError, "min_lr 1.0 is more than max_lr"),
        ({"max_lr": math.inf}, ValueError, "max_lr is inf"),
    ],
)
def test_wrong_schedules_are_refused(
    change: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        schedule_ref.cosine_decay(**{"step": [0], **QUESTION, **change})


def test_bad_rates_are_refused() -> None:
    with pytest.raises(ValueError, match="one rate a step"):
        schedule_ref.examine(np.zeros(2), [0], **QUESTION)
    with pytest.raises(ValueError, match="NaN"):
        schedule_ref.examine(np.array([np.nan]), [0], **QUESTION)
    with pytest.raises(ValueError, match="float32 or float64"):
        schedule_ref.formula([0], **QUESTION, format="float16")
