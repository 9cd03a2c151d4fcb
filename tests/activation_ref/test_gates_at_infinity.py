"""silu(-inf) is the limit -0: a / (1 + e^-a) is -inf / inf, NaN, as torch's swiglu is; and 0 where
e^-a overflows."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import refkernels

DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)


def question(dtype: Any) -> dict[str, Any]:
    rng = np.random.default_rng(31)
    a, b = (rng.uniform(-4, 4, 64).astype(dtype) for _ in range(2))
    a[::8] = -np.inf
    return {"a": a, "b": b}


def swiglu(inputs: dict[str, Any], guarded: bool) -> Any:
    a, b = (inputs[name].astype(np.float32) for name in "ab")
    with np.errstate(all="ignore"):
        silu = a / (1 + np.exp(-a))
    if guarded:
        silu = np.where(np.isneginf(a), np.float32(-0.0), silu)
    return (silu * b).astype(inputs["a"].dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_at_an_infinite_gate_is_named(dtype: Any) -> None:
    inputs = question(dtype)
    explanation = refkernels.explain("swiglu", inputs, {"y": swiglu(inputs, False)})
    assert explanation.verdict == "special_value_mismatch"
    assert (explanation.cause, explanation.confidence) == ("nan_of_infinity", "matched")
    assert explanation.candidates[0].details["wrong"] == 8


def test_a_gate_that_is_0_where_its_exponential_is_infinite_is_named() -> None:
    """e^-90 e^100 is a number, e^90 is none in float32: 0 is no rounding of it."""
    rng = np.random.default_rng(32)
    a = rng.uniform(-88, 4, 500).astype(np.float32)
    a[::50] = rng.uniform(-92, -89, 10)
    inputs = {"a": a, "b": (rng.uniform(1, 2, 500) * 1e6).astype(np.float32)}
    explanation = refkernels.explain("swiglu", inputs, {"y": swiglu(inputs, False)})
    assert explanation.verdict == "exceeds_bound"
    assert (explanation.cause, explanation.confidence) == ("early_overflow", "proven")
    assert explanation.candidates[0].details["intermediate"] == "exp(-a)"


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gate_with_its_limit_is_not_blamed(dtype: Any) -> None:
    inputs = question(dtype)
    explanation = refkernels.explain("swiglu", inputs, {"y": swiglu(inputs, True)})
    assert explanation.verdict in ("rounding", "correctly_rounded")
    assert explanation.cause in (None, "summation_order")


def test_a_nan_elsewhere_is_no_overflow_of_the_gate() -> None:
    inputs = question(np.float32)
    y = swiglu(inputs, False)
    y[3] = np.nan
    explanation = refkernels.explain("swiglu", inputs, {"y": y})
    assert explanation.confidence != "proven" or explanation.cause != "early_overflow"
