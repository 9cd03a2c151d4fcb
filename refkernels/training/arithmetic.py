"""The answers of one op in the arithmetic of null runs, to be judged like a kernel's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from refkernels import registry
from refkernels.contexts.shuffled import Shuffled
from refkernels.op import Direction

Answers = Callable[[str, Direction, Mapping[str, Any], Mapping[str, Any]], "dict[str, Any] | None"]


def answers(seed: int) -> Answers:
    """The outputs of an op's first form, by name; None of an op that is no formula."""
    xp = Shuffled(seed)

    def answer(op: str, direction: Direction, inputs: Any, params: Any) -> dict[str, Any] | None:
        formulas = registry.get(op).definition
        if formulas is None:
            return None
        first = formulas.first(direction)
        return formulas.computed(direction, first, inputs, params, xp.format, xp)

    return answer
