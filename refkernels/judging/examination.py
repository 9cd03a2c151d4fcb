"""An examination: the challenges of one op, dtype and seed, round after round. Their truths are
computed once, whoever is examined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from refkernels.judging import decoys, mutants
from refkernels.judging.calls import Protocol, protocol
from refkernels.judging.challenges import Drawer
from refkernels.judging.standard import Challenge
from refkernels.op import Direction, Op


class Examination:
    """`seed`: which challenges are drawn. `left_out`: optional inputs that a kernel does not take;
    `lengths`: the only lengths that it takes, by letter."""

    def __init__(
        self,
        op: Op,
        direction: Direction,
        dtype: str,
        seed: int,
        left_out: frozenset[str] = frozenset(),
        lengths: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.drawer = Drawer(op, direction, dtype, left_out, lengths)
        self._seed = seed
        self._rounds: dict[int, list[Challenge]] = {}
        self._told: dict[int, tuple[str, ...]] = {}

    @cached_property
    def calls(self) -> Protocol:
        """The twelve calls of one process."""
        return protocol(self.drawer, np.random.default_rng([self._seed, 1 << 20]))

    def round(self, number: int) -> list[Challenge]:
        """The challenges of a round that are questions to the op."""
        if number not in self._rounds:
            rng = np.random.default_rng([self._seed, number])
            drawn = self.drawer.round(rng, number)
            self._rounds[number] = [one for one in drawn if _asks(one)]
        return self._rounds[number]

    def told(self, challenge: Challenge) -> tuple[str, ...]:
        """The outputs for which the challenge rejects all decoys."""
        if id(challenge) not in self._told:
            self._told[id(challenge)] = decoys.outputs_told(challenge)
        return self._told[id(challenge)]

    def shown(self, rounds: int) -> mutants.Shown:
        """What the first rounds would have seen."""
        if rounds not in self._shown:
            telling = [
                one for i in range(rounds) for one in self.round(i) if one.plain and self.told(one)
            ]
            self._shown[rounds] = mutants.shown(telling, self.drawer.roles)
        return self._shown[rounds]

    @cached_property
    def _shown(self) -> dict[int, mutants.Shown]:
        return {}


def _asks(challenge: Challenge) -> bool:
    """Whether the op has an answer: a mean of no elements is none."""
    try:
        return bool(challenge.standard().reference)
    except (ValueError, TypeError):
        return False
