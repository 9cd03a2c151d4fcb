"""Edits of a formula: its graph, with some nodes computed otherwise.

A *rule* takes a graph and says which nodes are replaced, and by what. It knows no op: it asks for
sums over an axis, for primitives whose results a format cannot hold. `edited` applies it to any
formula, which then is a formula again. Loaded on first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from refkernels.contexts.graph import Edits, Graph
from refkernels.contexts.record import record
from refkernels.ops.formula import Formula

Rule = Callable[[Graph], Edits]


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
