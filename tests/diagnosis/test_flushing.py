"""Intermediate results that are flushed to zero are named; gradual underflow is not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import refkernels

Array = npt.NDArray[Any]
Keep = Callable[[Array], Array]
DTYPES = (np.float32, np.float64)


def flushed(x: Array) -> Array:
    """Subnormal numbers as zeros, with their sign."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def gradual(x: Array) -> Array:
    return x


def numbers(dtype: type, count: int = 400) -> tuple[Array, Array, Array]:
    """dy around 1; a and b of all sizes down to those whose squares underflow."""
    rng = np.random.default_rng(4)
    lowest = np.log(np.finfo(dtype).tiny)
    sizes = np.exp(lowest * rng.uniform(0, 0.62, count))
    signs = rng.choice([-1.0, 1.0], (2, count))
    a, b = signs * sizes * rng.uniform(0.5, 2.0, (2, count))
    return rng.standard_normal(count).astype(dtype), a.astype(dtype), b.astype(dtype)


def slopes_of_atan2(dy: Array, a: Array, b: Array, keep: Keep) -> dict[str, Array]:
    dy, a, b = keep(dy), keep(a), keep(b)
    square = keep(keep(a * a) + keep(b * b))
    return {"da": keep(keep(dy * b) / square), "db": keep(keep(-dy * a) / square)}


@pytest.mark.parametrize("dtype", DTYPES)
def test_squares_that_are_flushed_are_named(dtype: type) -> None:
    dy, a, b = numbers(dtype)
    with np.errstate(all="ignore"):
        outputs = slopes_of_atan2(dy, a, b, flushed)
    assert np.isinf(outputs["da"]).any()
    explanation = refkernels.explain("atan2", {"dy": dy, "a": a, "b": b}, outputs, {}, "backward")
    assert (explanation.cause, explanation.confidence) == ("flush_to_zero", "proven")


@pytest.mark.parametrize("dtype", DTYPES)
def test_squares_that_underflow_gradually_are_not(dtype: type) -> None:
    dy, a, b = numbers(dtype)
    with np.errstate(all="ignore"):
        outputs = slopes_of_atan2(dy, a, b, gradual)
    explanation = refkernels.explain("atan2", {"dy": dy, "a": a, "b": b}, outputs, {}, "backward")
    assert explanation.cause != "flush_to_zero"


def test_infinities_in_other_places_are_not() -> None:
    """Flushed below 16 times the smallest normal number, which no processor does."""
    dy, a, b = numbers(np.float32)
    tiny = 16 * np.finfo(np.float32).tiny
    with np.errstate(all="ignore"):
        outputs = slopes_of_atan2(dy, a, b, lambda x: np.where(np.abs(x) < tiny, 0 * x, x))
    explanation = refkernels.explain("atan2", {"dy": dy, "a": a, "b": b}, outputs, {}, "backward")
    assert (explanation.cause, explanation.confidence) != ("flush_to_zero", "proven")


@pytest.mark.parametrize("keep", [flushed, gradual])
def test_the_slope_of_a_logarithm_of_a_sigmoid_is_named(keep: Keep) -> None:
    """(dy / s) (s (1 - s)), which is NaN where s underflows: 0 / 0."""
    rng = np.random.default_rng(5)
    x, dy = rng.uniform(-120, 60, 500).astype("f4"), rng.standard_normal(500).astype("f4")
    with np.errstate(all="ignore"):
        s = keep(np.float32(1) / (np.float32(1) + keep(np.exp(-x))))
        dx = keep(keep(dy / s) * keep(s * (np.float32(1) - s)))
    assert np.isnan(dx).any()
    explanation = refkernels.explain("log_sigmoid", {"dy": dy, "x": x}, {"dx": dx}, {}, "backward")
    assert (explanation.cause, explanation.confidence) == ("log_of_sigmoid", "proven")


def test_a_zero_in_place_of_nan_or_an_infinity_is_no_flush() -> None:
    x = np.full(400, 1e-310)
    dy = np.random.default_rng(2).standard_normal(400)
    dy[[3, 7, 9]] = np.nan, np.inf, -np.inf
    inputs = {"x": x, "dy": dy}
    dx = refkernels.registry.get("cospi").plain("backward", inputs, {}, "float64")["dx"]
    lost = np.where(np.isfinite(dx), dx, 0.0)
    found = refkernels.explain("cospi", inputs, {"dx": lost}, direction="backward")
    assert found.verdict == "special_value_mismatch"
    assert found.cause != "flush_to_zero"


def test_zeros_beside_subnormal_inputs_that_do_not_matter_are_not_flushed() -> None:
    """The gradient of a cumulative sum does not depend on x."""
    x = np.array([-3.7e-39, 5.7e-39, 3.2e-39], np.float32)
    dy = np.array([0.0, 1.4, 0.8], np.float32)
    zeros = {"dx": np.zeros(3, np.float32)}
    found = refkernels.explain("cumsum", {"x": x, "dy": dy}, zeros, direction="backward")
    assert found.cause != "flush_to_zero"


def test_zeros_of_subnormal_results_prove_no_narrow_inputs() -> None:
    """In float16 these inputs are infinite, and their reciprocals 0, as in much else."""
    x = np.random.default_rng(0).uniform(1e38, 3e38, 64).astype(np.float32)
    found = refkernels.explain("reciprocal", {"x": x}, {"y": np.zeros_like(x)})
    assert (found.cause, found.confidence) == ("flush_to_zero", "proven")
    assert [c.cause for c in found.candidates if c.confidence == "proven"] == ["flush_to_zero"]
