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

    def watched(number: int, node: Node, xp: Any, result: Any) -> Any:
        size, large = np.abs(result.data), dict[Format, Any]()
        for other, exceeding in beyond.items():
            end = 2.0 * 2.0**other.emax
            large[other] = (size >= end) & (np.isfinite(size) | np.isinf(end))  # infinite: binary64
            if large[other].any():
                exceeding.setdefault(number, node)
        if number != chosen:
            return result
        infinite = np.copysign(np.inf, result.data)
        return xp.value(np.where(large[format], infinite, result.data))

    def rule(graph: Graph) -> Edits:
        """The primitives that round, numbered from 1, in a computed arithmetic."""
        rounded = (node for node in graph.nodes if node.op in _ROUNDING)
        return {
            node: Replacement((node,), functools.partial(watched, number, node))
            for number, node in enumerate(rounded, 1)
        }

    return edited(formula, rule)
