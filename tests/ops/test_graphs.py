"""A formula and its graph are one program: in every context they have the same bits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from formula_suite import DEFINED, OPS, questions
from hunting import one_way

from refkernels.contexts import Ball, Bound, Gradient, Record, RoundedArithmetic
from refkernels.contexts.graph import Node, Replacement, Untraceable
from refkernels.contexts.record import record
from refkernels.op import Direction
from refkernels.ops import edits
from refkernels.ops.readings import Reading


def unedited(formula: Any) -> Any:
    """The formula read from its graph."""
    return edits.edited(formula, lambda graph: {})


def same_bits(left: Any, right: Any) -> bool:
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and left[name].tobytes() == right[name].tobytes()
        for name in left
    )


@pytest.mark.parametrize(("name", "direction"), one_way(DEFINED))
def test_a_graph_computes_what_the_formula_does(name: str, direction: Direction) -> None:
    """Every form, rounded in two orders of summation; its bound; and every fault."""
    definition = OPS[name].definition
    assert definition is not None
    way, compared = definition.of(direction), 0
    faults = [getattr(fault, direction) for fault in definition.faults]
    formulas = [*way.forms.values(), *(fault for fault in faults if fault is not None)]
    for dtype, inputs, params in itertools.islice(questions(name, direction, 31), 2):
        for formula in formulas:
            question = direction, formula, inputs, params, dtype
            through_graph = direction, unedited(formula), inputs, params, dtype
            for how in ({"order": "pairwise"}, {"order": "sequential", "fma": True}):
                computed = definition.computed(*question, **how)
                assert same_bits(computed, definition.computed(*through_graph, **how))
                compared += 1
        for formula in way.forms.values():
            bound = definition.bounded(direction, formula, inputs, params, dtype)
            assert same_bits(
                bound, definition.bounded(direction, unedited(formula), inputs, params, dtype)
            )
    assert compared >= 2 * len(formulas)


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.pivot(x))
    return e / xp.sum(e)


X = np.random.default_rng(0).normal(size=(2, 3))


def graph_of(formula: Any, xp: Any, **arrays: Any) -> Any:
    values = Reading(xp, lambda value: ()).arguments(arrays, {})
    return record(formula, values), values


def test_what_is_computed_twice_is_one_node() -> None:
    def twice(xp: Any, x: Any) -> Any:
        left = xp.sqrt(xp.sum(xp.square(x)) + 1)
        right = xp.sqrt(xp.sum(xp.square(x)) + 1)
        return left * right

    graph, _ = graph_of(twice, RoundedArithmetic("float32"), x=X)
    assert [node.op for node in graph.nodes if node.op != "input"] == [
        "square", "sum", "number", "add", "function", "multiply",
    ]  # fmt: skip


def test_a_movement_is_known_by_where_it_moves_elements() -> None:
    def moved(xp: Any, x: Any) -> Any:
        return (
            xp.transpose(x, (1, 0))
            + xp.rearrange(lambda part: part.T, x)
            + xp.rearrange(lambda part: np.swapaxes(part, 0, 1), x)
        )

    graph, _ = graph_of(moved, RoundedArithmetic("float32"), x=X)
    moves = [node for node in graph.nodes if node.op == "move"]
    assert [node.option.sources.tolist() for node in moves] == [[[0, 3], [1, 4], [2, 5]]]


def test_an_edit_takes_the_place_of_a_node_and_may_use_its_value() -> None:
    xp = RoundedArithmetic("float64")
    graph, values = graph_of(softmax, xp, x=X)
    (total,) = (node for node in graph.nodes if node.op == "sum")
    (right,) = graph.read(xp, values)
    doubled = {total: Replacement((total,), lambda xp, value: value * 2)}
    (halved,) = graph.read(xp, values, doubled)
    assert np.array_equal(halved.data * 2.0, right.data)
    (total_operand,) = total.operands
    largest = {total: Replacement((total_operand,), lambda xp, e: xp.max(e))}
    (other,) = graph.read(xp, values, largest)
    assert np.array_equal(other.data.max(-1), [1.0, 1.0])


def test_an_edited_forward_pass_has_its_own_gradient() -> None:
    """The gradient of sum((2 x)²) where x² was edited into (2 x)²."""

    def squares(xp: Any, x: Any) -> Any:
        return xp.sum(xp.square(x))

    tape = Gradient(Ball())
    leaf = tape.array(X)
    graph = record(squares, {"x": leaf})
    square = next(node for node in graph.nodes if node.op == "square")
    edit = {square: Replacement(square.operands, lambda xp, x: xp.square(x * 2))}
    (output,) = graph.read(tape, {"x": leaf}, edit)
    (dx,) = tape.pull(output, Ball().array(np.ones((2, 1))), [leaf])
    assert np.array_equal(dx.mid, 8.0 * X)


def test_a_formula_that_asks_for_an_attribute_of_a_comparison_has_no_graph() -> None:
    def counting(xp: Any, x: Any) -> Any:
        return xp.array((x > xp.number(0)).yes.sum(axis=-1, keepdims=True))

    with pytest.raises(Untraceable, match=r"\.sum of a comparison"):
        graph_of(counting, Bound("float32"), x=X)


def test_nodes_are_shown_by_what_they_are_made_of() -> None:
    xp = Record()
    node: Node = xp.exp(xp.input("x", (2,))).node
    assert repr(node) == "function[exp](input)"
