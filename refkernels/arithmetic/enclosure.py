"""Enclosure: a value with a proven error bound, element by element.

The exact real value of every element lies strictly inside (hi + lo ± radius) * 2^scale, or is
hi + lo itself where radius = 0. So an interval that ends at hi (|lo| = radius) or at zero tells on
which side of it the value is, however near it is. hi = fl(hi + lo), so hi alone is the value
correctly rounded to float64 whenever the radius is small enough. scale is 0 except where float64's
range does not suffice, and within ±SCALE_LIMIT. Smaller numbers lie between zero and a power of
two; larger ones have hi = ±infinity and radius = infinity, which means a finite number beyond every
format, of that sign. NaN and true infinities are stored in hi, with lo = radius = 0.
"""

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import array_decisions, decisions, formats, presentation
from refkernels.arithmetic.arrays import as_float_array, as_whole_numbers, spread
from refkernels.arithmetic.blocks import each_block, flat, read_only, whole
from refkernels.arithmetic.decisions import directed
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.no_arithmetic import NoArithmetic
from refkernels.arithmetic.protocols import read
from refkernels.arithmetic.scalars import as_count, as_real
from refkernels.arithmetic.wording import shown

__all__ = ["PARTS", "SCALE_LIMIT", "Enclosure", "Relative", "directed", "trusted"]

SCALE_LIMIT = 2**30  # kernels' exponents have 32 bits; this leaves room for sums
_WIDEST = 2**31 - 2**12  # the largest scale: formats' exponents are subtracted from it in 32 bits

_NOTHING, _NO_SCALE = np.zeros(()), np.zeros((), np.int64)  # lo or scale of most Enclosures

PARTS = ("hi", "lo", "radius", "scale")


@dataclass(frozen=True)
class Relative:
    """A radius of factor |hi|, 0 where hi is zero, infinite or NaN. It becomes an array only when
    asked for: writing one takes as long as computing a sine."""

    factor: float


class Enclosure(NoArithmetic):
    """(hi + lo ± radius) * 2^scale, elementwise; immutable by convention.

    Parameters: `hi` float64 array; `lo`, `radius` float64 and `scale` integer, each broadcast to
    hi's shape; `radius` may be `Relative`. Raises ValueError where a radius is negative or NaN, a
    lo is infinite or NaN, a scale is beyond 32 bits, or a shape does not broadcast; TypeError for
    anything but numbers.

    `np.asarray` and `numpy.testing` take it as an array of float64. It has no arithmetic, which
    would have to carry the radius: operators and NumPy's functions raise TypeError.
    """

    __slots__ = ("_radius", "hi", "lo", "scale")

    @with_default_fenv
    def __init__(
        self,
        hi: npt.ArrayLike,
        lo: npt.ArrayLike = 0.0,
        radius: npt.ArrayLike | Relative = 0.0,
        scale: npt.ArrayLike = 0,
    ) -> None:
        low = _part(lo, np.float64, "lo")
        if not _is_finite(low):
            raise ValueError("An Enclosure's lo must be a finite number in every element.")
        self._hold(hi, low, radius, scale)

    def _hold(self, hi: Any, lo: Any, radius: Any, scale: Any, check: bool = True) -> None:
        self.hi = _part(hi, np.float64, "hi")
        shape = self.hi.shape
        self.lo = _of_shape(shape, _part(lo, np.float64, "lo"), "lo")
        powers = _part(scale, np.int64, "scale")
        unknown = powers if check else _NO_SCALE
        if not -_WIDEST <= unknown.min(initial=0) <= unknown.max(initial=0) <= _WIDEST:
            raise ValueError(f"An Enclosure's scale must be within ±{_WIDEST}.")
        self.scale = _of_shape(shape, powers, "scale")
        if isinstance(radius, Relative):
            widths = np.asarray(radius.factor)
            self._radius: npt.NDArray[Any] | Relative = radius
        else:
            widths = _part(radius, np.float64, "radius")
            self._radius = _of_shape(shape, widths, "radius")
        # the minimum is NaN if there is one
        if check and widths.size and not np.minimum.reduce(widths, axis=None) >= 0.0:
            raise ValueError("An Enclosure's radius must be a number >= 0 in every element.")

    @property
    @with_default_fenv
    def radius(self) -> npt.NDArray[np.float64]:
        """The radii, of hi's shape."""
        if isinstance(self._radius, Relative):
            widths = np.empty(self.size)
            factor = self._radius.factor
            kernel, fallback = decisions.relative_radii, array_decisions.relative_radii
            each_block(kernel, self.size, whole(self.hi), factor, widths, fallback=fallback)
            self._radius = widths.reshape(self.shape)
        return self._radius

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
    @with_default_fenv
    def exact_zero(self) -> npt.NDArray[np.bool_]:
        """Where the exact value is zero, for certain."""
        return (self.hi == 0.0) & (self.radius == 0.0)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("An Enclosure of no axes is one value, and has no length.")
        return len(self.hi)

    @with_default_fenv
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if not isinstance(copy, bool | None):
            raise TypeError(f"copy is {shown(copy)}, but it must be True, False or None.")
        if copy is False and self.scale.any():
            raise ValueError("A scaled Enclosure cannot become an array without a copy.")
        try:
            target = np.dtype(np.float64 if dtype is None else dtype)
        except Exception as failure:  # NumPy's message calls the repr of the caller's object
            raise TypeError(f"dtype is {shown(dtype)}, which is not one of NumPy's.") from failure
        if formats.is_one(target) and target != np.float64:
            return self.round(formats.get(target))[0]
        values = self.round(formats.BINARY64)[0] if self.scale.any() else self.hi
        with np.errstate(over="ignore", invalid="ignore"):  # as far as the dtype reaches
            values = values.astype(target, copy=False)
        return np.array(values) if copy else values

    def __getitem__(self, index: Any) -> "Enclosure":
        """The elements that NumPy's indexing chooses. Raises IndexError for anything that is not an
        index of this shape."""
        relative = isinstance(self._radius, Relative)
        try:
            chosen = _index(index)
            radius = self._radius if relative else self.radius[chosen]
            hi, lo, scale = self.hi[chosen], self.lo[chosen], self.scale[chosen]
        except Exception as failure:
            raise IndexError(
                f"{shown(index)} is not an index of an Enclosure of shape {self.shape}."
            ) from failure
        return trusted(hi, lo, radius, scale)

    @with_default_fenv
    def __repr__(self) -> str:
        return presentation.line(self)

    @with_default_fenv
    def _repr_markdown_(self) -> str:
        return presentation.table(self)

    def reshape(self, *shape: Any) -> "Enclosure":
        """The same elements in another shape. Raises ValueError for a shape of another size."""
        reshaped = object.__new__(Enclosure)
        try:
            lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
            sizes = [as_count(n, "a length", least=-1) for n in lengths]
            reshaped.hi, reshaped.lo = self.hi.reshape(sizes), self.lo.reshape(sizes)
            reshaped.scale, reshaped._radius = self.scale.reshape(sizes), self._radius
            if not isinstance(self._radius, Relative):
                reshaped._radius = self._radius.reshape(sizes)
        except (TypeError, ValueError) as failure:
            raise ValueError(
                f"An Enclosure of shape {self.shape} has no shape {shown(shape)}."
            ) from failure
        return reshaped

    def replace(self, flat_indices: npt.NDArray[np.intp], other: "Enclosure") -> "Enclosure":
        """A copy whose elements at the flat (C order) indices are other's, in order.

        Raises TypeError where other is not an Enclosure, ValueError where it has another number of
        elements or an index is out of range.
        """
        if not isinstance(other, Enclosure):
            raise TypeError("An Enclosure's elements are replaced by an Enclosure's.")
        places = as_whole_numbers(flat_indices, "flat_indices")
        if places.shape != (other.size,) or not np.all((places >= 0) & (places < self.size)):
            raise ValueError(
                f"flat_indices must be {other.size} of 0 to {self.size - 1}, one for each element "
                "that replaces another."
            )
        parts = []
        for name in PARTS:
            part = np.array(getattr(self, name), order="C")  # reshape must not copy
            part.reshape(-1)[places] = getattr(other, name).reshape(-1)
            parts.append(part)
        return trusted(*parts)

    @with_default_fenv
    def round(self, format: Format | str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """The values rounded to the format (nearest even), and where that rounding is certified:
        where all numbers inside the interval round to the same bits. Exact elements always are."""
        target = formats.get(format)
        # float32 holds every number of the narrower formats.
        values = np.empty(self.size, np.float64 if target.p == 53 else np.float32)
        certified = np.empty(self.size, np.bool_)
        self._decide(
            decisions.round_elements, array_decisions.round_elements, target, values, certified
        )
        rounded = values.reshape(self.shape).astype(target.storage, copy=False)
        return rounded, certified.reshape(self.shape)

    @with_default_fenv
    def undecided(self, format: Format | str) -> npt.NDArray[np.bool_]:
        """Where the rounding to the format is not certified: ~round(format)[1], without the values
        and faster."""
        target = formats.get(format)
        marks = np.empty(self.size, np.bool_)
        self._decide(
            decisions.undecided_roundings, array_decisions.undecided_roundings, target, marks
        )
        return marks.reshape(self.shape)

    @with_default_fenv
    def uncertainty(self, format: Format | str) -> npt.NDArray[np.float64]:
        """radius / ulp in the format, with the smallest ulp that the interval touches."""
        target = formats.get(format)
        ratios = np.empty(self.size)
        self._decide(decisions.uncertainties, array_decisions.uncertainties, target, ratios)
        return ratios.reshape(self.shape)

    @with_default_fenv
    def wider_than(self, limit: float, format: Format | str) -> npt.NDArray[np.bool_]:
        """Where uncertainty(format) > limit, without a temporary of float64."""
        target = formats.get(format)
        marks = np.empty(self.size, np.bool_)
        self._decide(
            decisions.undecided_widths,
            array_decisions.undecided_widths,
            target,
            as_real(limit, "limit"),
            marks,
        )
        return marks.reshape(self.shape)

    def _decide(self, kernel: Any, fallback: Any, format: Format, *rest: Any) -> None:
        """Runs the kernel of `decisions`, or its fallback, on all elements."""
        limits = (format.p, format.emin, format.emax)
        each_block(kernel, self.size, *self.columns(), limits, *rest, fallback=fallback)

    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """hi, lo, radius, scale for kernels: flat, contiguous, read-only; hi is whole, a constant
        beside it short (see `blocks.flat`)."""
        return whole(self.hi), flat(self.lo), flat(self.radius), flat(self.scale)

    @with_default_fenv
    def lower_upper(self, index: Any) -> tuple[Fraction, Fraction]:
        """The exact ends of one element's interval, which is open.

        Raises ValueError where the index chooses several, and where it is NaN or infinite;
        IndexError where it chooses none.
        """
        element = self[index]
        parts = [
            float(part.flat[0])
            for part in (element.hi, element.lo, element.radius)
            if element.size == 1
        ]
        if not parts or not np.isfinite(parts).all() or abs(element.scale.flat[0]) > SCALE_LIMIT:
            raise ValueError(f"{shown(index)} chooses no single finite element, which has ends.")
        middle, radius = Fraction(parts[0]) + Fraction(parts[1]), Fraction(parts[2])
        power = Fraction(2) ** int(element.scale.flat[0])
        return (middle - radius) * power, (middle + radius) * power

    @with_default_fenv
    def contains(self, index: Any, value: Fraction | int) -> bool:
        """Whether the interval of one element holds the rational. Raises ValueError and
        IndexError as `lower_upper` does, and TypeError for a value that is not a rational."""
        if not isinstance(value, numbers.Rational):
            raise TypeError(f"value is {shown(value)}, but it must be an integer or a Fraction.")
        lower, upper = self.lower_upper(index)
        return lower < value < upper or lower == value == upper


def trusted(
    hi: npt.ArrayLike,
    lo: npt.ArrayLike = 0.0,
    radius: npt.ArrayLike | Relative = 0.0,
    scale: npt.ArrayLike = 0,
    *,
    check: bool = True,
) -> Enclosure:
    """Enclosure(hi, lo, radius, scale) of a kernel's results, whose lo is finite. Checking it would
    cost a tenth of the kernel's time. check=False: radii and scale have been checked, too."""
    enclosure = object.__new__(Enclosure)
    enclosure._hold(hi, lo, radius, scale, check)
    return enclosure


def moved(enclosure: Enclosure, move: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Enclosure:
    """The same elements where `move` puts them, which gives an array another shape or order."""
    parts = (move(getattr(enclosure, part)) for part in PARTS)
    return trusted(*parts, check=False)


def _index(index: Any) -> Any:
    """The index, if NumPy reads it at once; NumPy would ask any other object for its items."""
    if isinstance(index, tuple):
        return tuple(_index(item) for item in index)
    if isinstance(index, list) and not all(isinstance(item, bool) for item in index):
        return as_whole_numbers(index, "index")
    if isinstance(index, int | np.integer | np.ndarray | slice | list | None) or index is ...:
        return index
    raise TypeError


def _is_finite(part: npt.NDArray[Any]) -> bool:
    """Whether every element is finite. An array that holds NaN has NaN as minimum and maximum."""
    if not part.size:
        return True
    low, high = np.minimum.reduce(part, axis=None), np.maximum.reduce(part, axis=None)
    return bool(-np.inf < low and high < np.inf)


def _part(value: Any, dtype: type, name: str) -> npt.NDArray[Any]:
    """A part of an Enclosure as an array of the dtype, which must hold it exactly."""
    if type(value) is np.ndarray and value.dtype == dtype:
        return value
    if type(value) in (int, float) and value == 0:
        return _NO_SCALE if dtype is np.int64 else _NOTHING
    listed = isinstance(value, list | tuple)
    array = as_float_array(value, f"An Enclosure's {name}") if listed else read(value)
    carries_more = isinstance(value, NoArithmetic | np.ma.MaskedArray)  # more than an array holds
    if array is not None and array.dtype == dtype and not carries_more:
        return array
    if (
        array is None
        or carries_more
        or not (array.dtype.kind in "fiu" or formats.is_one(array.dtype))
    ):
        raise TypeError(f"An Enclosure's {name} is made of numbers, not of {type(value).__name__}.")
    with np.errstate(invalid="ignore", over="ignore"):
        converted: npt.NDArray[Any] = array.astype(dtype)
        is_exact = np.array_equal(converted.astype(array.dtype), array, equal_nan=True)
    if not is_exact:
        raise ValueError(f"An Enclosure's {name} is not held exactly by {np.dtype(dtype).name}.")
    return converted


def _of_shape(shape: tuple[int, ...], part: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """The part broadcast to the shape, read-only."""
    if part.shape == shape:
        return read_only(part)
    if part.ndim:
        return spread(part, shape, f"An Enclosure's {name}")
    # NumPy's broadcast_to takes twenty times as long.
    return read_only(np.ndarray(shape, part.dtype, part, strides=(0,) * len(shape)))
