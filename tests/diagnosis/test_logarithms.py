"""Kernels whose logarithm is oneDNN's table are named; right ones are not blamed."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import refkernels
from refkernels.diagnosis.models.logarithms import tabulated

Array = npt.NDArray[Any]
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
