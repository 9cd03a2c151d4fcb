"""Norms that are wrong in two ways at once, or in one whose gradient is not the usual one."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hunting import one_in

from refkernels import explain

Array = npt.NDArray[Any]
RNG = np.random.default_rng(41)
SHAPE = (12, 24)


def deviated(x: Array, eps: Any, ddof: int, outside: bool) -> tuple[Array, Array]:
    """x - mean, and what it is divided by."""
    d = x - x.mean(-1, keepdims=True)
    variance = np.square(d).sum(-1, keepdims=True) / x.dtype.type(x.shape[-1] - ddof)
    return d, np.sqrt(variance) + eps if outside else np.sqrt(variance + eps)


def gradient(
    x: Array, dy: Array, weight: Array, eps: Any, ddof: int, outside: bool, own: bool
) -> Array:
    """`own`: the derivative of this forward pass, not LayerNorm's formula with its rstd."""
    n, t = x.dtype.type(x.shape[-1]), dy * weight
    d, root = deviated(x, eps, ddof, outside)
    through = (t * d).mean(-1, keepdims=True) / np.square(root)
    if own:
        deviation = root - eps if outside else root
        through = through * root / deviation * (n / (n - x.dtype.type(ddof)))
    return (t - t.mean(-1, keepdims=True) - d * through) / root


FAULTS = {
    (1, False): {"unbiased_variance"},
    (0, True): {"eps_outside_sqrt"},
    (1, True): {"unbiased_variance", "eps_outside_sqrt"},
}


def named(explanation: Any) -> set[str]:
    """The causes of the best candidate, in any order."""
    candidate = explanation.candidates[0]
    return {candidate.cause, candidate.details.get("with", candidate.cause)}


@pytest.mark.parametrize(
    ("dtype", "weighted", "own"),
    one_in(7, itertools.product((np.float32, np.float64), (False, True), (False, True))),
)
@pytest.mark.parametrize(("ddof", "outside"), FAULTS)
def test_the_gradient_of_another_deviation_is_proven(
    dtype: Any, weighted: bool, own: bool, ddof: int, outside: bool
) -> None:
    x, dy = (RNG.standard_normal(SHAPE).astype(dtype) for _ in range(2))
    inputs = {"x": x, "dy": dy}
    if weighted:
        inputs["weight"] = RNG.uniform(0.5, 2.0, SHAPE[-1]).astype(dtype)
    weight = inputs.get("weight", np.ones(SHAPE[-1], dtype))
    dx = gradient(x, dy, weight, dtype(0.05), ddof, outside, own)
    explanation = explain("layernorm", inputs, {"dx": dx}, {"eps": float(dtype(0.05))}, "backward")
    assert explanation.confidence == "proven"
    assert named(explanation) == FAULTS[ddof, outside]
    details = explanation.candidates[0].details
    divisors = (known.get("divisor") for known in (details, details.get("with_details", {})))
    assert not ddof or 23 in divisors


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_torch_std_in_layernorm_is_proven_in_another_order_of_sums(dtype: Any) -> None:
    x = RNG.standard_normal(SHAPE).astype(dtype)
    d, root = deviated(x, dtype(0.05), 1, True)
    explanation = explain("layernorm", {"x": x}, {"y": d / root}, {"eps": float(dtype(0.05))})
    assert (named(explanation), explanation.confidence) == (FAULTS[1, True], "proven")
    assert "n - 1 instead of n" in explanation.summary
    assert "to the standard deviation instead of to the variance" in explanation.summary


@pytest.mark.parametrize("op", ["layernorm", "rms_norm"])
def test_another_weight_beside_another_eps_is_proven(op: str) -> None:
    """A norm that is ported from Gemma: 1 + weight, and eps 1e-6 where 1e-5 is asked for."""
    x = (0.01 * RNG.standard_normal(SHAPE)).astype(np.float32)
    weight = RNG.uniform(-0.5, 0.5, SHAPE[-1]).astype(np.float32)
    d = x - x.mean(-1, keepdims=True) if op == "layernorm" else x
    root = np.sqrt(np.square(d).mean(-1, keepdims=True) + np.float32(1e-6))
    y = d / root * (1 + weight)
    explanation = explain(op, {"x": x, "weight": weight}, {"y": y}, {"eps": 1e-5})
    assert (explanation.cause, explanation.confidence) == ("weight_plus_one", "proven")
    assert explanation.candidates[0].details["with_details"]["eps"] == 1e-6
    assert "1e-06" in explanation.summary


@pytest.mark.parametrize("op", ["layernorm", "group_norm", "instance_norm"])
def test_one_pass_whose_squares_are_rounded_is_proven_in_every_norm(op: str) -> None:
    bfloat16, seed = np.dtype(ml_dtypes.bfloat16), 7 if op == "group_norm" else 5
    x = (np.random.default_rng(seed).standard_normal((4, 6, 65)) + 2).astype(bfloat16)
    rows = x.astype(np.float32).reshape((4, 3, 130) if op == "group_norm" else x.shape)
    mean = rows.mean(axis=-1, keepdims=True)
    squares = (rows * rows).astype(bfloat16).astype(np.float32)
    variance = squares.mean(axis=-1, keepdims=True) - mean * mean
    y = ((rows - mean) / np.sqrt(variance + np.float32(1e-5))).reshape(x.shape).astype(bfloat16)
    params = {"eps": 1e-5, **({"num_groups": 3} if op == "group_norm" else {})}
    found = explain(op, {"x": x}, {"y": y}, params)
    assert (found.cause, found.confidence) == ("intermediate_rounded", "proven")
    assert found.candidates[0].details == {"intermediate": "x²", "format": "bfloat16"}
