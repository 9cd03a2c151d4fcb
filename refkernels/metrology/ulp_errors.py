"""ULP error, fractional and signed, and ULP distance, an integer: both are reported, always.

ulp(z) = 2^(max(floor(log2 |z|), emin) - p + 1): Goldberg's, at the *exact* value z, constant
2^(emin - p + 1) through the subnormals. Kahan's and Harrison's definitions differ at powers of two;
CUDA's and OpenCL's documents use Kahan's. Source: Goldberg (1991), doi:10.1145/103162.103163;
Muller (2005), "On the definition of ulp(x)", INRIA RR-5504.

A fractional error of 0.51 ... 1.49 is a distance of 1.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.jit import njit, prange
from refkernels.metrology.elements import compare

NO_DISTANCE = 2**64 - 1
CHUNK = 1 << 14  # elements that one thread takes at a time
"""The `ulp_distance` of a NaN from a number: beyond the distance of any two floats."""


class UlpError(NamedTuple):
    """`value` = (got - z) / ulp(z), signed, and `uncertainty` >= |value - true value|; float64.

    Both are NaN where no error is defined: where either side is NaN, where the mathematics or the
    rounding of z gives the infinity that was got, and where z = 0 is met with a nonzero. Where an
    enclosure reaches zero through more than one ulp, value is NaN and uncertainty inf.
    """

    value: npt.NDArray[np.float64]
    uncertainty: npt.NDArray[np.float64]


def ulp(z: npt.ArrayLike, format: Format | str) -> npt.NDArray[np.float64]:
    """ulp(z) in the format, for exact float64 values z; NaN and infinities give NaN.

    The result is a power of two >= 2^(emin - p + 1), exact in float64. No clamp at emax: a z beyond
    the format's range has the ulp of an unbounded exponent.
    """
    target = formats.get(format)
    values = np.asarray(z, dtype=np.float64)
    _, exponent = np.frexp(values)
    floor = np.where(values == 0.0, target.emin, np.maximum(exponent - 1, target.emin))
    return np.where(np.isfinite(values), np.ldexp(1.0, floor - target.p + 1), np.nan)


def ulp_error(got: Any, reference: Any, format: Format | str | None = None) -> UlpError:
    """(got - z) / ulp(z) for every element, with its uncertainty.

    `got`: any float array (DLPack and `__array__` too). `reference`: an Enclosure, or an array,
    which is taken as exact, of the same shape. `format`: whose ulp; got's by default.
    got - z is computed to a relative error of about 2^-53, whatever cancels. An infinity where z
    rounds to a finite number counts as 2^(emax + 1). Uncertainty: radius / ulp(z); where the
    enclosure straddles a power of two, radius / (the smaller ulp), and what the change of unit
    itself makes of the error, so that the true error is always within it.
    Raises ValueError where the shapes differ.
    """
    array = as_float_array(got, "got")
    target = formats.of(array) if format is None else formats.get(format)
    exact = as_enclosure(reference)
    check_shapes(array, exact)
    value, uncertainty = np.empty(exact.size), np.empty(exact.size)
    limits = (target.p, target.emin, target.emax)
    arguments = (widened(array), *columns(exact), limits, value, uncertainty)
    if exact.size > CHUNK:
        _errors(*arguments)
    else:  # starting threads costs more than a small array does
        _errors_of(0, exact.size, *arguments)
    return UlpError(value.reshape(exact.shape), uncertainty.reshape(exact.shape))


def ulp_distance(a: Any, b: Any) -> npt.NDArray[np.uint64]:
    """How many floats lie from a to b: |ordinal(a) - ordinal(b)|; +0 and -0 are one place.

    `b`: an array of a's dtype and shape, or an Enclosure, which is rounded correctly first.
    uint64, because float64's ordinals are up to 2^64 - 2^53 apart. NaN to NaN is 0, NaN to a number
    `NO_DISTANCE` = 2^64 - 1: a mismatch is never a small number. An infinity is the neighbour of
    the largest finite float. Raises ValueError where dtypes or shapes differ.
    """
    first = as_float_array(a, "a")
    second = b.round(formats.of(first))[0] if isinstance(b, Enclosure) else as_float_array(b, "b")
    if first.dtype != second.dtype or first.shape != second.shape:
        raise ValueError(
            f"ulp_distance counts floats of one format: a is {first.dtype}{list(first.shape)}, "
            f"b is {second.dtype}{list(second.shape)}."
        )
    one, other = formats.ordinals(first), formats.ordinals(second)
    low, high = np.minimum(one, other), np.maximum(one, other)
    # Two's complement: the difference modulo 2^64 is the distance, which is below 2^64.
    distance = np.asarray(high.astype(np.uint64) - low.astype(np.uint64))
    nan_a, nan_b = is_nan(first), is_nan(second)
    distance = np.where(nan_a != nan_b, np.uint64(NO_DISTANCE), distance)
    return np.where(nan_a & nan_b, np.uint64(0), distance)


def as_enclosure(reference: Any) -> Enclosure:
    """An Enclosure as it is; anything else as an exact array."""
    if isinstance(reference, Enclosure):
        return reference
    return Enclosure(as_float_array(reference, "reference").astype(np.float64))


def check_shapes(got: npt.NDArray[Any], reference: Enclosure) -> None:
    """Raise ValueError where the shapes differ: nothing is broadcast silently."""
    if got.shape != reference.shape:
        raise ValueError(
            f"got has shape {got.shape}, the reference {reference.shape}: they must be the same."
        )


def widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Flat, contiguous float32 or float64 with the same values."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is data here
        wide = array if array.dtype == np.float64 else array.astype(np.float32, copy=False)
    return _read_only(np.ascontiguousarray(wide).reshape(-1))


def is_nan(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """np.isnan, without the warning that ml_dtypes gives for signalling NaNs."""
    with np.errstate(invalid="ignore"):
        return np.isnan(array)


def columns(exact: Enclosure) -> tuple[npt.NDArray[Any], ...]:
    """hi, lo, radius, scale as flat arrays; the last three of length 1 where they are constant."""
    hi = np.ascontiguousarray(exact.hi).reshape(-1)
    return _read_only(hi), flat(exact.lo), flat(exact.radius), flat(exact.scale)


def flat(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Flat and contiguous; one element where the array is a broadcast of one."""
    if array.size and not any(array.strides):
        return _read_only(np.array(array.reshape(-1)[:1]))
    return _read_only(np.ascontiguousarray(array).reshape(-1))


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that cannot be written: to Numba another type, so one is compiled for, not both."""
    view = array.view()
    view.flags.writeable = False
    return view


@njit(parallel=True)
def _errors(
    got: Any, hi: Any, lo: Any, radius: Any, scale: Any, format: Any, value: Any, uncertainty: Any
) -> None:
    for chunk in prange(-(-hi.size // CHUNK)):
        last = min((chunk + 1) * CHUNK, hi.size)
        _errors_of(chunk * CHUNK, last, got, hi, lo, radius, scale, format, value, uncertainty)


@njit
def _errors_of(
    first: int,
    last: int,
    got: Any,
    hi: Any,
    lo: Any,
    radius: Any,
    scale: Any,
    format: Any,
    value: Any,
    uncertainty: Any,
) -> None:
    p, emin, emax = format
    step_lo, step_radius, step_scale = lo.size > 1, radius.size > 1, scale.size > 1
    for i in range(first, last):
        r, s = radius[i * step_radius], scale[i * step_scale]
        element = compare(np.float64(got[i]), hi[i], lo[i * step_lo], r, s, p, emin, emax)
        value[i] = element[1]
        uncertainty[i] = element[2]
