"""The figures that the pytest plugin prints at the end: assertions run, and the worst of them."""

import os
from dataclasses import dataclass


@dataclass
class AssertionTally:
    """The figures of this process. `where`: the output and test of the largest error / bound."""

    assertions: int = 0
    unusual: int = 0
    largest_ratio: float = 0.0
    where: str = ""

    def add(self, output: str, ratio: float) -> None:
        self.assertions += 1
        if ratio > self.largest_ratio or not self.where:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0]
            self.largest_ratio, self.where = ratio, f"{output}, {test}" if test else output


TALLY = AssertionTally()
