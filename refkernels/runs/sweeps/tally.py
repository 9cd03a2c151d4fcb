"""The counts of a sweep: a `SweepTally` for each chunk, merged in any order into that of the whole.

A tally consists of integers, maxima with a fixed rule for ties, and smallest patterns, so merging
is associative and commutative: the same inputs give the same tally, however they are divided into
chunks and shared among workers. In JSON its integers are exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.formats import Format
from refkernels.runs.sweeps import judging, patterns

Json = dict[str, Any]
_ARRAYS = ("counts", "distances", "worst", "worst_bits", "firsts")
BEYOND = "beyond_bound"
"""Kept beside the invariants: answers beyond the bound of an op's forms."""
Side = tuple[int, float | None]  # of a border: the answer's bits, the exact value if known


@dataclass
class SweepTally:
    """Counts by binade (columns `judging.COLUMNS`), ULP distances, the worst input of each binade.

    worst         (|error|, error, uncertainty) by binade, in ulp; |error| is -1 if there is none
    worst_bits    (input's pattern, answer's pattern) of the same
    firsts        the smallest pattern of each column that counts a fault, and its answer; -1: none
    invariants    {name: [how many answers violate it, smallest such pattern, its answer]}
    borders       {pattern: {"before": side of pattern - 1, "after": side of pattern}}: the data by
                  which a step between two chunks is judged
    tiers         {tier of the oracle: how many inputs it answered}
    seconds       {"framework": ..., "total": ...}; the only figures that differ from run to run

    For a function that `takes` two inputs, a pattern is the pair's number (`patterns.numbered`) and
    the binade is the first input's.
    """

    format: Format
    takes: int = 1
    counts: Any = field(init=False)
    distances: Any = field(init=False)
    worst: Any = field(init=False)
    worst_bits: Any = field(init=False)
    firsts: Any = field(init=False)
    invariants: dict[str, list[int]] = field(default_factory=dict)
    borders: dict[int, dict[str, Side]] = field(default_factory=dict)
    tiers: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows, columns = patterns.binades(self.format), len(judging.COLUMNS)
        self.counts = np.zeros((rows, columns), np.int64)
        self.distances = np.zeros(judging.DISTANCES, np.int64)
        self.worst = np.zeros((rows, 3))
        self.worst[:, 0] = -1.0
        number = np.int64 if self.takes == 1 else object  # a pair of float64 has 128 bits
        self.worst_bits = np.full((rows, 2), -1, number)
        self.firsts = np.full((columns, 2), -1, number)

    @property
    def shift(self) -> int:
        """How far a pattern is shifted to give its binade."""
        return self.format.p - 1

    def inputs_of(self, codes: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """The values of each input at these patterns, or at the pairs of these numbers."""
        if self.takes == 1:
            return [patterns.values_of(codes, self.format)]
        pairs = [patterns.parts(number, self.format, self.takes) for number in codes.tolist()]
        sides = (np.array(side, np.uint64) for side in zip(*pairs, strict=True))
        return [patterns.values_of(side, self.format) for side in sides]

    @property
    def table(self) -> tuple[Any, ...]:
        """The arrays that the kernels write into."""
        return self.counts, self.distances, self.worst, self.worst_bits, self.firsts

    @property
    def inputs(self) -> int:
        """The number of inputs tried."""
        return int(self.counts[:, judging.INPUTS].sum())

    def total(self, column: str) -> int:
        """A column's sum over all binades."""
        return int(self.counts[:, judging.COLUMNS.index(column)].sum())

    def worst_binade(self) -> int | None:
        """The binade of the largest error; of several, the one with the smallest pattern."""
        sizes = self.worst[:, 0]
        return None if sizes.max() < 0.0 else int(np.argmax(sizes))

    def add_tiers(self, counted: Mapping[str, int]) -> None:
        """Add the counts of `arithmetic.tiers`."""
        for name, number in counted.items():
            self.tiers[name] = self.tiers.get(name, 0) + number

    def add_violations(self, name: str, number: int, pattern: int, got: int) -> None:
        """Add `number` answers that violate an invariant; `pattern` is the smallest of their
        inputs."""
        entry = self.invariants.setdefault(name, [0, pattern, got])
        entry[0] += number
        if pattern < entry[1]:
            entry[1:] = [pattern, got]

    def merge(self, other: "SweepTally") -> None:
        """Add another tally, none of whose inputs is in this one."""
        self.counts += other.counts
        self.distances += other.distances
        mine, theirs = self.worst[:, 0], other.worst[:, 0]
        smaller = (mine == theirs) & (other.worst_bits[:, 0] < self.worst_bits[:, 0])
        better = (theirs > mine) | smaller
        self.worst[better] = other.worst[better]
        self.worst_bits[better] = other.worst_bits[better]
        for column, (pattern, got) in enumerate(other.firsts.tolist()):
            if pattern >= 0:
                judging.note_first.py_func(self.firsts, column, pattern, got)
        for name, (number, pattern, got) in other.invariants.items():
            self.add_violations(name, number, pattern, got)
        for border, sides in other.borders.items():
            self.borders.setdefault(border, {}).update(sides)
        self.add_tiers(other.tiers)
        for name, seconds in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def to_json(self) -> Json:
        """What differs from an empty tally, by place in its array; floats so that they read back,
        and integers that JSON cannot hold in hexadecimal."""
        empty, arrays = SweepTally(self.format, self.takes), {}
        for name in _ARRAYS:
            own, other = (np.ravel(getattr(tally, name)) for tally in (self, empty))
            places = np.flatnonzero(own != other)
            arrays[name] = [places.tolist(), list(map(_stored, own[places].tolist()))]
        return {
            "format": self.format.name,
            "takes": self.takes,
            "arrays": arrays,
            "invariants": {name: [*map(_stored, kept)] for name, kept in self.invariants.items()},
            "borders": {str(border): sides for border, sides in self.borders.items()},
            "tiers": self.tiers,
            "seconds": self.seconds,
        }

    @staticmethod
    def from_json(content: Json) -> "SweepTally":
        """The tally that `to_json` wrote. Raises LookupError, ValueError or TypeError for other
        content."""
        from refkernels.arithmetic import formats

        tally = SweepTally(formats.get(content["format"]), content["takes"])
        for name in _ARRAYS:
            array, (places, values) = getattr(tally, name), content["arrays"][name]
            read = float if array.dtype == np.float64 else _integer
            for place, value in zip(places, values, strict=True):
                array.reshape(-1)[place] = read(value)
        tally.invariants = {
            name: [number, _integer(pattern), got]
            for name, (number, pattern, got) in content["invariants"].items()
        }
        tally.borders = {int(border): sides for border, sides in content["borders"].items()}
        tally.tiers = dict(content["tiers"])
        tally.seconds = dict(content["seconds"])
        return tally


def _stored(value: Any) -> Any:
    return hex(value) if isinstance(value, int) and value >= 1 << 63 else value


def _integer(value: int | str) -> int:
    return int(value, 16) if isinstance(value, str) else int(value)
