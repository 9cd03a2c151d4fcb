"""What the fuzzers share: a seed, a number of cases, and a line that replays what they find.

    REFKERNELS_FUZZ_SEED=new python -m pytest tests/fuzz       cases that no run has tried
    REFKERNELS_FUZZ_CASES=100000 ...                           so many cases a test
    REFKERNELS_FUZZ_SEED=1 REFKERNELS_FUZZ_CASE=7 ...           that one case again

Every case has its own generator, made from the seed and the case's number, so that one case can be
replayed without those before it. Without a seed the cases are those of seed 0: if the suite fails,
a change is the reason.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hunting import HUNT, seed_of


@dataclass
class Hunt:
    """The cases of one test."""

    test: str
    seed: int
    only: int | None
    run: int = 0

    def cases(self, count: int) -> Iterator[tuple[int, np.random.Generator]]:
        """(number, generator) of each case: `count` of them, or as the environment asks."""
        if self.only is not None:
            yield self._case(self.only)
            return
        for number in range(int(os.environ.get("REFKERNELS_FUZZ_CASES", count * HUNT))):
            yield self._case(number)

    def _case(self, number: int) -> tuple[int, np.random.Generator]:
        self.run += 1
        return number, np.random.default_rng([self.seed, number])

    def replay(self, number: int) -> str:
        """The command that runs this one case again."""
        chosen = f"REFKERNELS_FUZZ_SEED={self.seed} REFKERNELS_FUZZ_CASE={number}"
        return f"replay: {chosen} python -m pytest '{self.test}'"


@pytest.fixture
def hunt(request: pytest.FixtureRequest) -> Hunt:
    """The hunt of this test, as the environment asks for it."""
    case = os.environ.get("REFKERNELS_FUZZ_CASE")
    return Hunt(request.node.nodeid, seed_of(0), None if case is None else int(case))
