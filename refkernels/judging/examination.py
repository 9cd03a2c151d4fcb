"""An examination: the challenges of one op, dtype and seed, round after round, and many calls in
one process, which show what a kernel keeps from one call to the next:

    first · again · new content at the same pointer · the first content at a new pointer · an
    element of the first input changed · its rows in another order · easy and hard rows · other
    scales · the first input as it was, with new others · powers of two · an element of the last
    input changed · the first content once more · many rows · an element of many rows changed, which
    a key made of a sample does not see

Then these contents and as many new ones, hundreds of times, in an order and a number that are drawn
too: no kernel knows after how many calls it is no longer watched. Every answer is judged. If equal
contents get other bits, all right, the kernel is not deterministic, which is no fault.

A truth is computed when the first answer is compared with it, never before. Kernels that share
examinations share their truths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from refkernels.frameworks.cells import CellCall, CellReply
from refkernels.judging.challenges import Drawer
from refkernels.judging.questions import ANYTHING, KernelDomain, elements
from refkernels.judging.running import call_of
from refkernels.judging.standard import RANGE, Challenge
from refkernels.judging.wrong_answers import Shown, decisive_outputs, shown
from refkernels.op import Direction, Op

LARGEST = 1 << 14  # elements of an answer that is compared with decoys, of inputs 8 times as many
OWN = 1 << 22  # the product of all lengths of a kernel's own shapes, in the first round
ROWS, MANY = 6, 1 << 12  # rows, and elements of many rows
FEWEST = 14  # calls that every kernel is asked, however slow it is
_CALLS = (512, 1024)  # the least number of calls, and the end of the range of it
_NEW = ("typical", "mixed", "scales", "positive", "powers", "two_valued") * 2


class KernelExamination:
    """The challenges of one op, dtype and seed, of inputs that a kernel takes."""

    def __init__(
        self, op: Op, direction: Direction, dtype: str, seed: int, domain: KernelDomain = ANYTHING
    ) -> None:
        self.drawer = Drawer(op, direction, dtype, domain)
        self.seed = seed
        self.told: dict[str, set[str]] = {}  # flags of the truths, which later kernels share
        self._rounds: dict[int, list[Challenge]] = {}
        self._decisive = cache(decisive_outputs)
        self._shown = cache(shown)

    @cached_property
    def calls(self) -> Protocol:
        """The many calls of one process."""
        return protocol(self.drawer, np.random.default_rng([self.seed, 1 << 20]))

    @cached_property
    def timed(self) -> list[Challenge]:
        """The challenges for timing, of one shape, each with other content."""
        return self.drawer.timed(np.random.default_rng([self.seed, 1 << 22]))

    def round(self, number: int) -> list[Challenge]:
        """The challenges of a round; first, where they are known, those in the kernel's own
        shapes."""
        if number not in self._rounds:
            rng, other = (np.random.default_rng([self.seed, number, *k]) for k in ((), (1,)))
            own = self.drawer.own(other, OWN << 2 * number)
            asked = [*own, *self.drawer.round(rng, number)]
            self._rounds[number] = [c for c in asked if c.finite or not self.drawer.domain.finite]
        return self._rounds[number]

    def decisive_outputs(self, asked: Challenge) -> tuple[str, ...]:
        """The outputs for which the challenge rejects all decoys; large ones are not tried."""
        sizes = elements(asked.standard().rounded), elements(asked.floats) // 8
        most = LARGEST << 4 if asked.op.whole else LARGEST  # a program's shapes are what they are
        return self._decisive(asked) if max(sizes) <= most else ()

    def shown(self, answered: Sequence[Challenge], seconds: float = math.inf) -> Shown:
        """The mutants and errors that these challenges would have caught, as far as they can be
        tried in so many seconds; the op's cases too: a wrong param may be seen there alone."""
        tried = (c for c in answered if c.plain or c.family == "hard")
        return self._shown(tuple(c for c in tried if self.decisive_outputs(c)), seconds)


class Examinations:
    """The examinations that several kernels share, with their truths."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], KernelExamination] = {}

    def of(self, op: Op, *question: Any) -> KernelExamination:
        """The examination for kernels that take these inputs."""
        key = id(op), repr(question)
        if key not in self._kept:
            self._kept[key] = KernelExamination(op, *question)
        return self._kept[key]


class CallsSeen(NamedTuple):
    """What the answers of one process show. `wrong`: the numbers of a few wrong calls; `stale`: the
    first that returns the right answer to an earlier content; `turns`: whether a content that was
    answered rightly at first is answered wrongly later; `deterministic`: whether right answers to
    equal contents had equal bits; `number`: how many calls were looked at."""

    wrong: list[int]
    stale: Challenge | None
    turns: bool
    deterministic: bool
    number: int


@dataclass(frozen=True)
class Protocol:
    """The challenges of one process, in order, and the calls that ask them."""

    challenges: list[Challenge]
    calls: list[CellCall]

    def seen(
        self,
        replies: Sequence[CellReply],
        fault: Callable[[Challenge, CellReply], Any],
        late: Callable[[], bool],
    ) -> CallsSeen:
        """What replies show, as far as there is time to look at them."""
        wrong, stale, turns, same, number = list[int](), None, False, True, len(replies)
        right: dict[int, Mapping[str, Any]] = {}  # by content
        for i, (challenge, reply) in enumerate(zip(self.challenges, replies, strict=False)):
            known = right.get(id(challenge.inputs))
            if known and not reply.written and same_bits(reply.outputs, known):
                continue
            if late():
                number = i
                break
            found = fault(challenge, reply)
            if found and found.kind not in RANGE:
                wrong.append(i)
                turns |= known is not None
                if any(same_bits(reply.outputs, earlier) for earlier in right.values()):
                    stale = stale or challenge
            elif reply.status == "ok":
                same &= known is None
                right.setdefault(id(challenge.inputs), reply.outputs)
            if reply.status != "ok" or len(wrong) == FEWEST:
                break
        return CallsSeen(wrong, stale, turns, same, number)


def protocol(drawer: Drawer, rng: np.random.Generator) -> Protocol:
    """The calls on an ordinary challenge."""
    first = drawer.typical(rng, ROWS)
    other, changed = partial(drawer.again, first, rng=rng), partial(drawer.changed, rng=rng)
    main = dict([*first.inputs.items()][: len(first.inputs) > 1])
    permuted = {name: rng.permutation(a) for name, a in first.floats.items() if a.ndim}
    order = [
        first, first, other("typical"), first, changed(first, 0), first.given(permuted),
        other("mixed"), other("scales"), other("positive").given(main), other("powers"),
        changed(first, -1), first,
    ]  # fmt: skip
    row = max((math.prod(array.shape) for array in first.floats.values()), default=ROWS) // ROWS
    many = drawer.typical(rng, max(MANY // max(row, 1), ROWS))
    order += [many, changed(many, 0)]
    contents = [*order, *map(other, _NEW)]
    number = int(rng.integers(*_CALLS)) - len(order)
    order += [contents[i] for i in rng.integers(0, len(contents), number)]
    slots = [0] * 3 + [1] + [0] * (FEWEST - 4) + rng.integers(0, 2, number).tolist()
    challenges, calls = list[Challenge](), list[CellCall]()
    for i, (c, slot) in enumerate(zip(order, slots, strict=True)):
        name = f"call {i + 1} of {len(order)}: {c.name.partition(': ')[2]}"
        challenges.append(replace(c, family="calls", name=name))  # with the truth of its content
        calls.append(call_of(c, 1 << 20 | i, slot))
    return Protocol(challenges, calls)


def same_bits(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether arrays, or lists of them, have the same names, formats, shapes and bits."""

    def bits(values: Mapping[str, Any]) -> dict[str, Any]:
        lists = {n: v if isinstance(v, list | tuple) else [v] for n, v in values.items()}
        return {n: [(a.dtype, a.shape, a.tobytes()) for a in arrays] for n, arrays in lists.items()}

    return bits(a) == bits(b)
