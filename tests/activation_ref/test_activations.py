"""Activations: limits, jumps, ties, and a kernel whose ops store 16 bits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import refkernels
from refkernels import activation_ref
from refkernels.activation_ref import OPS, hardswish
from refkernels.arithmetic import formats
from refkernels.op import DTYPES

BY_NAME = {op.name: op for op in OPS}


def test_infinities_have_limits_and_nan_stays() -> None:
    x, ones = np.array([np.inf, -np.inf, np.nan]), np.ones(3)
    limits: dict[str, Any] = {
        "mish": ([np.inf, -0.0], [1, 0]),
        "hardsigmoid": ([1, 0], [0, 0]),
        "elu": ([np.inf, -1], [1, 0]),
        "selu": ([np.inf, -1.7580993408473768], [1.0507009873554805, 0]),
        "softsign": ([1, -1], [0, 0]),
        "log_sigmoid": ([0, -np.inf], [0, 1]),
        "hardswish": ([np.inf, 0], [1, 0]),
    }
    for name, (values, slopes) in limits.items():
        y = getattr(activation_ref, name)(x).round(formats.BINARY64)[0]
        dx = getattr(activation_ref, f"{name}_backward")(ones, x).round(formats.BINARY64)[0]
        np.testing.assert_array_equal(y, [*values, np.nan], name)
        np.testing.assert_allclose(dx, [*slopes, np.nan], rtol=0, atol=1e-300, err_msg=name)


@pytest.mark.parametrize(
    ("name", "at"), [("hardsigmoid", 3.0), ("hardswish", 3.0), ("elu", 0.0), ("selu", 0.0)]
)
def test_either_slope_is_allowed_only_at_the_jump(name: str, at: float) -> None:
    x, params = np.array([at, at - 0.5, at + 0.5], np.float32), dict(BY_NAME[name].params)
    if name == "elu":
        params["alpha"] = 0.25
    dy = np.ones_like(x)
    bound = BY_NAME[name].bound("backward", {"dy": dy, "x": x}, params, formats.BINARY32)["dx"]
    assert 0.1 < bound[0] < 1
    assert np.all(bound[1:] < 1e-5)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_a_mish_whose_ops_store_16_bits_is_right(dtype: Any) -> None:
    """x * tanh(softplus(x)) of a library, down to where the softplus is subnormal."""
    x = np.linspace(-17.0, 6.0, 5000).astype(dtype)
    wide = x.astype(np.float64)
    softplus = np.logaddexp(0.0, wide).astype(dtype)
    y = x * np.tanh(softplus.astype(np.float64)).astype(dtype)
    explanation = refkernels.explain("mish", {"x": x}, {"y": y})
    assert explanation.verdict == "rounding"
    assert explanation.cause in (None, "summation_order")
    wrong = x * np.tanh(np.maximum(softplus.astype(np.float64), 2e-3)).astype(dtype)
    assert refkernels.explain("mish", {"x": x}, {"y": wrong}).verdict == "exceeds_bound"


OP = OPS[0]


def by_hand(x: Any) -> Fraction:
    z = Fraction(float(x))
    return max(z, Fraction(0)) if abs(z) >= 3 else z * (z + 3) / 6


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_are_ties_and_rounded_to_even(dtype: str) -> None:
    (case,) = (entry for entry in OP.cases() if entry.regime == "ties")
    x = np.unique(case.build(dtype)[0]["x"])
    rounded, certified = hardswish(x, certify=("rounding", dtype)).round(dtype)
    target, ties = formats.get(dtype), 0
    for got, at in zip(rounded.astype(np.float64), x.astype(np.float64), strict=True):
        value = by_hand(at)
        ulp = Fraction(2) ** (int(np.floor(np.log2(float(abs(value))))) - target.p + 1)
        ties += value % ulp == ulp / 2
        assert Fraction(got) % (2 * ulp) == 0
        assert abs(Fraction(got) - value) == ulp / 2
    assert certified.all()
    assert ties == x.size > (2 if dtype == "bfloat16" else 5)
