"""The answers of one op in the arithmetic of null runs, to be judged like a kernel's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from refkernels import registry
from refkernels.contexts.shuffled import Shuffled
from refkernels.op import Direction

Answers = Callable[[str, Direction, Mapping[str, Any], Mapping[str, Any]], "dict[str, Any] | None"]


def answers(seed: int) -> Answers:
    """A function of op, direction, inputs and params that gives the outputs of the op's first form;
    None for an op that is not a formula."""
    xp = Shuffled(seed)

    def answer(
        op: str, direction: Direction, inputs: Mapping[str, Any], params: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        define = registry.get(op).define
        return None if define is None else define().read_in(xp, direction, inputs, params)

    return answer
