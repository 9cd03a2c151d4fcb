"""An examination: the challenges of one op, dtype and seed, round after round.

A truth is computed when the first answer is compared with it, never before. Kernels that share
examinations share their truths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from refkernels.judging import decoys, mutants, timing
from refkernels.judging.calls import Protocol, protocol
from refkernels.judging.challenges import Drawer
from refkernels.judging.standard import Challenge
from refkernels.op import Direction, Op


class KernelExamination:
    """The challenges of one op, dtype and seed. `taken`: what a kernel takes, as for `Drawer`."""

    def __init__(self, op: Op, direction: Direction, dtype: str, seed: int, **taken: Any) -> None:
        self.drawer = Drawer(op, direction, dtype, **taken)
        self.seed = seed
        self._rounds: dict[int, list[Challenge]] = {}
        self.decisive_outputs = cache(decoys.decisive_outputs)
        """The outputs for which a challenge rejects all decoys."""
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
        self, op: Op, direction: Direction, dtype: str, seed: int, **taken: Any
    ) -> KernelExamination:
        """The examination for kernels that take the same."""
        drawer = Drawer(op, direction, dtype, **taken)
        only = [repr(sorted((domain or {}).items())) for domain in (drawer.lengths, drawer.dtypes)]
        wanted = drawer.left_out, drawer.axes, drawer.allow_overflow, *only
        key = id(op), direction, dtype, seed, *wanted
        if key not in self._kept:
            self._kept[key] = KernelExamination(op, direction, dtype, seed, **taken)
        return self._kept[key]
