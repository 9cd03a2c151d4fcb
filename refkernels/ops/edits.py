"""Edits of a formula: its graph, with some nodes computed otherwise.

A *rule* takes a graph and says which nodes are replaced, and by what. It knows no op: it asks for
sums over an axis, for primitives whose results a format cannot hold. `edited` applies it to any
formula, which then is a formula again. Loaded on first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from refkernels.arithmetic.formats import Format
from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.contexts.record import record
from refkernels.ops.formula import Formula

Rule = Callable[[Graph], Edits]
Changed = Callable[[int, Node, Any], Any]
"""What takes the place of a primitive's result, an array: f(its number, the node, the array)."""

_ROUNDING = frozenset(
    (
        *("function", "add", "subtract", "multiply", "divide", "power", "sum", "mean", "cumsum"),
        *("matmul", "norm", "prod", "square"),
    )
)


def edited(formula: Formula, rule: Rule) -> Formula:
    """The formula with the nodes replaced that the rule names in its graph."""

    @functools.wraps(formula, updated=())
    def read(xp: Any, /, *given: Any, **arguments: Any) -> Any:
        def named(xp: Any, /, given: Any, **arguments: Any) -> Any:
            return formula(xp, *given, **arguments)

        arguments = {"given": given, **arguments}
        graph = record(named, arguments)
        outputs = graph.read(xp, arguments, rule(graph))
        return outputs if len(outputs) > 1 else outputs[0]

    return read


def overflowing(
    formula: Formula, format: Format, chosen: int, beyond: Mapping[Format, dict[int, Node]]
) -> Formula:
    """The formula with results of its `chosen` primitive beyond the format's range infinite.
    `beyond` receives, by format, the primitives by number that exceed the range somewhere."""

    def changed(number: int, node: Node, array: Any) -> Any:
        size, large = np.abs(array), dict[Format, Any]()
        for other, exceeding in beyond.items():
            end = 2.0 * 2.0**other.emax
            large[other] = (size >= end) & (np.isfinite(size) | np.isinf(end))  # infinite: binary64
            if large[other].any():
                exceeding.setdefault(number, node)
        infinite = np.copysign(np.inf, array)
        return np.where(large[format], infinite, array) if number == chosen else None

    return edited(formula, functools.partial(_each_rounded, changed))


def _each_rounded(changed: Changed, graph: Graph) -> Mapping[Node, Replacement]:
    """The primitives that round, numbered from 1, watched in a computed arithmetic."""

    def replacement(number: int, node: Node) -> Replacement:
        def watched(xp: Any, result: Any) -> Any:
            array = changed(number, node, result.data)
            return result if array is None else xp.value(array)

        return Replacement((node,), watched)

    rounded = (node for node in graph.nodes if node.op in _ROUNDING)
    return {node: replacement(number, node) for number, node in enumerate(rounded, 1)}
