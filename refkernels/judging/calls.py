"""Many calls in one process, which show what a kernel keeps from one call to the next.

    first · again · new content at the same pointer · the first content at a new pointer · an
    element of the first input changed · its rows in another order · easy and hard rows · other
    scales · the first input as it was, with new others · powers of two · an element of the last
    input changed · the first content once more · many rows · an element of many rows changed, which
    a key made of a sample does not see

Then these contents and as many new ones, hundreds of times, in an order and a number that are drawn
too: no kernel knows after how many calls it is no longer watched. Every answer is judged. If equal
contents get other bits, all right, the kernel is not deterministic, which is no fault.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.frameworks.cells import CellCall, CellReply
from refkernels.judging.challenges import Drawer
from refkernels.judging.running import call_of
from refkernels.judging.standard import Challenge

Array = npt.NDArray[Any]
ROWS, MANY = 6, 1 << 12  # rows, and elements of many rows
FEWEST = 14  # calls that every kernel is asked, however slow it is
_CALLS = (512, 1024)  # the least number of calls, and the end of the range of it
_NEW = ("typical", "mixed", "scales", "positive", "powers", "two_valued") * 2


@dataclass(frozen=True)
class Protocol:
    """The challenges of one process, in order, and the calls that ask them."""

    challenges: tuple[Challenge, ...]
    calls: list[CellCall]

    def stale(self, replies: Sequence[CellReply], wrong: Sequence[int]) -> int | None:
        """The number of a wrong call that returns the right answer to an earlier call with other
        content; None if there is none."""
        right = self._first(j for j in range(len(replies)) if j not in wrong)
        for i in wrong:
            for j in (j for j in right.values() if j < i):
                other = not same_bits(self.challenges[i].inputs, self.challenges[j].inputs)
                if other and same_bits(replies[i].outputs, replies[j].outputs):
                    return i
        return None

    def turns(self, wrong: Sequence[int]) -> bool:
        """Whether a content that was answered rightly at first is answered wrongly later."""
        first = self._first(range(len(self.challenges)))
        return any(first[id(self.challenges[i].inputs)] not in wrong for i in wrong)

    def _first(self, numbers: Iterable[int]) -> dict[int, int]:
        """By content, the first of some calls."""
        return {id(self.challenges[i].inputs): i for i in reversed([*numbers])}


def protocol(drawer: Drawer, rng: np.random.Generator) -> Protocol:
    """The calls on an ordinary challenge."""
    first, below_one = drawer.typical(rng, ROWS), drawer.below_one
    other = partial(drawer.again, first, rng=rng)
    main = list(first.inputs.items())[: len(first.inputs) > 1]
    permuted = {name: rng.permutation(a) for name, a in first.floats.items() if a.ndim}
    order = [
        first, first, other("typical"), first, _one_changed(first, 0, rng, below_one),
        _with(first, permuted), other("mixed"), other("scales"),
        _with(other("positive"), main), other("powers"),
        _one_changed(first, -1, rng, below_one), first,
    ]  # fmt: skip
    row = max(math.prod(array.shape) for array in first.floats.values()) // ROWS
    many = drawer.typical(rng, max(MANY // max(row, 1), ROWS))
    order += [many, _one_changed(many, 0, rng, below_one)]
    contents = [*order, *map(other, _NEW)]
    number = int(rng.integers(*_CALLS)) - len(order)
    order += [contents[i] for i in rng.integers(0, len(contents), number)]
    slots = [0] * 3 + [1] + [0] * (FEWEST - 4) + rng.integers(0, 2, number).tolist()
    placed = enumerate(zip(order, slots, strict=True))
    calls = [call_of(c, 1 << 20 | i, slot) for i, (c, slot) in placed]
    numbered = tuple(
        replace(
            c, family="calls", name=f"call {i} of {len(order)}: {c.name.partition(': ')[2]}",
            _standards=c._standards,
        )
        for i, c in enumerate(order, 1)
    )  # fmt: skip
    return Protocol(numbered, calls)


def _one_changed(
    challenge: Challenge, which: int, rng: np.random.Generator, below_one: Container[str] = ()
) -> Challenge:
    """The challenge with an element of the first or the last floating input changed, in its middle
    half, where a sample of both ends does not see it."""
    name, array = list(challenge.floats.items())[which]
    changed = np.array(array, order="C")
    if changed.size:
        place = int(rng.integers(changed.size // 4, changed.size - changed.size // 4))
        changed.reshape(-1)[place] += np.asarray(3.0, changed.dtype)
    changed = np.where(changed < 1, changed, 0) if name in below_one else changed
    return _with(challenge, {name: changed})


def _with(challenge: Challenge, changed: Any) -> Challenge:
    return replace(challenge, inputs={**challenge.inputs, **dict(changed)}, _standards={})


def same_bits(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether arrays, or lists of them, have the same names, formats, shapes and bits."""
    return _bits(a) == _bits(b)


def _bits(values: Mapping[str, Any]) -> dict[str, Any]:
    lists = {n: v if isinstance(v, list | tuple) else [v] for n, v in values.items()}
    return {n: [(a.dtype, a.shape, a.tobytes()) for a in arrays] for n, arrays in lists.items()}
