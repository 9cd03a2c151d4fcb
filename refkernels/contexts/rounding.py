"""Rounding: what one rounding to nearest in a format may lose, and where it may overflow.

|fl(x) - x| <= u |x| + η / 2, η the smallest subnormal; a sum of numbers of the format loses no η,
since it is a multiple of η. fl(x) is finite for |x| <= the largest number. Gradual underflow is
assumed: flushing to zero loses more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.formats import Format

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rounding:
    """To nearest, in `format`."""

    format: Format

    @property
    def unit(self) -> float:
        return self.format.u

    @property
    def half(self) -> float:
        """η / 2, or the least float64 above it."""
        return max(self.format.min_subnormal / 2, 2.0**-1074)

    def beyond(self, size: Doubles) -> npt.NDArray[np.bool_]:
        """Where a number of that magnitude may overflow; NaN is beyond."""
        return np.asarray(~(size * (1.0 + 2.0**-40) <= self.format.max))

    def lost(self, size: Doubles, underflow: bool = True) -> Doubles:
        """At most |fl(x) - x| for |x| <= size, before the caller rounds it outward."""
        least = self.half if underflow else 0.0
        error = np.where(size > 0.0, self.unit * size + least, 0.0)
        return np.where(self.beyond(size), np.inf, error)

    def holds(self, values: Doubles) -> npt.NDArray[np.bool_]:
        """Which float64 numbers the format holds."""
        with np.errstate(all="ignore"):
            return np.asarray(values.astype(self.format.storage).astype(np.float64) == values)

    def narrower(self, other: Rounding) -> bool:
        """Whether some number of the other format is none of this one."""
        mine, theirs = self.format, other.format
        lowest, its_lowest = mine.min_subnormal, theirs.min_subnormal
        return mine.p < theirs.p or mine.emax < theirs.emax or lowest > its_lowest
