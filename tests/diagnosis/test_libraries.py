"""Kernels whose exponential or logarithm is another library's are named; right ones not blamed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.diagnosis.models.libraries import tabulated

MEASURED = {  # -log_softmax of so many equal logits, OneFlow 0.9.0: log of the whole number
    1: -1.4305115e-06, 3: 1.09861, 5: 1.6094407, 17: 2.8332105, 50: 3.9120207, 200: 5.298315,
}  # fmt: skip


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
