"""Floating-point formats (p, emin, emax) and correct rounding into each of them.

A format holds the numbers k * 2^(e - p + 1) with |k| < 2^p and emin <= e <= emax. Its unit
roundoff is u = 2^-p. ulp(z) is Goldberg's: 2^(max(floor(log2 |z|), emin) - p + 1), taken at the
exact value z and constant through the subnormals.

Sources: IEEE 754-2019; Goldberg (1991), doi:10.1145/103162.103163; Boldo and Melquiond (2008),
"Emulation of FMA and correctly rounded sums", doi:10.1109/TC.2007.70819 (why a double-double
rounds correctly when its low part only breaks ties).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import small
from refkernels.arithmetic.array_decisions import rounded_pairs
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.wording import shown


@dataclass(frozen=True)
class Format:
    """A binary format. `dtype` is None for TF32, which exists only in a multiplier, and float8."""

    name: str
    p: int
    emin: int
    emax: int
    dtype: np.dtype[Any] | None

    @property
    def u(self) -> float:
        """Unit roundoff 2^-p."""
        return 2.0**-self.p

    @property
    def max(self) -> float:
        """The largest finite number."""
        return math.ldexp(2.0 - 2.0 ** (1 - self.p), self.emax)

    @property
    def min_normal(self) -> float:
        """2^emin."""
        return 2.0**self.emin

    @property
    def min_subnormal(self) -> float:
        """2^(emin - p + 1), the spacing of the subnormals."""
        return math.ldexp(1.0, self.emin - self.p + 1)

    @property
    def bits_dtype(self) -> np.dtype[Any]:
        """The unsigned integer dtype of the same width."""
        return np.dtype(f"u{self.storage.itemsize}")

    @property
    def storage(self) -> np.dtype[Any]:
        """The dtype that holds the format's numbers (float32 for TF32)."""
        return np.dtype(np.float32) if self.dtype is None else self.dtype

    def holds(self, other: Format) -> bool:
        """Whether every number of the other format is a number of this one."""
        finer = other.p <= self.p and other.min_subnormal >= self.min_subnormal
        return finer and other.emax <= self.emax

    def __str__(self) -> str:
        return self.name


BINARY16 = Format("float16", 11, -14, 15, np.dtype(np.float16))
BFLOAT16 = Format("bfloat16", 8, -126, 127, np.dtype(ml_dtypes.bfloat16))
TF32 = Format("tf32", 11, -126, 127, None)
BINARY32 = Format("float32", 24, -126, 127, np.dtype(np.float32))
BINARY64 = Format("float64", 53, -1022, 1023, np.dtype(np.float64))

FORMATS = {f.name: f for f in (BINARY16, BFLOAT16, TF32, BINARY32, BINARY64)}
# the bits that float32 has beyond bfloat16's
_CUT_OFF, _HALF = np.uint32(0xFFFF), np.uint32(0x8000)
_BY_DTYPE = {f.dtype: f for f in FORMATS.values() if f.dtype is not None}


def get(format: Format | str | npt.DTypeLike) -> Format:
    """The format of that name ("float16", "bfloat16", "tf32", "float32", "float64") or dtype.

    Raises ValueError for anything else.
    """
    if isinstance(format, Format):
        return format
    if isinstance(format, str) and format in FORMATS:
        return FORMATS[format]
    try:
        return _BY_DTYPE[np.dtype("void" if format is None else format)]  # None would be float64
    except Exception:  # NumPy raises various errors for an object that is not a dtype
        names = ", ".join(FORMATS)
        raise ValueError(
            f"{shown(format)} is not a floating-point format: use one of {names}."
        ) from None


def is_one(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is that of a format."""
    return dtype in _BY_DTYPE


def of(array: npt.NDArray[Any]) -> Format:
    """The format of an array's elements."""
    return _BY_DTYPE.get(array.dtype) or get(array.dtype)


def working_format(format: Format | str) -> Format:
    """The format in which kernels compute what they store in this one: binary64 for binary64, else
    binary32, with its exponents if they are wider."""
    stored = get(format)
    work = BINARY64 if stored.p > BINARY32.p else BINARY32
    if stored.emax > work.emax or stored.emin < work.emin:
        work = without_range(work, stored.emax > work.emax, stored.emin < work.emin)
    return work


def without_range(format: Format, above: bool = True, below: bool = True) -> Format:
    """The format with float64's exponents, which stand for unlimited ones, above or below."""
    emax = BINARY64.emax if above else format.emax
    emin = BINARY64.emin if below else format.emin
    return replace(format, name=f"{format.name} without range", emin=emin, emax=emax)


@njit
def exponent_of(hi: float, lo: float) -> int:
    """floor(log2 |hi + lo|) for a nonzero pair with hi = fl(hi + lo)."""
    mantissa, exponent = math.frexp(hi)
    below = abs(mantissa) == 0.5 and lo != 0.0 and (lo > 0.0) != (hi > 0.0)
    return exponent - 2 if below else exponent - 1


@njit
def round_pair(hi: float, lo: float, scale: int, p: int, emin: int, emax: int) -> float:
    """(hi + lo) * 2^scale, rounded once to the format, ties to even; the result as a float64.

    Requires hi = fl(hi + lo) and p <= 53. In units of the target's last place t = hi * 2^(scale-q)
    is an integer or half-integer whenever a rounding boundary is near, and |lo| is at most half an
    ulp of hi: so lo cannot carry the value across a boundary, it only breaks exact ties.
    """
    if hi == 0.0 or math.isnan(hi) or math.isinf(hi):
        return hi
    q = max(exponent_of(hi, lo) + scale, emin) - p + 1
    t = math.ldexp(hi, scale - q)
    n = np.rint(t)
    fraction = t - n
    if fraction == 0.5 and lo > 0.0:
        n += 1.0
    elif fraction == -0.5 and lo < 0.0:
        n -= 1.0
    result = math.ldexp(n, q)
    if abs(result) >= math.ldexp(2.0, emax):
        result = math.inf
    return math.copysign(result, hi)


@njit
def _round_array(values: Any, p: int, emin: int, emax: int) -> Any:
    rounded = np.empty_like(values)
    for i in range(values.size):
        rounded[i] = round_pair(values[i], 0.0, 0, p, emin, emax)
    return rounded


def round_to(values: npt.ArrayLike, format: Format | str) -> npt.NDArray[Any]:
    """float64 values rounded once to the format (nearest, ties to even), in its storage dtype.

    Overflow gives an infinity; NaN stays NaN; signs of zeros are kept.
    """
    target = get(format)
    wide = np.ascontiguousarray(values, dtype=np.float64)
    if target.dtype is not None:
        stored = cast(wide, target)
        return (stored.copy() if stored is wide else stored).reshape(np.shape(values))
    limits = (target.p, target.emin, target.emax)
    with np.errstate(all="ignore"):  # a signalling NaN is data here
        if small.allowance.covers(rounded_pairs, wide.size, kernel=_round_array):
            rounded = rounded_pairs(wide, np.zeros(()), 0, limits)
        else:
            rounded = _round_array(wide.ravel(), *limits)
        return rounded.reshape(np.shape(values)).astype(target.storage)


def cast(array: npt.NDArray[Any], format: Format | str | npt.DTypeLike) -> npt.NDArray[Any]:
    """The numbers of an array of any format, rounded once to the format (nearest, ties to even), in
    its storage dtype.

    So does `astype`, except from float64 to bfloat16: it goes by float32, and a number that lands
    there on a midpoint of two bfloat16 is rounded twice. Such a number first moves to its
    neighbour on the side that it came from.
    """
    target = get(format)
    if target.dtype is None:
        return round_to(array, target)
    if array.dtype == target.storage:
        return array
    if target is not BFLOAT16 or array.dtype != BINARY64.storage:
        with np.errstate(all="ignore"):
            return array.astype(target.storage, copy=False)
    wide = np.ascontiguousarray(array)
    with np.errstate(all="ignore"):
        near = wide.astype(np.float32)
        midpoints = np.flatnonzero((near.view(np.uint32) & _CUT_OFF) == _HALF)
        if midpoints.size:
            exact, rounded = wide.reshape(-1)[midpoints], near.reshape(-1)[midpoints]
            origin = np.where(exact == rounded, rounded, np.copysign(np.inf, exact - rounded))
            near.reshape(-1)[midpoints] = np.nextafter(rounded, origin.astype(np.float32))
        return near.reshape(array.shape).astype(target.storage)


def round_ties_away(values: npt.ArrayLike, format: Format | str) -> npt.NDArray[Any]:
    """As `round_to`, with ties away from zero: how tensor cores round float32 inputs to TF32."""
    target = get(format)
    wide = np.asarray(values, dtype=np.float64)
    _, exponent = np.frexp(wide)
    q = np.maximum(exponent - 1, target.emin) - target.p + 1
    t = np.ldexp(np.abs(wide), -q)
    with np.errstate(over="ignore", invalid="ignore"):
        below = np.floor(t)  # t - below is exact, where t + 0.5 would be rounded
        rounded = np.copysign(np.ldexp(below + (t - below >= 0.5), q), wide)
        rounded = np.where(np.abs(rounded) > target.max, np.copysign(np.inf, wide), rounded)
        rounded = np.where(np.isfinite(wide), rounded, wide)
        return rounded.astype(target.storage)


def truncate_to(values: npt.ArrayLike, format: Format | str) -> npt.NDArray[Any]:
    """float64 values rounded toward zero to the format, in its storage dtype.

    |result| <= |value|, so that only an infinity gives an infinity; NaN stays NaN and zeros keep
    their signs. A conversion that cuts bits off, as in Triton's interpreter.
    """
    target = get(format)
    wide = np.asarray(values, dtype=np.float64)
    _, exponent = np.frexp(wide)
    q = np.maximum(exponent - 1, target.emin) - target.p + 1
    with np.errstate(over="ignore", invalid="ignore"):
        cut = np.ldexp(np.trunc(np.ldexp(wide, -q)), q)
        cut = np.copysign(np.minimum(np.abs(cut), target.max), wide)
        return np.where(np.isfinite(wide), cut, wide).astype(target.storage)


def ordinals(array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Consecutive integers for consecutive floats: -0 and +0 are 0, the smallest subnormal is 1.

    Shape and order are kept. NaNs get ordinals beyond infinity's; the caller filters them out.
    """
    format = of(array)
    signed = array.view(np.dtype(f"i{format.storage.itemsize}")).astype(np.int64)
    magnitude = np.int64((1 << (8 * format.storage.itemsize - 1)) - 1)
    return np.where(signed >= 0, signed, -(signed & magnitude))


def computed_nans(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Mask of the NaNs that arithmetic gives, in this format or converted from a narrower one: of
    payload 0 (IEEE 754 processors), or of ones throughout (CUDA). Other NaNs were stored."""
    width = of(array).p - 1
    bits = np.ascontiguousarray(array).view(of(array).bits_dtype).astype(np.uint64)
    fraction = bits.reshape(array.shape) & np.uint64((1 << width) - 1)
    ones = [((1 << p) - 1) << (width - p) for p in (2, 3, 7, 10, 23, 52) if p <= width]
    usual = np.array([1 << (width - 1), *ones], np.uint64)
    return np.asarray(np.isnan(array) & np.isin(fraction, usual))
