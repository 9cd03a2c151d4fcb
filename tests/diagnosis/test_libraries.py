"""Kernels whose exponential or logarithm is another library's are named; right ones not blamed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunting import one_in

import refkernels
from refkernels import registry
from refkernels.diagnosis.models.libraries import tabulated

Array = npt.NDArray[Any]


def coarse(x: Array) -> Array:
    """nnacl's exp: 2^n p(x - 0.693147 n), p of degree 5; only the difference by FMA."""
    single = np.float32
    n = np.rint(x / single(0.693147))
    rest = (x.astype(np.float64) - n * np.float64(single(0.693147))).astype(single)
    power = np.full_like(rest, single(1.0 / 120.0))
    for divisor in (24.0, 6.0, 2.0, 1.0, 1.0):
        power = power * rest + single(1.0 / divisor)
    result: Array = power * np.exp2(n)
    return result


def softmax(x: Array, exponential: Any) -> Array:
    e = exponential(x - x.max(-1, keepdims=True))
    result: Array = e / e.sum(-1, keepdims=True, dtype=e.dtype)
    return result


@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_softmax_with_a_coarse_exponential_is_named(seed: int) -> None:
    x = np.random.default_rng(seed).normal(0.0, 1.5, (16, 17)).astype(np.float32)
    found = refkernels.explain("softmax", {"x": x}, {"y": softmax(x, coarse)})
    assert (found.cause, found.confidence) == ("coarse_exponential", "proven")
    right = refkernels.explain("softmax", {"x": x}, {"y": softmax(x, np.exp)})
    assert right.verdict in ("rounding", "correctly_rounded")
    assert right.cause in (None, "summation_order")


def test_swiglu_with_a_coarse_exponential_is_named() -> None:
    a, b = np.random.default_rng(3).uniform(-60.0, 10.0, (2, 2000)).astype(np.float32)
    y = a / (np.float32(1.0) + coarse(-a)) * b
    found = refkernels.explain("swiglu", {"a": a, "b": b}, {"y": y})
    assert (found.cause, found.confidence) == ("coarse_exponential", "proven")


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, -88.723), (np.float64, -709.784)])
def test_a_gradient_whose_exponential_is_clamped_is_named(dtype: Any, least: float) -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1e4, 1e4, (8, 50)).astype(dtype)
    dy = rng.standard_normal(8).astype(dtype)
    y = x.max(-1, keepdims=True)
    y = y + np.log(np.exp(x - y).sum(-1, keepdims=True))
    dx = dy[:, None] * np.exp(np.maximum(x - y, dtype(least)))
    found = refkernels.explain("logsumexp", {"x": x, "dy": dy}, {"dx": dx}, direction="backward")
    assert (found.cause, found.confidence) == ("exponential_clamped", "proven")


def test_another_inexact_exponential_is_not_taken_for_one_of_these() -> None:
    """Taylor's series of degree 6, whose errors are as large, lie elsewhere."""

    def series(x: Array) -> Array:
        n = np.floor(x / np.log(2.0))
        rest = x.astype(np.float64) - n * np.log(2.0)
        power = sum(rest**k / float(np.prod(np.arange(1, k + 1))) for k in range(7))
        result: Array = (power * np.exp2(n)).astype(np.float32)
        return result

    x = np.random.default_rng(5).normal(0.0, 3.0, (32, 40)).astype(np.float32)
    found = refkernels.explain("softmax", {"x": x}, {"y": softmax(x, series)})
    assert found.verdict == "exceeds_bound"
    assert found.cause not in ("coarse_exponential", "exponential_clamped")


@pytest.mark.parametrize("op", ["swiglu", "log_softmax", "dropout"])
@pytest.mark.parametrize("offset", [0.25, 1e6])
def test_an_error_at_an_exact_zero_proves_no_exponential(op: str, offset: float) -> None:
    """In units of the smallest normal number of binary64 it is beyond all numbers."""
    x = np.random.default_rng(4).standard_normal((9, 1 if op == "log_softmax" else 40))
    x[2:5] = 0.0
    inputs: dict[str, Any] = {"x": x}
    params: dict[str, Any] = {}
    if op == "swiglu":
        inputs = {"a": x, "b": x + 1.0}
    if op == "dropout":
        inputs["mask"] = np.ones(x.shape, bool)
        params = {"p": 0.3, "mode": "downscale_in_infer"}
    right = registry.get(op).plain("forward", inputs, params, "float64")["y"]
    found = refkernels.explain(op, inputs, {"y": right + offset}, params)
    assert found.verdict == "exceeds_bound"
    assert found.cause != "exponential_clamped"


def test_a_gradient_that_only_its_zeros_share_with_a_clamped_exponential_is_not_named() -> None:
    """Softmax's gradient is 0 for a constant dy. What rounding leaves there is the model's."""
    rng = np.random.default_rng(6)
    x, dy = rng.uniform(-1e3, 1e3, (12, 9)), rng.standard_normal((12, 9))
    x[0], dy[0] = rng.standard_normal(9), 0.7
    inputs = {"x": x, "dy": dy}
    right = registry.get("softmax").plain("backward", inputs, {}, "float64")["dx"]
    assert right[0].any()
    noise = 1.0 + 0.01 * rng.standard_normal(x.shape)
    noise[0] = 1.0
    found = refkernels.explain("softmax", inputs, {"dx": right * noise}, direction="backward")
    assert found.verdict == "exceeds_bound"
    assert found.cause is None


@pytest.mark.parametrize("op", ["sum", "logsumexp"])
def test_an_exponential_that_is_not_clamped_is_not_named(op: str) -> None:
    """The first answer nearly vanishes: there a right kernel and the model err alike."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((64, 4))
    x[0] = np.log([0.1, 0.2, 0.3, 0.4])
    if op == "sum":
        x[0] = 1.0, 1.5 * 2.0**-53, -1.0, -1.5 * 2.0**-53 * (1.0 + 1e-7)
    params = {"axis": -1} if op == "sum" else {}
    right = registry.get(op).plain("forward", {"x": x}, params, "float64")["y"]
    y = right * (1.0 + 0.01 * rng.standard_normal(right.shape))
    found = refkernels.explain(op, {"x": x}, {"y": y}, params)
    assert found.verdict == "exceeds_bound"
    assert found.cause is None


MEASURED = {  # -log_softmax of so many equal logits, OneFlow 0.9.0: log of the whole number
    1: -1.4305115e-06, 3: 1.09861, 5: 1.6094407, 17: 2.8332105, 50: 3.9120207, 200: 5.298315,
}  # fmt: skip


def log_by_table(x: float) -> float:
    """One logarithm, as oneDNN's code does it: with a biased exponent and a table for 127 ln 2."""
    half, exponent = math.frexp(x)
    m, biased = 2.0 * half, exponent + 126
    i = int((m - 1.0) * 32)
    inverse = round(32 / (1 + (i + 0.5) / 32)) / 32
    if i >= 16:
        m, biased, inverse = m / 2.0, biased + 1, inverse * 2.0
    entry = float(np.float32(-math.log(inverse) - 127 * math.log(2.0)))
    z = float(np.float32(m * inverse - 1.0))
    high = float(np.float32(biased * float(np.float32(math.log(2.0))) + entry))
    return float(np.float32(float(np.float32(math.log1p(z))) + high))


def log_softmax(x: Array, log: Any) -> Array:
    shifted = x - x.max(-1, keepdims=True)
    sums = np.exp(shifted).sum(-1, dtype=np.float32)
    result: Array = shifted - np.array([[log(float(total))] for total in sums], np.float32)
    return result


@pytest.mark.parametrize("number", MEASURED)
def test_the_table_is_the_one_that_oneflow_has(number: int) -> None:
    found = tabulated(np.array([float(number)])).astype(np.float32)[0]
    assert found == np.float32(MEASURED[number])
    assert abs(float(found) - math.log(number)) < 4.1e-6


def test_what_has_no_logarithm_gets_numpy_s() -> None:
    x = np.array([math.nan, math.inf, -math.inf, 0.0, -1.0, 1e39, 1e-46])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(tabulated(x), np.log(x.astype(np.float32)))


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_wrong_answer_beside_nan_is_explained(direction: Any) -> None:
    x = np.random.default_rng(7).standard_normal((16, 9)).astype(np.float32)
    x[3, 2], x[5, 1] = np.nan, np.inf
    inputs = {"x": x, **({"dy": np.ones_like(x)} if direction == "backward" else {})}
    op = refkernels.registry.get("log_softmax")
    (name, right), *_ = op.plain(direction, inputs, {}, "float32").items()
    found = refkernels.explain("log_softmax", inputs, {name: right + 0.25}, direction=direction)
    assert found.verdict in ("exceeds_bound", "special_value_mismatch")


@pytest.mark.parametrize(("rows", "classes", "scale"), [(8, 2, 1.0), (32, 10, 3.0), (76, 200, 1.0)])
def test_it_is_named_in_log_softmax_and_in_the_gradient_of_cross_entropy(
    rows: int, classes: int, scale: float
) -> None:
    rng = np.random.default_rng(5)
    x = (scale * rng.standard_normal((rows, classes))).astype(np.float32)
    target = rng.integers(0, classes, rows)
    for log, cause in ((log_by_table, "tabulated_logarithm"), (math.log, None)):
        y = log_softmax(x, log)
        found = refkernels.explain("log_softmax", {"x": x}, {"y": y})
        dx = (np.exp(y) - (np.arange(classes) == target[:, None])) * np.float32(1.0 / rows)
        inputs = {"x": x, "target": target, "dloss": np.float32(1.0)}
        back = refkernels.explain("cross_entropy", inputs, {"dx": dx}, direction="backward")
        if cause is None:
            assert {found.verdict, back.verdict} <= {"rounding", "correctly_rounded"}
            assert "tabulated_logarithm" not in (found.cause, back.cause)
        else:
            assert (found.cause, back.cause, back.confidence) == (cause, cause, "proven")
            assert found.confidence == "proven" or classes == 200
