"""Activations and their gradients compared with their definitions in mpmath; limits; jumps."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

import refkernels
from refkernels import activation_ref
from refkernels.activation_ref import OPS
from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.op import DTYPES

BY_NAME = {op.name: op for op in OPS}
SCALE = "1.0507009873554804934193349852946", "1.6732632423543772848170429916717"


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def mish(x: Any) -> tuple[Any, Any]:
    t = mpmath.tanh(mpmath.log1p(mpmath.exp(x)))
    return x * t, t + x * sigmoid(x) * (1 - t**2)


def elu(x: Any, alpha: Any = 1, scale: Any = 1) -> tuple[Any, Any]:
    if x > 0:
        return scale * x, scale
    return scale * alpha * mpmath.expm1(x), scale * alpha * mpmath.exp(x)


BY_HAND: dict[str, Any] = {
    "mish": mish,
    "hardsigmoid": lambda x: (min(max(x + 3, 0), 6) / 6, mpmath.mpf(abs(x) < 3) / 6),
    "elu": elu,
    "selu": lambda x: elu(x, mpmath.mpf(SCALE[1]), mpmath.mpf(SCALE[0])),
    "softsign": lambda x: (x / (1 + abs(x)), 1 / (1 + abs(x)) ** 2),
    "log_sigmoid": lambda x: (-mpmath.log1p(mpmath.exp(-x)), sigmoid(-x)),
}


def holds(enclosure: Enclosure, place: tuple[int, ...], z: Any) -> bool:
    hi, lo, radius = (
        mpmath.mpf(float(part[place])) for part in (enclosure.hi, enclosure.lo, enclosure.radius)
    )
    unit = mpmath.mpf(2) ** int(enclosure.scale[place])
    return bool(abs(z - (hi + lo) * unit) <= radius * unit + abs(z) * mpmath.mpf(2) ** -200)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BY_HAND)
def test_every_case_follows_the_definition(name: str, dtype: str) -> None:
    compared = 0
    with mpmath.workprec(700):
        for case in BY_NAME[name].cases():
            inputs, params = case.build(dtype)
            wide = inputs["x"].astype(np.float64)
            chosen = np.flatnonzero(np.isfinite(wide) & (np.abs(wide) < 80))[::37]
            dy, x = inputs["dy"][chosen], inputs["x"][chosen]
            y = getattr(activation_ref, name)(x, certify=("rounding", dtype), **params)
            dx = getattr(activation_ref, f"{name}_backward")(dy, x, **params)
            for i in range(x.size):
                arguments = [mpmath.mpf(param) for param in params.values()]
                value, slope = BY_HAND[name](mpmath.mpf(float(x[i])), *arguments)
                assert holds(y, (i,), value)
                assert holds(dx, (i,), slope * mpmath.mpf(float(dy[i])))
            assert y.round(dtype)[1].all()
            compared += x.size
    assert compared > 100


def test_swiglu_follows_the_definition() -> None:
    rng = np.random.default_rng(1)
    dy, a, b = rng.standard_normal((3, 50)).astype(np.float32)
    y = activation_ref.swiglu(a, b)
    da, db = activation_ref.swiglu_backward(dy, a, b)
    with mpmath.workprec(300):
        for i in range(50):
            g, p, q = (mpmath.mpf(float(array[i])) for array in (dy, a, b))
            assert holds(y, (i,), p * sigmoid(p) * q)
            assert holds(da, (i,), g * q * sigmoid(p) * (1 + p * sigmoid(-p)))
            assert holds(db, (i,), g * p * sigmoid(p))
    with pytest.raises(ValueError, match="must be equal"):
        activation_ref.swiglu(a, b[:1])


def test_infinities_have_limits_and_nan_stays() -> None:
    x, ones = np.array([np.inf, -np.inf, np.nan]), np.ones(3)
    limits: dict[str, Any] = {
        "mish": ([np.inf, -0.0], [1, 0]),
        "hardsigmoid": ([1, 0], [0, 0]),
        "elu": ([np.inf, -1], [1, 0]),
        "selu": ([np.inf, -1.7580993408473768], [1.0507009873554805, 0]),
        "softsign": ([1, -1], [0, 0]),
        "log_sigmoid": ([0, -np.inf], [0, 1]),
    }
    for name, (values, slopes) in limits.items():
        y = getattr(activation_ref, name)(x).round(formats.BINARY64)[0]
        dx = getattr(activation_ref, f"{name}_backward")(ones, x).round(formats.BINARY64)[0]
        np.testing.assert_array_equal(y, [*values, np.nan], name)
        np.testing.assert_allclose(dx, [*slopes, np.nan], rtol=0, atol=1e-300, err_msg=name)


@pytest.mark.parametrize(("name", "at"), [("hardsigmoid", 3.0), ("elu", 0.0), ("selu", 0.0)])
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
