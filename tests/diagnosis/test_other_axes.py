"""A kernel that works along another axis, or on other arguments, is named; a right one is not."""

from __future__ import annotations

import itertools
import math
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


@pytest.mark.parametrize("op", one_in(2, [*KEEPING, *REDUCING]))
def test_the_axis_is_named_unless_it_is_the_requested_one(op: str) -> None:
    answer = computed(op, "forward", {"x": ROWS}, 1)
    explanation = refkernels.explain(op, {"x": ROWS}, answer, params={"axis": -1})
    assert (explanation.cause, explanation.confidence) == ("wrong_axes", "proven")
    assert explanation.candidates[0].details["axes"] == [1]
    right = refkernels.explain(op, {"x": ROWS}, answer, params={"axis": 1})
    assert right.cause != "wrong_axes"
    assert right.verdict != "exceeds_bound"


@pytest.mark.parametrize("op", one_in(2, [*REDUCING, *KEEPING]))
def test_the_axis_of_a_gradient_is_named(op: str) -> None:
    dy = np.random.default_rng(1).standard_normal((3, 24) if op in REDUCING else ROWS.shape)
    inputs = {"x": ROWS, "dy": dy.astype(np.float32)}
    answer = computed(op, "backward", inputs, 1)
    explanation = refkernels.explain(op, inputs, answer, params={"axis": 2}, direction="backward")
    assert (explanation.cause, explanation.confidence) == ("wrong_axes", "proven")


@pytest.mark.parametrize("op", KEEPING)
def test_an_axis_of_another_length_is_named_where_the_shape_is_kept(op: str) -> None:
    answer = computed(op, "forward", {"x": ROWS}, 0)
    explanation = refkernels.explain(op, {"x": ROWS}, answer, params={"axis": 1})
    assert explanation.cause == "wrong_axes"
    assert explanation.candidates[0].details["axes"] == [0]


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


F = np.float32
RNG = np.random.default_rng(41)
ANGLES = (30 * RNG.standard_normal(400)).astype(F)
FACTORS = {"π/180": math.pi / 180, "π": math.pi, "2π": 2 * math.pi, "180/π": 180 / math.pi}
CIRCULAR = {"sin": np.sin, "cos": np.cos, "tan": np.tan}
UNITS = itertools.product(CIRCULAR, FACTORS, ("wide", "narrow"))


@pytest.mark.parametrize(("op", "factor", "converted"), one_in(3, UNITS))
def test_an_argument_in_another_unit_is_named(op: str, factor: str, converted: str) -> None:
    value = FACTORS[factor]
    x = ANGLES.astype(float) * value if converted == "wide" else ANGLES * F(value)
    found = refkernels.explain(op, {"x": ANGLES}, CIRCULAR[op](x.astype(float)).astype(F))
    assert (found.cause, found.confidence) == ("argument_unit", "proven")
    assert found.candidates[0].details == {"factor": factor}


def gradient(op: str, x: Any, dy: Any, axes: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    if op == "softmax":
        return y * (dy - (y * dy).sum(axes, keepdims=True))
    return dy - y * dy.sum(axes, keepdims=True)


AXES = (0,), (1,), (0, 1, 2), (-1,)
SUMMED = itertools.product(("softmax", "log_softmax"), AXES, (np.float32, np.float64))


@pytest.mark.parametrize(("op", "axes", "dtype"), one_in(3, SUMMED))
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


Q, K, V = RNG.standard_normal((3, 4, 3, 9, 8)).astype(F)


def attention(axis: int = -1, merged: bool = False) -> Any:
    s = Q @ K.swapaxes(-1, -2) * F(8**-0.5)
    e = np.exp(s - s.max(axis, keepdims=True))
    p = e / e.sum(axis, keepdims=True)
    y = p @ V
    return y.swapaxes(1, 2).reshape(y.shape) if merged else y


@pytest.mark.parametrize(
    ("cause", "how"),
    [
        ("other_axis", {"axis": -2}),
        ("axes_exchanged", {"merged": True}),
        (None, {}),
    ],
)
def test_attention_along_another_axis_is_named(cause: str | None, how: Any) -> None:
    found = refkernels.explain("attention", {"q": Q, "k": K, "v": V}, attention(**how))
    assert found.cause == cause
    assert cause is None or found.confidence == "proven"


@pytest.mark.parametrize("shape", [(12, 12), (12, 20), (5, 6, 7)], ids=str)
def test_an_output_with_exchanged_axes_is_named(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape).astype(F)
    got = np.tanh(x.astype(float)).astype(F)
    wrong = np.ascontiguousarray(got.swapaxes(-1, -2)).reshape(shape)
    found = refkernels.explain("tanh", {"x": x}, wrong)
    assert (found.cause, found.confidence) == ("axes_exchanged", "proven")
    assert refkernels.explain("tanh", {"x": x}, got).cause is None


def adam(inside: bool) -> Any:
    state = {name: RNG.standard_normal(200).astype(F) for name in ("param", "grad", "m", "v")}
    state["grad"] *= F(1e-3)
    state["v"] = np.square(state["v"]) * F(1e-6)
    param, grad, m, v = (array.astype(float) for array in state.values())
    m, v, root = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2, np.sqrt(1 - 0.999**3)
    below = np.sqrt(v + 1e-6) / root if inside else np.sqrt(v) / root + 1e-6
    new = param - 1e-3 * m / (1 - 0.9**3) / below
    return state, {"param": new.astype(F), "m": m.astype(F), "v": v.astype(F)}


def test_eps_inside_the_root_before_its_correction_is_named() -> None:
    params = {"eps": 1e-6, "lr": 1e-3, "step": 3}
    state, got = adam(True)
    found = refkernels.explain("adam", state, got, params)
    assert (found.cause, found.confidence) == ("eps_inside_sqrt", "proven")
    assert found.candidates[0].details == {"with": "eps_hat"}
    state, got = adam(False)
    assert refkernels.explain("adam", state, got, params).cause in (None, "summation_order")


def test_outputs_in_each_other_s_place_are_named() -> None:
    a, b, dc = RNG.standard_normal((3, 12, 12)).astype(F)
    inputs, outputs = {"a": a, "b": b, "dc": dc}, {"da": a.T @ dc, "db": dc @ b.T}
    found = refkernels.explain("matmul", inputs, outputs, direction="backward")
    assert (found.cause, found.confidence) == ("outputs_exchanged", "proven")
