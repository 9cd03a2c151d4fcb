"""Arguments in degrees or turns, and gradients of softmax over another axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import refkernels

F = np.float32
RNG = np.random.default_rng(41)
ANGLES = (30 * RNG.standard_normal(400)).astype(F)
FACTORS = {"π/180": math.pi / 180, "π": math.pi, "2π": 2 * math.pi, "180/π": 180 / math.pi}
CIRCULAR = {"sin": np.sin, "cos": np.cos, "tan": np.tan}


@pytest.mark.parametrize("converted", ["wide", "narrow"])
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("op", CIRCULAR)
def test_an_argument_in_another_unit_is_named(op: str, factor: str, converted: str) -> None:
    value = FACTORS[factor]
    x = ANGLES.astype(float) * value if converted == "wide" else ANGLES * F(value)
    found = refkernels.explain(op, {"x": ANGLES}, CIRCULAR[op](x.astype(float)).astype(F))
    assert (found.cause, found.confidence) == ("argument_unit", "proven")
    assert found.candidates[0].details == {"factor": factor}


@pytest.mark.parametrize("op", CIRCULAR)
def test_radians_are_not_blamed(op: str) -> None:
    found = refkernels.explain(op, {"x": ANGLES}, CIRCULAR[op](ANGLES.astype(float)).astype(F))
    assert found.cause is None


def gradient(op: str, x: Any, dy: Any, axes: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    if op == "softmax":
        return y * (dy - (y * dy).sum(axes, keepdims=True))
    return dy - y * dy.sum(axes, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1, 2), (-1,)], ids=str)
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_a_gradient_that_sums_over_another_axis_is_named(op: str, axes: Any, dtype: Any) -> None:
    x, dy = RNG.standard_normal((2, 6, 9, 12)).astype(dtype)
    found = refkernels.explain(
        op, {"x": x, "dy": dy}, {"dx": gradient(op, x, dy, axes)}, direction="backward"
    )
    if axes == (-1,):
        assert found.cause in (None, "summation_order")
    else:
        assert (found.cause, found.confidence) == ("gradient_over_other_axis", "proven")
        assert found.candidates[0].details == {"axes": list(axes)}
