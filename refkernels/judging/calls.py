"""Twelve calls in one process, which show what a kernel keeps from one call to the next.

    first · again · new content at the same pointer · the first content at a new pointer · an
    element of the first input changed · the rows in another order · easy and hard rows · other
    scales · the first input as it was, with new others · powers of two · an element of the last
    input changed · the first content once more

Every answer is judged. The answers to the first content should have the same bits. If they do not,
and all are right, the kernel is not deterministic, which is reported but is not a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.frameworks.cells import CellCall, CellReply
from refkernels.judging.challenges import Drawer
from refkernels.judging.running import call_of
from refkernels.judging.standard import Challenge

Array = npt.NDArray[Any]
ROWS = 6
_SAME = (0, 1, 3, 11)  # the calls with the first content


@dataclass(frozen=True)
class Protocol:
    """The challenges of one process, in order, and the calls that ask them."""

    challenges: tuple[Challenge, ...]
    calls: list[CellCall]

    def stale(self, replies: list[CellReply], wrong: list[int]) -> int | None:
        """The number of a wrong call that returns the right answer to an earlier call with other
        content; None if there is none."""
        for i in wrong:
            earlier = [j for j in range(i) if not _alike(self.challenges[i], self.challenges[j])]
            earlier_outputs = [replies[j].outputs for j in earlier if j not in wrong]
            if any(_same_bits(replies[i].outputs, outputs) for outputs in earlier_outputs):
                return i
        return None

    def turns(self, wrong: list[int]) -> bool:
        """Whether the first content, answered rightly at first, is answered wrongly later."""
        return 0 not in wrong and any(i in wrong for i in _SAME)

    def deterministic(self, replies: list[CellReply]) -> bool:
        """Whether the answers to the first content have the same bits."""
        answers = [replies[i].outputs for i in _SAME if i < len(replies) and replies[i].outputs]
        return all(_same_bits(answer, answers[0]) for answer in answers[1:])


def protocol(drawer: Drawer, rng: np.random.Generator) -> Protocol:
    """The twelve calls on an ordinary challenge."""
    first = drawer.typical(rng, ROWS)

    def other(family: str) -> Challenge:
        return replace(drawer.again(first, family, rng), name=f"calls: {family}")

    order = [
        first, first, other("typical"), first, _one_changed(first, 0, rng),
        _permuted(drawer, first, rng), other("mixed"), other("scales"),
        _others_new(first, other("positive")), other("powers"), _one_changed(first, -1, rng),
        first,
    ]  # fmt: skip
    calls = [call_of(challenge, 1 << 20 | i, slot=int(i == 3)) for i, challenge in enumerate(order)]
    numbered = tuple(
        replace(
            challenge, family="calls", name=f"call {i + 1} of 12", _standards=challenge._standards
        )
        for i, challenge in enumerate(order)
    )
    return Protocol(numbered, calls)


def _one_changed(challenge: Challenge, which: int, rng: np.random.Generator) -> Challenge:
    """The challenge with one element changed in one floating input, the first or the last. It lies
    in the middle half, where a sample of both ends does not see it."""
    name, array = list(challenge.floats.items())[which]
    changed = np.array(array, order="C")
    if changed.size:
        place = int(rng.integers(changed.size // 4, changed.size - changed.size // 4))
        changed.reshape(-1)[place] += np.asarray(3.0, changed.dtype)
    return replace(challenge, inputs={**challenge.inputs, name: changed}, _standards={})


def _others_new(first: Challenge, other: Challenge) -> Challenge:
    """The other challenge; if it has several inputs, with the first input of `first`."""
    if len(first.inputs) < 2:
        return other
    name = next(iter(first.inputs))
    return replace(other, inputs={**other.inputs, name: first.inputs[name]}, _standards={})


def _permuted(drawer: Drawer, challenge: Challenge, rng: np.random.Generator) -> Challenge:
    """The challenge with the rows of all arrays that have rows permuted, all in the same way."""
    arguments = drawer.roles.arguments
    rowed = {
        name: array
        for name, array in challenge.floats.items()
        if arguments[name].rows and array.ndim > len(arguments[name].own)
    }
    lengths = {array.shape[0] for array in rowed.values()}
    if len(lengths) != 1:
        return challenge
    order = rng.permutation(lengths.pop())
    moved = {name: np.ascontiguousarray(array[order]) for name, array in rowed.items()}
    return replace(challenge, inputs={**challenge.inputs, **moved}, _standards={})


def _alike(challenge: Challenge, other: Challenge) -> bool:
    return all(
        all(map(_equal, value, other.inputs[name]))
        if isinstance(value, list | tuple)
        else _equal(value, other.inputs[name])
        for name, value in challenge.inputs.items()
    )


def _equal(a: Array, b: Array) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind not in "iub")


def _same_bits(a: Any, b: Any) -> bool:
    if a.keys() != b.keys():
        return False
    return all(
        isinstance(a[name], np.ndarray)
        and isinstance(b[name], np.ndarray)
        and a[name].dtype == b[name].dtype
        and a[name].tobytes() == b[name].tobytes()
        for name in a
    )
