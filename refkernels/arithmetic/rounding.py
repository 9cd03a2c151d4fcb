"""Rounding: the largest error of one rounding to nearest in a format, and where it may overflow.

|fl(x) - x| <= u |x| + η / 2, with η the smallest subnormal. A sum of numbers of the format does not
underflow, since it is a multiple of η. fl(x) is finite for |x| <= the largest number. Gradual
underflow is assumed: flushing to zero loses more.

A kernel may round first in a wider format, of unit u': (1 + u)(1 + u') - 1 = u + u' (1 + u). So
`unit` and `half` exceed u and η / 2 a little: for float32 by a rounding to float64, for 16 bits by
one to float64 and one to float32.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format

ETA = 2.0**-1074
_WIDER = 2.0**-24 + 2.0**-52  # u' of a rounding to float64, then float32
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rounding:
    """Rounding to nearest in `format`."""

    format: Format

    @functools.cached_property
    def unit(self) -> float:
        u, p = self.format.u, self.format.p
        wider = 0.0 if p >= 53 else 2.0**-53 if p >= 24 else _WIDER
        return u + wider * (1.0 + u) * (1.0 + 2.0**-50)

    @functools.cached_property
    def half(self) -> float:
        """η / 2 and that of the wider formats, or the least float64 above it."""
        if self.format.p >= 53:
            return ETA
        wide = self.format.p >= 24 or self.format.emin <= formats.BINARY64.emin
        return self.format.min_subnormal / 2 + (ETA if wide else 2.0**-149)

    def beyond(self, size: Doubles) -> npt.NDArray[np.bool_]:
        """Where a number of that magnitude may overflow, half an ulp above the largest; of NaN."""
        above = 2.0 ** -(self.format.p + 2) if self.format.p < 40 else 0.0  # half of that
        with np.errstate(over="ignore"):
            return np.asarray(~(size * (1.0 + 2.0**-40) <= self.format.max * (1.0 + above)))

    def lost(self, size: Doubles, underflow: bool = True) -> Doubles:
        """At most |fl(x) - x| for |x| <= size, before the caller rounds it outward."""
        least = self.half if underflow else 0.0
        error = np.asarray(self.unit * size + least)
        error[np.logical_not(size > 0.0)] = 0.0
        error[self.beyond(size)] = np.inf
        return error

    def holds(self, values: Doubles) -> npt.NDArray[np.bool_]:
        """Which float64 numbers the format holds."""
        with np.errstate(all="ignore"):
            if self.format.name not in formats.FORMATS:
                digits = np.ldexp(np.frexp(values)[0], self.format.p)
                held = (np.rint(digits) == digits) & (np.abs(values) <= self.format.max)
                return np.asarray(held & (np.fmod(values, self.format.min_subnormal) == 0.0))
            return np.asarray(values.astype(self.format.storage).astype(np.float64) == values)

    def narrower(self, other: Rounding) -> bool:
        """Whether the other format has a number that this one lacks."""
        own_format, other_format = self.format, other.format
        lowest, its_lowest = own_format.min_subnormal, other_format.min_subnormal
        return (
            own_format.p < other_format.p
            or own_format.emax < other_format.emax
            or lowest > its_lowest
        )
