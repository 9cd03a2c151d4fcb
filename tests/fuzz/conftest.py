"""What the fuzzers share: a seed, a budget of seconds, and a line that replays what they find.

    REFKERNELS_FUZZ_SEED=new python -m pytest tests/fuzz       cases that no run has tried
    REFKERNELS_FUZZ_SECONDS=600 ...                            longer than 4 s a test
    REFKERNELS_FUZZ_CASES=100000 ...                           so many cases, however long it takes
    REFKERNELS_FUZZ_SEED=1 REFKERNELS_FUZZ_CASE=7 ...           that one case again

Every case has its own generator, made from the seed and the case's number, so that one case can be
replayed without those before it. Without a seed the cases are those of seed 0: if the suite fails,
a change is the reason.
"""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hunting import HUNT, seed_of

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))  # draws questions
SECONDS = 4.0 * HUNT


@dataclass
class Hunt:
    """The cases of one test, until its budget is spent."""

    test: str
    seed: int
    only: int | None
    seconds: float
    run: int = 0

    def cases(self, least: int = 1) -> Iterator[tuple[int, np.random.Generator]]:
        """(number, generator) of each case; at least so many, however slow they are."""
        least = int(os.environ.get("REFKERNELS_FUZZ_CASES", least))
        end = time.monotonic() + self.seconds
        if self.only is not None:
            yield self._case(self.only)
            return
        while time.monotonic() < end or self.run < least:
            yield self._case(self.run)

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
    seconds = float(os.environ.get("REFKERNELS_FUZZ_SECONDS", SECONDS))
    return Hunt(request.node.nodeid, seed_of(0), None if case is None else int(case), seconds)
