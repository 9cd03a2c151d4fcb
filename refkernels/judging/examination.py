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

from refkernels.judging import decoys, mutants
from refkernels.judging.calls import Protocol, protocol
from refkernels.judging.challenges import Drawer
from refkernels.judging.questions import ANYTHING, KernelDomain, elements
from refkernels.judging.standard import Challenge
from refkernels.op import Direction, Op

LARGEST = 1 << 14  # elements of an answer that is compared with decoys, of inputs 8 times as many
OWN = 1 << 22  # the product of all lengths of a kernel's own shapes, in the first round


class KernelExamination:
    """The challenges of one op, dtype and seed, of inputs that a kernel takes."""

    def __init__(
        self, op: Op, direction: Direction, dtype: str, seed: int, domain: KernelDomain = ANYTHING
    ) -> None:
        self.drawer = Drawer(op, direction, dtype, domain)
        self.seed = seed
        self.told: dict[str, set[str]] = {}  # flags of the truths, which later kernels share
        self._rounds: dict[int, list[Challenge]] = {}
        self._decisive = cache(decoys.decisive_outputs)
        self._shown = cache(mutants.shown)

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
        return self._decisive(asked) if max(sizes) <= LARGEST else ()

    def shown(self, answered: Sequence[Challenge], seconds: float = math.inf) -> mutants.Shown:
        """The mutants and errors that these challenges would have caught, as far as they can be
        tried in so many seconds; the op's cases too: a wrong param may be seen there alone."""
        tried = (c for c in answered if c.plain or c.family == "hard")
        return self._shown(tuple(c for c in tried if self.decisive_outputs(c)), seconds)


class Examinations:
    """The examinations that several kernels share, with their truths."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], KernelExamination] = {}

    def of(
        self, op: Op, direction: Direction, dtype: str, seed: int, domain: KernelDomain = ANYTHING
    ) -> KernelExamination:
        """The examination for kernels that take these inputs."""
        key = id(op), direction, dtype, seed, repr(domain)
        if key not in self._kept:
            self._kept[key] = KernelExamination(op, direction, dtype, seed, domain)
        return self._kept[key]
