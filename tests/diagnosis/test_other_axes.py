"""A kernel that works along another axis is named; a right one is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hunting import one_in

import refkernels
from refkernels import registry

ROWS = np.random.default_rng(20261123).standard_normal((3, 24, 24)).astype(np.float32)
KEEPING = ("softmax", "log_softmax", "cumsum")
REDUCING = ("sum", "mean", "var", "std", "norm", "prod", "max", "logsumexp")


def computed(op: str, direction: Any, inputs: dict[str, Any], axis: int) -> dict[str, Any]:
    """What NumPy's order of operations gives in float32."""
    return registry.get(op).plain(direction, inputs, {"axis": axis}, "float32")


@pytest.mark.parametrize(
    ("op", "axis"),
    [*((op, 0) for op in KEEPING), *((op, 1) for op in one_in(2, [*KEEPING, *REDUCING]))],
)
def test_the_axis_is_named_unless_it_is_the_requested_one(op: str, axis: int) -> None:
    answer = computed(op, "forward", {"x": ROWS}, axis)
    explanation = refkernels.explain(op, {"x": ROWS}, answer, params={"axis": -1})
    assert (explanation.cause, explanation.confidence) == ("wrong_axes", "proven")
    assert explanation.candidates[0].details["axes"] == [axis]
    right = refkernels.explain(op, {"x": ROWS}, answer, params={"axis": axis})
    assert right.cause != "wrong_axes"
    assert right.verdict != "exceeds_bound"


@pytest.mark.parametrize("op", one_in(2, [*REDUCING, *KEEPING]))
def test_the_axis_of_a_gradient_is_named(op: str) -> None:
    dy = np.random.default_rng(1).standard_normal((3, 24) if op in REDUCING else ROWS.shape)
    inputs = {"x": ROWS, "dy": dy.astype(np.float32)}
    answer = computed(op, "backward", inputs, 1)
    explanation = refkernels.explain(op, inputs, answer, params={"axis": 2}, direction="backward")
    assert (explanation.cause, explanation.confidence) == ("wrong_axes", "proven")


def test_what_does_not_depend_on_the_axis_is_not_blamed() -> None:
    """A symmetric matrix: both axes give the same sums, up to their order."""
    x = ROWS[0] + ROWS[0].T
    explanation = refkernels.explain("sum", {"x": x}, computed("sum", "forward", {"x": x}, 0))
    assert explanation.cause != "wrong_axes"


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("op", one_in(2, REDUCING))
def test_an_axis_of_the_same_length_that_leaves_another_shape_is_not_asked(
    op: str, direction: Any
) -> None:
    """Of (2, 3, 2) the last axis leaves (2, 3), and the first (3, 2), which dy does not have."""
    rng = np.random.default_rng(3)
    inputs = {"x": rng.standard_normal((2, 3, 2)).astype(np.float32)}
    if direction == "backward":
        inputs["dy"] = rng.standard_normal((2, 3)).astype(np.float32)
    answer = {k: 1.5 * y for k, y in computed(op, direction, inputs, -1).items()}
    explanation = refkernels.explain(op, inputs, answer, params={"axis": -1}, direction=direction)
    assert explanation.cause != "wrong_axes"
