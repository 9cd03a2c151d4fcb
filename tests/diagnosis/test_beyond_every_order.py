"""No order of summation leads beyond a bound that holds for all of them."""

from typing import Any

import numpy as np
import pytest

from refkernels import explain

EPS = 1e-5
WIDE, HALF = np.float64, np.float16


def question(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    arrays = {
        "x": rng.normal(size=(40, n)),
        "weight": rng.normal(size=n),
        "bias": rng.normal(size=n),
    }
    return {name: array.astype(HALF) for name, array in arrays.items()}


def stepwise(x: Any, weight: Any, bias: Any) -> Any:
    """Statistics of MindSpore's, then each step in float16."""
    rows = x.astype(WIDE)
    mean, square = np.add.accumulate(rows, 1)[:, -1], np.add.accumulate(rows * rows, 1)[:, -1]
    mean, square = mean / x.shape[1], square / x.shape[1]
    var = np.maximum(square - mean * mean, 0).astype(np.float32)
    root = np.sqrt(var + np.float32(EPS)).astype(HALF)[:, None]
    return (x - mean.astype(HALF)[:, None]) / root * weight + bias


@pytest.mark.parametrize("n", [17, 257])
def test_a_layernorm_in_float16_steps_rounds_its_intermediate_results(n: int) -> None:
    inputs = question(n)
    explanation = explain("layernorm", inputs, stepwise(**inputs), {"eps": EPS})
    assert explanation.verdict == "exceeds_bound"
    assert (explanation.cause, explanation.confidence) == ("narrow_intermediates", "proven")
    assert explanation.candidates[0].details["format"] == "float16"


def test_what_is_computed_in_float32_and_rounded_once_is_not_blamed() -> None:
    inputs = question(17)
    single = {name: array.astype(np.float32) for name, array in inputs.items()}
    y = (single["x"] - single["x"].mean(1, keepdims=True)) / np.sqrt(
        single["x"].var(1, keepdims=True) + np.float32(EPS)
    )
    answer = (y * single["weight"] + single["bias"]).astype(HALF)
    explanation = explain("layernorm", inputs, answer, {"eps": EPS})
    assert explanation.verdict in ("rounding", "correctly_rounded")
    assert explanation.cause in (None, "summation_order")
