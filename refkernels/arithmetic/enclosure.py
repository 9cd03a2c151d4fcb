"""Enclosure: a value with a proven error bound, element by element.

The exact real value of every element lies in (hi + lo ± radius) * 2^scale. hi = fl(hi + lo), so hi
alone is the value correctly rounded to float64 whenever the radius is small enough; scale is 0
except where float64's range does not suffice. NaN and infinities live in hi, with lo = radius = 0.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.formats import Format, exponent_of, round_pair
from refkernels.arithmetic.jit import njit


class Enclosure:
    """(hi + lo ± radius) * 2^scale, elementwise; immutable by convention.

    Parameters: `hi` float64 array; `lo`, `radius` float64 and `scale` integer, each broadcast to
    hi's shape. Raises ValueError where a radius is negative or NaN, or a shape does not broadcast.
    """

    __slots__ = ("hi", "lo", "radius", "scale")
    __array_priority__ = 10.0

    def __init__(
        self,
        hi: npt.ArrayLike,
        lo: npt.ArrayLike = 0.0,
        radius: npt.ArrayLike = 0.0,
        scale: npt.ArrayLike = 0,
    ) -> None:
        self.hi = np.asarray(hi, dtype=np.float64)
        shape = self.hi.shape
        self.lo = np.broadcast_to(np.asarray(lo, dtype=np.float64), shape)
        self.radius = np.broadcast_to(np.asarray(radius, dtype=np.float64), shape)
        self.scale = np.broadcast_to(np.asarray(scale, dtype=np.int64), shape)
        if not (self.radius >= 0.0).all():
            raise ValueError("An Enclosure's radius must be a number >= 0 in every element.")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.hi.shape

    @property
    def size(self) -> int:
        return self.hi.size

    @property
    def ndim(self) -> int:
        return self.hi.ndim

    @property
    def exact_zero(self) -> npt.NDArray[np.bool_]:
        """Where the exact value is zero, for certain."""
        return (self.hi == 0.0) & (self.radius == 0.0)

    def __len__(self) -> int:
        return len(self.hi)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False and self.scale.any():
            raise ValueError("A scaled Enclosure cannot become an array without a copy.")
        values = self.round(formats.BINARY64)[0] if self.scale.any() else self.hi
        values = values if dtype is None else values.astype(dtype, copy=False)
        return np.array(values) if copy else values

    def __getitem__(self, index: Any) -> "Enclosure":
        return Enclosure(self.hi[index], self.lo[index], self.radius[index], self.scale[index])

    def __repr__(self) -> str:
        widest = float(np.max(self.radius, initial=0.0))
        return f"Enclosure(shape={self.shape}, largest radius={widest:.3g}, hi={self.hi!r})"

    def reshape(self, *shape: Any) -> "Enclosure":
        """The same elements in another shape."""
        parts = (self.hi, self.lo, self.radius, self.scale)
        return Enclosure(*(part.reshape(*shape) for part in parts))

    def replace(self, flat_indices: npt.NDArray[np.intp], other: "Enclosure") -> "Enclosure":
        """A copy whose elements at the flat (C order) indices are other's, in order."""
        parts = []
        for name in self.__slots__:
            part = np.array(getattr(self, name))
            part.reshape(-1)[flat_indices] = getattr(other, name).reshape(-1)
            parts.append(part)
        return Enclosure(*parts)

    def round(self, format: Format | str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """The values rounded to the format (nearest even), and where that rounding is certified:
        where both ends of the interval round to the same bits. Exact elements always are.

        An inherent limit: a value within about 2^-106 of itself of a midpoint of two float64, and
        not exactly that midpoint, cannot be certified in float64, however sharp the oracle. hi and
        lo then sum to the midpoint, so that what decides can only be in the radius, and the
        interval reaches to both sides. hi is right nevertheless where it comes from exact
        arithmetic. Narrower formats have no such limit: there lo says which side it is."""
        target = formats.get(format)
        values, certified = _round(*self._flat(), target.p, target.emin, target.emax)
        with np.errstate(over="ignore"):
            rounded = values.reshape(self.shape).astype(target.storage)
        return rounded, certified.reshape(self.shape)

    def uncertainty(self, format: Format | str) -> npt.NDArray[np.float64]:
        """radius / ulp in the format, with the smallest ulp that the interval touches."""
        target = formats.get(format)
        return _uncertainty(*self._flat(), target.p, target.emin).reshape(self.shape)

    def lower_upper(self, index: Any) -> tuple[Fraction, Fraction]:
        """The exact ends of one (finite) element's interval."""
        power = Fraction(2) ** int(self.scale[index])
        middle = Fraction(float(self.hi[index])) + Fraction(float(self.lo[index]))
        radius = Fraction(float(self.radius[index]))
        return (middle - radius) * power, (middle + radius) * power

    def contains(self, index: Any, value: Fraction | int) -> bool:
        """Whether the interval of one (finite) element holds the rational."""
        lower, upper = self.lower_upper(index)
        return lower <= value <= upper

    def _flat(self) -> tuple[npt.NDArray[Any], ...]:
        parts = (self.hi, self.lo, self.radius, self.scale)
        return tuple(np.ascontiguousarray(part).reshape(-1) for part in parts)


@njit
def _round(hi: Any, lo: Any, radius: Any, scale: Any, p: int, emin: int, emax: int) -> Any:
    values = np.empty_like(hi)
    certified = np.empty(hi.size, np.bool_)
    for i in range(hi.size):
        s = scale[i]
        value = round_pair(hi[i], lo[i], s, p, emin, emax)
        values[i] = value
        certified[i] = True
        if radius[i] != 0.0:
            low = directed(hi[i], lo[i], -radius[i])
            high = directed(hi[i], lo[i], radius[i])
            lower = round_pair(low[0], low[1], s, p, emin, emax)
            upper = round_pair(high[0], high[1], s, p, emin, emax)
            same_sign = math.copysign(1.0, lower) == math.copysign(1.0, upper)
            certified[i] = lower == upper and same_sign and low[0] != 0.0 and high[0] != 0.0
    return values, certified


@njit
def directed(hi: float, lo: float, radius: float) -> tuple[float, float]:
    """A normalised pair at or beyond hi + lo + radius, on the side of radius's sign."""
    s, e = two_sum(lo, radius)
    if radius < 0.0 and e < 0.0:
        s = np.nextafter(s, -math.inf)
    elif radius > 0.0 and e > 0.0:
        s = np.nextafter(s, math.inf)
    return two_sum(hi, s)


@njit
def _uncertainty(hi: Any, lo: Any, radius: Any, scale: Any, p: int, emin: int) -> Any:
    result = np.zeros_like(hi)
    for i in range(hi.size):
        if radius[i] == 0.0:
            continue
        toward_zero = -radius[i] if hi[i] > 0.0 else radius[i]
        inner = directed(hi[i], lo[i], toward_zero)
        crosses = inner[0] == 0.0 or (inner[0] > 0.0) != (hi[i] > 0.0)
        floor = emin if crosses else max(exponent_of(inner[0], inner[1]) + scale[i], emin)
        result[i] = math.ldexp(radius[i], scale[i] - (floor - p + 1))
    return result
