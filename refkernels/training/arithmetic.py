"""The answers of one op in an arithmetic, such as that of null runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from refkernels import registry
from refkernels.contexts import RoundedArithmetic
from refkernels.op import Direction

Answers = Callable[[str, Direction, Mapping[str, Any], Mapping[str, Any]], "dict[str, Any] | None"]


def answers(xp: RoundedArithmetic) -> Answers:
    """The outputs of an op's first form, by name; None of an op that is no formula."""

    def answer(op: str, direction: Direction, inputs: Any, params: Any) -> dict[str, Any] | None:
        formulas = registry.get(op).definition
        if formulas is None:
            return None
        first = formulas.first(direction)
        return formulas.computed(direction, first, inputs, params, xp.format, xp)

    return answer
