"""The ladder: the elements that each tier decides, and those that none decides."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels import registry
from refkernels.arithmetic import tiers
from refkernels.ops import TwoStage, refine

F32 = ("rounding", "float32")


def mean_square(xp: Any, x: Any, *, eps: Any) -> Any:
    return (xp.rsqrt(xp.mean(xp.square(x)) + eps),)


def scaled(xp: Any, statistics: Any, x: Any, *, eps: Any) -> Any:
    return x * statistics[0]


def correlation(xp: Any, dy: Any, x: Any, *, eps: Any) -> Any:
    rstd = mean_square(xp, x, eps=eps)[0]
    return rstd, xp.mean(dy * x) * xp.square(rstd)


def slope(xp: Any, statistics: Any, dy: Any, x: Any, *, eps: Any) -> Any:
    rstd, mean = statistics
    return rstd * (dy - x * mean)


NORM = refkernels.oracle(
    TwoStage(mean_square, scaled),
    "x[... n] -> y[... n]",
    "n",
    name="rms_norm",
    backward={"recomputed": TwoStage(correlation, slope)},
    params={"eps": 1e-5},
)


def test_every_tier_answers_what_it_has_to() -> None:
    x = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)
    with tiers.counted() as tally:
        NORM.forward(x, certify=F32)
    assert set(tally) == {"float64"}
    with tiers.counted() as tally:
        NORM.forward(x, certify=("ulp", "float64", 1e-6))
    assert set(tally) == {"double_double"}


def test_zeros_that_cancel_are_decided_exactly() -> None:
    """With one element and no eps y is the sign of x, and its gradient 0: a surd decides it."""
    x = np.array([[3.0], [0.1], [-7e-30]], np.float32)
    dx = NORM.backward(np.ones_like(x), x, eps=0.0, certify=F32)
    assert dx.exact_zero.all()
    x = np.array([[1.0, 2.0, 3.0]], np.float32)
    assert NORM.backward(2 * x, x, eps=0.0, certify=F32).exact_zero.all()
    assert not NORM.backward(2 * x, x, certify=F32).exact_zero.any()


def test_ties_are_decided_exactly() -> None:
    """x of one size: y is the weightless x / |x|; 1 + 2^-24 is a tie of float32."""
    tied = refkernels.oracle(
        lambda xp, x: x * xp.rsqrt(xp.square(x)) + xp.number(2.0**-24), "x[n] -> y[n]"
    )
    y = tied.forward(np.array([3.0, 5.0], np.float32), certify=F32)
    assert np.all(y.radius == 0.0)
    rounded, certified = y.round("float32")
    assert certified.all()
    np.testing.assert_array_equal(rounded, 1.0)


def test_the_sign_of_a_softmax_too_small_for_binary64_needs_no_more_bits() -> None:
    """A score that a mask lowers by 10,000 gives a positive number, whose float32 is +0."""
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    x[:, 3:] -= 1e4
    softmax = registry.ops()["softmax"]
    with tiers.counted() as tally:
        y = softmax.forward(x=x, certify=F32)["y"]
        dx = softmax.backward(dy=x, x=x, certify=F32)["dx"]
    assert set(tally) == {"float64"}
    assert not np.signbit(y.round("float32")[0][:, 3:]).any()
    exact = softmax.backward(dy=x, x=x, certify=("ulp", "float64", 1e-6))["dx"]
    np.testing.assert_array_equal(np.sign(dx.hi), np.sign(exact.hi))


def test_what_is_not_defined_is_the_definition_s_nan() -> None:
    y = NORM.forward(np.array([[0.0, 0.0], [3.0, 4.0]], np.float32), eps=0.0, certify=F32)
    assert np.isnan(np.asarray(y)[0]).all()
    assert np.isfinite(np.asarray(y)[1]).all()


@pytest.mark.parametrize(("name", "ends"), [("tanh", (-1, 1)), ("erf", (-1, 1)), ("erfc", (2, 0))])
def test_a_function_that_is_never_large_has_limits_and_is_of_nan_nan(name: str, ends: Any) -> None:
    """A ball of radius 2 would let any answer pass."""
    oracle = refkernels.oracle(lambda xp, x: xp.function(name, x), "x[...] -> y[...]")
    x = np.array([np.nan, -np.inf, np.inf, 0.0], np.float32)
    right = np.array([np.nan, *ends, name == "erfc"], np.float32)
    for certify in ("enclosure", F32):
        y = oracle.forward(x, certify=certify)
        np.testing.assert_array_equal(np.asarray(y), right)
        assert not np.any(y.radius)
    refkernels.testing.assert_kernel(oracle.op, {"x": x}, right)
    with pytest.raises(AssertionError, match="special_value_mismatch"):
        refkernels.testing.assert_kernel(oracle.op, {"x": x}, np.nan_to_num(right, nan=0.5))


def test_what_overflows_float64_is_decided_beyond_it() -> None:
    def power(xp: Any, x: Any) -> Any:
        return xp.exp(xp.square(x)) * xp.exp(-xp.square(x))

    with tiers.counted() as tally:
        y = refkernels.oracle(power, "x[...] -> y[...]").forward(np.array([40.0, 1e4]), certify=F32)
    assert set(tally) == {"exact"}
    np.testing.assert_array_equal(y.round("float32")[0], 1.0)


def test_no_precision_is_spent_on_what_an_enclosure_cannot_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its radius is 2^-107 of the value or so, whatever is asked."""
    monkeypatch.setattr(refine, "PRECISIONS", (128, 256, 512, 1 << 40))
    x = np.random.default_rng(1).standard_normal((4, 5))
    y = NORM.forward(x, certify=("ulp", "float64", 2.0**-300))
    assert np.all(y.radius <= 2.0**-104 * np.abs(np.asarray(y)))


def test_an_answer_stops_at_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is as wide then as it was, never wrong."""
    x = np.random.default_rng(1).standard_normal((4, 5))
    sharp = ("ulp", "float64", 2.0**-300)
    monkeypatch.setattr(refine, "BUDGET", 10)
    wide = NORM.forward(x, certify=sharp)
    monkeypatch.undo()
    assert np.all(wide.radius > NORM.forward(x, certify=sharp).radius)
    assert np.all(wide.radius < 1e-28)


BEYOND = np.array([[1e300, 1e300], [2.0, 2.0**31], [0.5, -(2.0**31)], [-3.0, 2.0**31]])


def powers(xp: Any, x: Any) -> Any:
    """A function of huge powers, whose value has no scale."""
    size = xp.real_power(abs(xp.take(x, np.array([0]), -1)), xp.take(x, np.array([1]), -1))
    return xp.where(xp.take(x, np.array([0]), -1) < 0, -size, size)


@pytest.mark.parametrize("certify", ["enclosure", F32, ("ulp", "float64", 1.0)])
@pytest.mark.parametrize("beside", [None, [np.inf, 1.0], [0.0, -1.0]])
def test_what_no_scale_reaches_is_wide_not_infinite(certify: Any, beside: Any) -> None:
    """Finite numbers beyond 2^(2^30) are no infinities, and those below 2^-(2^30) are no zeros,
    whatever stands beside them."""
    rows = BEYOND if beside is None else np.append(BEYOND, [beside], axis=0)
    inverse = refkernels.oracle(lambda xp, x: 1 / powers(xp, x), "x[... n] -> y[...]", "n")
    huge = refkernels.oracle(powers, "x[... n] -> y[...]", "n").forward(rows, certify=certify)
    assert not np.isfinite(np.asarray(huge[:4])).any()
    assert np.all(huge.radius[:4] == np.inf)
    np.testing.assert_array_equal(np.sign(huge.hi[:4]), [1, 1, 1, -1])
    tiny = inverse.forward(rows, certify=certify)
    np.testing.assert_array_equal(tiny.scale[:4], -(2**30))
    np.testing.assert_array_equal(tiny.hi[:4], [0.5, 0.5, 0.5, -0.5])
    np.testing.assert_array_equal(tiny.radius[:4], 0.5)
    if beside is not None:
        assert np.all(huge.hi[4] == np.inf)
        assert np.all(huge.radius[4] == 0.0)
        assert tiny.exact_zero[4] == np.isinf(rows[4]).any()


def test_a_finite_number_beside_an_infinity_is_no_infinity() -> None:
    """An overflow of binary64 decides nothing: 1e600 in a row without infinities, and in one that
    has them, where another element is infinite."""
    square = refkernels.oracle(lambda xp, x: xp.square(x), "x[... n] -> y[... n]", "n")
    y = square.forward(np.array([[1e300, 1.0], [np.inf, 2.0], [1e200, np.inf]]), certify=F32)
    lower, upper = y.lower_upper((0, 0))
    assert lower <= Fraction(1e300) ** 2 <= upper
    assert y.hi[1, 0] == np.inf
    assert y.radius[1, 0] == 0.0
    assert not (np.isinf(y.hi[2, 0]) and y.radius[2, 0] == 0.0)
    assert y.contains((2, 0), Fraction(1e200) ** 2)


def test_a_number_beside_an_infinity_that_is_tiny_is_no_zero() -> None:
    """e^-(10^400): of finite numbers, in a row that has an infinity; e^-inf is a zero."""
    decay = refkernels.oracle(lambda xp, x: xp.exp(-xp.square(x)), "x[... n] -> y[... n]", "n")
    y = decay.forward(np.array([[1e200, np.inf, 1.0]]), certify="enclosure")
    np.testing.assert_array_equal(y.exact_zero, [[False, True, False]])
    assert y.radius[0, 0] > 0.0
