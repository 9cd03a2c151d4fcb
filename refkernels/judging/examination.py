"""An examination: the challenges of one op, dtype and seed, round after round.

A truth is computed when the first answer is compared with it, never before. Kernels that share
examinations share their truths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from refkernels.judging import decoys, mutants, timing
from refkernels.judging.calls import Protocol, protocol
from refkernels.judging.challenges import Drawer
from refkernels.judging.shapes import AXES
from refkernels.judging.standard import Challenge
from refkernels.op import Direction, Op


class KernelExamination:
    """The challenges of one op, dtype and seed. `left_out`: optional inputs that a kernel does not
    take; `lengths` and `dtypes`: the only ones that it takes, by letter and by input; `axes`: the
    numbers of leading axes that it takes."""

    def __init__(
        self,
        op: Op,
        direction: Direction,
        dtype: str,
        seed: int,
        left_out: frozenset[str] = frozenset(),
        lengths: Mapping[str, Sequence[int]] | None = None,
        dtypes: Mapping[str, Sequence[str]] | None = None,
        axes: frozenset[int] = AXES,
    ) -> None:
        self.drawer = Drawer(op, direction, dtype, left_out, lengths, dtypes, axes)
        self.seed = seed
        self._rounds: dict[int, list[Challenge]] = {}
        self._decisive: dict[int, tuple[str, ...]] = {}
        self._shown: dict[tuple[int, ...], mutants.Shown] = {}

    @cached_property
    def calls(self) -> Protocol:
        """The twelve calls of one process."""
        return protocol(self.drawer, np.random.default_rng([self.seed, 1 << 20]))

    @cached_property
    def timed(self) -> list[Challenge]:
        """The challenges for timing, of one shape, each with other content."""
        return timing.challenges(self.drawer, np.random.default_rng([self.seed, 1 << 22]))

    def round(self, number: int) -> list[Challenge]:
        """The challenges of a round."""
        if number not in self._rounds:
            rng = np.random.default_rng([self.seed, number])
            self._rounds[number] = [*self.drawer.round(rng, number)]
        return self._rounds[number]

    def decisive_outputs(self, challenge: Challenge) -> tuple[str, ...]:
        """The outputs for which the challenge rejects all decoys."""
        if id(challenge) not in self._decisive:
            self._decisive[id(challenge)] = decoys.decisive_outputs(challenge)
        return self._decisive[id(challenge)]

    def shown(self, answered: Sequence[Challenge], seconds: float = math.inf) -> mutants.Shown:
        """The mutants and errors that these challenges, answered by a kernel, would have caught, as
        far as they can be tried in so many seconds. A case of the op counts as well: a wrong param
        may be seen only where the param is large."""
        key = tuple(id(challenge) for challenge in answered)
        if key not in self._shown:
            decisive = [
                challenge
                for challenge in answered
                if (challenge.plain or challenge.family == "hard")
                and self.decisive_outputs(challenge)
            ]
            self._shown[key] = mutants.shown(decisive, self.drawer.roles, seconds)
        return self._shown[key]


class Examinations:
    """The examinations that several kernels share, with their truths."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], KernelExamination] = {}

    def of(
        self,
        op: Op,
        direction: Direction,
        dtype: str,
        seed: int,
        left_out: frozenset[str] = frozenset(),
        lengths: Mapping[str, Sequence[int]] | None = None,
        dtypes: Mapping[str, Sequence[str]] | None = None,
        axes: frozenset[int] = AXES,
    ) -> KernelExamination:
        """The examination for kernels that take these inputs, lengths, formats and axes."""
        only = tuple(
            tuple((key, tuple(values)) for key, values in sorted((domain or {}).items()))
            for domain in (lengths, dtypes)
        )
        question = op, direction, dtype, seed, left_out
        key = id(op), question[1:], only, axes
        if key not in self._kept:
            self._kept[key] = KernelExamination(*question, lengths, dtypes, axes)
        return self._kept[key]
