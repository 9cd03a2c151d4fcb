"""The values that a numeric param may take, declared with the op. The error for a value outside
states the rule.

params={"delta": 1.0}, domains={"delta": POSITIVE}
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from refkernels.arithmetic.wording import shown


@dataclass(frozen=True)
class Domain:
    """The finite numbers from `least` to `most`. `open_least`, `open_most`: without that end."""

    least: float = -math.inf
    most: float = math.inf
    open_least: bool = False
    open_most: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.least if self.open_least else value >= self.least
        below = value < self.most if self.open_most else value <= self.most
        return above and below and math.isfinite(value)

    def check(self, name: str, value: float) -> None:
        """Raises ValueError for a number outside."""
        if value not in self:
            raise ValueError(f"{name} is {shown(value)}: it must be {self.rule}.")

    @property
    def rule(self) -> str:
        """The numbers in words: "a finite number of at least 0"."""
        if math.isfinite(self.most - self.least):
            ends = [(self.least, self.open_least), (self.most, self.open_most)]
            without = "".join(f", but not {end:g}" for end, is_open in ends if is_open)
            return f"a number from {self.least:g} to {self.most:g}{without}"
        if math.isfinite(self.least):
            return (
                f"a finite number{' above' if self.open_least else ' of at least'} {self.least:g}"
            )
        if math.isfinite(self.most):
            return f"a finite number{' below' if self.open_most else ' of at most'} {self.most:g}"
        return "a finite number"

    def draw(self, rng: np.random.Generator) -> float:
        """A random number of the domain, with few digits, so that formats hold it. One draw in
        four is an end that belongs to the domain, if there is one."""
        ends = [end for end in (self.least, self.most) if end in self]
        if ends and rng.random() < 0.25:
            return float(rng.choice(ends))
        if math.isfinite(self.most - self.least):
            return self.least + (self.most - self.least) * float(rng.integers(1, 64)) / 64
        size = float(np.ldexp(rng.integers(1, 16), int(rng.integers(-8, 4))))
        if math.isfinite(self.least):
            return self.least + size
        return size if math.isinf(self.most) and rng.random() < 0.5 else -size


REAL = Domain()
NOT_NEGATIVE = Domain(0.0)
POSITIVE = Domain(0.0, open_least=True)
PROBABILITY = Domain(0.0, 1.0)
BELOW_ONE = Domain(0.0, 1.0, open_most=True)
