"""Gradients by formulas that lose digits are named; those by stable formulas are not."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from refkernels import explain

Array = npt.NDArray[np.generic]
WIDE = {np.float32: np.float64, np.float64: np.longdouble}


def from_result(function: Callable[[Array], Array], slope: Callable[[Array], Array]) -> object:
    """dy times a slope that is computed from the rounded result."""
    return lambda dy, x: dy * slope(function(x.astype(WIDE[x.dtype.type])).astype(x.dtype))


def gaussian(dy: Array, x: Array) -> Array:
    return dy * (x.dtype.type(2 / math.sqrt(math.pi)) * np.exp(-(x * x)))


KERNELS = {
    "sigmoid": (
        from_result(lambda x: 1 / (1 + np.exp(-x)), lambda y: (1 - y) * y), "slope_from_result", 12,
    ),
    "tanh": (from_result(np.tanh, lambda y: 1 - y * y), "slope_from_result", 6),
    "expm1": (from_result(np.expm1, lambda y: y + 1), "slope_from_result", 12),
    "asin": (lambda dy, x: dy / np.sqrt(1 - x * x), "one_minus_square", 1),
    "acos": (lambda dy, x: -(dy / np.sqrt(1 - x * x)), "one_minus_square", 1),
    "erf": (gaussian, "rounded_exponent", 8),
    "erfc": (lambda dy, x: -gaussian(dy, x), "rounded_exponent", 8),
    "rsqrt": (lambda dy, x: dy * (x.dtype.type(-0.5) / np.sqrt(x * x * x)), "cubed_argument", 0),
}  # fmt: skip
STABLE = {
    "sigmoid": lambda dy, x: dy / ((1 + np.exp(-x)) * (1 + np.exp(x))),
    "expm1": lambda dy, x: dy * np.exp(x),
    "asin": lambda dy, x: dy / np.sqrt((1 - x) * (1 + x)),
    "rsqrt": lambda dy, x: dy * x.dtype.type(-0.5) / x / np.sqrt(x),
}


def question(dtype: type, size: float) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 2000)
    if size == 0:  # positive numbers of all sizes
        x = np.exp(x * 0.9 * math.log(np.finfo(dtype).max))
    else:
        x = np.copysign(1 - (1 - np.abs(x)) ** 4, x) if size == 1 else size * x
    return rng.normal(0, 1, 2000).astype(dtype), x.astype(dtype)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("op", KERNELS)
def test_a_formula_that_loses_digits_is_named(op: str, dtype: type) -> None:
    kernel, cause, size = KERNELS[op]
    dy, x = question(dtype, size)
    with np.errstate(all="ignore"):
        dx = kernel(dy, x)
    found = explain(op, {"dy": dy, "x": x}, {"dx": dx}, direction="backward")
    assert "unusual" in found.flags or found.verdict == "exceeds_bound"
    assert found.cause == cause


@pytest.mark.parametrize("op", STABLE)
def test_a_stable_formula_is_not_blamed(op: str) -> None:
    dy, x = question(np.float32, KERNELS[op][2])
    with np.errstate(all="ignore"):
        dx = STABLE[op](dy, x)
    found = explain(op, {"dy": dy, "x": x}, {"dx": dx}, direction="backward")
    assert found.cause in (None, "summation_order")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_product_before_the_quotient_of_hypots_gradient_is_named(dtype: type) -> None:
    rng = np.random.default_rng(1)
    lowest = math.log(float(np.finfo(dtype).tiny))
    a, b, dy = (
        (np.exp(lowest * rng.uniform(0, 0.9, 1000)) * rng.choice([-1, 1], 1000)).astype(dtype)
        for _ in range(3)
    )
    wide = np.longdouble if dtype == np.float64 else np.float64
    y = np.hypot(a.astype(wide), b.astype(wide)).astype(dtype)
    inputs = {"dy": dy, "a": a, "b": b}
    early = explain("hypot", inputs, {"da": dy * a / y, "db": dy * b / y}, direction="backward")
    assert (early.cause, early.confidence) == ("product_before_quotient", "proven")
    late = explain("hypot", inputs, {"da": dy * (a / y), "db": dy * (b / y)}, direction="backward")
    assert late.cause in (None, "summation_order")
