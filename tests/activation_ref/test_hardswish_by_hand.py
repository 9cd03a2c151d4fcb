"""hardswish compared with exact fractions: ties, limits and the jump of its slope."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refkernels.activation_ref import OPS, hardswish, hardswish_backward
from refkernels.arithmetic import formats
from refkernels.op import DTYPES

OP = OPS[0]


def by_hand(x: Any) -> tuple[Fraction, Fraction]:
    """y, and its slope."""
    z = Fraction(float(x))
    if abs(z) >= 3:
        return (z, Fraction(1)) if z > 0 else (Fraction(0), Fraction(0))
    return z * (z + 3) / 6, (2 * z + 3) / 6


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_are_ties_and_rounded_to_even(dtype: str) -> None:
    (case,) = (entry for entry in OP.cases() if entry.regime == "ties")
    x = np.unique(case.build(dtype)[0]["x"])
    rounded, certified = hardswish(x, certify=("rounding", dtype)).round(dtype)
    target, ties = formats.get(dtype), 0
    for got, at in zip(rounded.astype(np.float64), x.astype(np.float64), strict=True):
        value = by_hand(at)[0]
        ulp = Fraction(2) ** (int(np.floor(np.log2(float(abs(value))))) - target.p + 1)
        ties += value % ulp == ulp / 2
        assert Fraction(got) % (2 * ulp) == 0
        assert abs(Fraction(got) - value) == ulp / 2
    assert certified.all()
    assert ties == x.size > (2 if dtype == "bfloat16" else 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_either_slope_is_allowed_only_at_the_jump(dtype: str) -> None:
    x = formats.round_to(np.array([-3.0, 3.0, -2.0, 2.0, -3.5, 3.5]), dtype)
    dy = np.ones_like(x)
    bound = OP.bound("backward", {"dy": dy, "x": x}, {}, formats.get(dtype))["dx"]
    exact = np.asarray(hardswish_backward(dy, x))
    np.testing.assert_array_equal(exact[:2], [0.0, 1.0])
    assert np.all(np.abs(np.array([-0.5, 1.5]) - exact[:2]) <= bound[:2])
    assert np.all(bound[2:] < 0.01)


def test_infinities_have_limits_and_nan_stays() -> None:
    x = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(hardswish(x).hi, [np.inf, 0.0, np.nan])
    np.testing.assert_array_equal(hardswish_backward(np.full(3, 2.0), x).hi, [2.0, 0.0, np.nan])
