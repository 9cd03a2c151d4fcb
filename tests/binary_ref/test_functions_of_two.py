"""pow, atan2 and hypot: C's special values; ties; the rule of a library."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels import binary_ref
from refkernels.arithmetic import formats
from refkernels.binary_ref.cases import SPECIALS
from refkernels.contexts import Arb, Ball
from refkernels.contexts.bound import Bound
from refkernels.contexts.bound_value import parts
from refkernels.contexts.rational import Irrational, Rational, values
from refkernels.contexts.working import RoundedArithmetic
from refkernels.op import DTYPES


def c_pow(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.inf
    except ValueError:
        if x:
            return math.nan
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf


IN_C = {"pow": c_pow, "atan2": math.atan2, "hypot": math.hypot}


@pytest.mark.parametrize("name", IN_C)
def test_special_values_are_those_of_c(name: str) -> None:
    a, b = (grid.reshape(-1) for grid in np.meshgrid(SPECIALS, SPECIALS))
    y, _ = getattr(binary_ref, name)(a, b, certify=("rounding", "float64")).round("float64")
    expected = [IN_C[name](x, z) for x, z in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_allclose(y, expected, rtol=2.0**-50, atol=0)
    np.testing.assert_array_equal(np.signbit(y)[y == 0.0], np.signbit(expected)[y == 0.0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_and_roots_that_are_rational_are_known(dtype: str) -> None:
    """x = m 2^e has (2 p - 1)-bit squares, and perfect squares have roots: ties among them."""
    rng, p = np.random.default_rng(3), formats.get(dtype).p
    m = (2 * rng.integers(2 ** (p // 2 - 1), 2 ** (p // 2), 300) + 1).astype(np.float64)
    x = formats.round_to(m, dtype)
    y, certified = binary_ref.pow(
        x, formats.round_to(np.full(x.size, 2.0), dtype), certify=("rounding", dtype)
    ).round(dtype)
    ties = 0
    for got, root in zip(y.astype(np.float64), x.astype(np.float64), strict=True):
        exact = Fraction(root) ** 2
        ulp = Fraction(2) ** (exact.numerator.bit_length() - p)
        ties += exact % ulp == ulp / 2
        assert abs(Fraction(got) - exact) <= ulp / 2
    assert certified.all()
    assert ties > 10 or p % 2 == 0
    back = binary_ref.pow(np.square(m), np.full(m.size, 0.5), certify=("rounding", "float64"))
    np.testing.assert_array_equal(back.round("float64")[0], m)


def test_real_powers_of_fractions_are_fractions_or_refused() -> None:
    xp = Rational()

    def power(x: Any, y: Any) -> Any:
        return values(xp.real_power(xp.number(Fraction(x)), xp.number(Fraction(y))))[0]

    assert power("9/4", "3/2") == Fraction(27, 8)
    assert power("81", "-1/4") == Fraction(1, 3)
    assert power(1, Fraction(1, 2**60)) == 1
    for x, y in ((2, "1/2"), (8, "1/3"), (3, "1/4"), (-4, 2), (3, 10**9)):
        with pytest.raises(Irrational):
            power(x, y)


def test_a_library_s_function_is_within_its_limit_of_exact_inputs_alone() -> None:
    def product(xp: Any, a: Any, b: Any) -> Any:
        return a * b

    x = np.array([1.5, 3e38, 1e-40], np.float32)
    bound = Bound("float32")
    exact = parts(bound.library(product, 3, (bound.array(x), bound.array(x[:1]))))
    ulp = np.array([2.0**-22, np.inf, 2.0**-149])
    assert np.all(exact.error >= 3 * np.array([2.0**-22, 2.0**105, 2.0**-149]) / 2)
    assert np.all(exact.error[[0, 2]] <= 3 * ulp[[0, 2]] * 1.7)
    assert np.isinf(exact.error[1])  # 4.5e38
    third = bound.array(x) / 3
    assert np.isinf(parts(bound.library(product, 3, (third, bound.array(x)))).error).all()
    for xp in (Ball(), Arb(), RoundedArithmetic("float32")):
        answer = xp.library(product, 3, (xp.array(x[:1]), xp.array(x[:1])))
        assert answer.shape == (1,)


def test_the_slope_of_a_power_of_minus_infinity_is_that_of_its_definition() -> None:
    """dx = dy e x^(e - 1), by C's powers; no slope of the exponent is left there."""
    e = np.array([-0.5, 0.5, 1.5, 3.0, -1.0])
    gradients = binary_ref.pow_backward(np.ones(5), np.full(5, -np.inf), e)
    dx = np.asarray(gradients.dx)
    np.testing.assert_array_equal(dx, [-0.0, 0.0, np.inf, np.inf, -0.0])
    np.testing.assert_array_equal(np.signbit(dx), [True, False, False, False, True])
    assert np.isnan(np.asarray(gradients.dexponent)).all()


def test_slopes_of_powers_without_a_rule_are_named() -> None:
    """NaN at 0^0; and 0 for the exponent of what is not above 0, NaN or not."""
    x, e = (part.reshape(-1) for part in np.meshgrid([0.0, -0.0, 2.0, -2.0, 0.5], [0.0, 1.0, 3.0]))
    rng = np.random.default_rng(8)
    inputs = {"dy": rng.standard_normal(15), "x": x, "exponent": e}
    inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    right = binary_ref.pow_backward(*inputs.values())
    dx, de = (np.asarray(part).astype(np.float32) for part in (right.dx, right.dexponent))
    wrong = np.where((x == 0) & (e == 0), np.float32(np.nan), dx)
    explanation = refkernels.explain("pow", inputs, {"dx": wrong}, direction="backward")
    assert explanation.cause == "zero_times_infinity"
    wrong = np.where(x > 0, de, np.float32(0))
    explanation = refkernels.explain("pow", inputs, {"dexponent": wrong}, direction="backward")
    assert explanation.cause == "negative_base_ignored"
    explanation = refkernels.explain(
        "pow", inputs, {"dx": dx, "dexponent": de}, direction="backward"
    )
    assert explanation.cause is None
