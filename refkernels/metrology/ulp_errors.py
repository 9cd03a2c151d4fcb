"""ULP error, fractional and signed, and ULP distance, an integer. Reports always give both.

ulp(z) = 2^(max(floor(log2 |z|), emin) - p + 1): Goldberg's, at the *exact* value z; it is
2^(emin - p + 1) throughout the subnormals. Kahan's and Harrison's definitions differ at powers of
two; CUDA's and OpenCL's documents use Kahan's. Source: Goldberg (1991),
doi:10.1145/103162.103163; Muller (2005), "On the definition of ulp(x)", INRIA RR-5504.

A fractional error of 0.51 ... 1.49 is a distance of 1.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.bits import EXPONENT, bits_of
from refkernels.arithmetic.blocks import SPAN, each_block, read_only
from refkernels.arithmetic.decisions import span_of
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.metrology import array_elements
from refkernels.metrology.elements import compare
from refkernels.metrology.plain import inverse_ulp, tally_plain

NO_DISTANCE = 2**64 - 1
"""The `ulp_distance` of a NaN from a number: beyond the distance of any two floats."""


class UlpError(NamedTuple):
    """`value` = (got - z) / ulp(z), signed, and `uncertainty` >= |value - true value|; float64.

    Both are NaN where no error is defined: where either side is NaN, where `got` is the infinity
    that the mathematics or the rounding of z gives, and where z = 0 and `got` is not. Where an
    enclosure reaches zero through more than one ulp, value is NaN and uncertainty inf.
    """

    value: npt.NDArray[np.float64]
    uncertainty: npt.NDArray[np.float64]


@with_default_fenv
def ulp(z: npt.ArrayLike, format: Format | str) -> npt.NDArray[np.float64]:
    """ulp(z) in the format, for exact float64 values z; NaN and infinities give NaN.

    The result is a power of two >= 2^(emin - p + 1), exact in float64. No clamp at emax: a z beyond
    the format's range has the ulp of an unbounded exponent. Raises TypeError for a z that is not of
    floats, ValueError for an unknown format.
    Sources: Goldberg (1991), doi:10.1145/103162.103163; Muller (2005), "On the definition of
    ulp(x)", INRIA RR-5504.
    """
    target = formats.get(format)
    values = to_float64(as_float_array(z, "z"))
    # The exponent field alone is the power of two below a normal z, and 0 for a subnormal one.
    powers = (np.ascontiguousarray(values).view(np.int64) & EXPONENT).view(np.float64)
    units = np.maximum(powers * 2.0 ** (1 - target.p), target.min_subnormal).reshape(values.shape)
    return np.where(np.isfinite(values), units, np.nan)


@with_default_fenv
def ulp_error(got: Any, reference: Any, format: Format | str | None = None) -> UlpError:
    """(got - z) / ulp(z) for every element, with its uncertainty.

    `got`: any float array (DLPack and `__array__` too). `reference`: an Enclosure, or an array that
    is taken as exact, of the same shape. `format`: the format of the ulp, by default got's.
    got - z is computed to a relative error of about 2^-53, whatever cancels. An infinity where z
    rounds to a finite number counts as 2^(emax + 1). The uncertainty is radius / ulp(z). Where the
    enclosure straddles a power of two, it is radius / (the smaller ulp) plus the effect of the
    change of unit, so that it always covers the true error.
    Raises ValueError where the shapes differ. Source: Goldberg (1991), doi:10.1145/103162.103163.
    """
    array = as_float_array(got, "got")
    target = formats.of(array) if format is None else formats.get(format)
    exact = as_enclosure(reference)
    check_shapes(array, exact)
    value, uncertainty = np.empty(exact.size), np.empty(exact.size)
    limits = (target.p, target.emin, target.emax)
    arguments = (widened(array), *exact.columns(), limits, value, uncertainty)
    each_block(_errors_of, exact.size, *arguments, fallback=_fallback)
    return UlpError(value.reshape(exact.shape), uncertainty.reshape(exact.shape))


@with_default_fenv
def ulp_distance(a: Any, b: Any) -> npt.NDArray[np.uint64]:
    """The number of floats from a to b: |ordinal(a) - ordinal(b)|; +0 and -0 have one ordinal.

    `b`: an array of a's dtype and shape, or an Enclosure, which is rounded correctly first.
    uint64, because float64's ordinals are up to 2^64 - 2^53 apart. NaN to NaN is 0; NaN to a number
    is `NO_DISTANCE` = 2^64 - 1: a mismatch is never a small number. An infinity is the neighbour of
    the largest finite float. Raises ValueError where dtypes or shapes differ.
    """
    first = as_float_array(a, "a")
    second = b.round(formats.of(first))[0] if isinstance(b, Enclosure) else as_float_array(b, "b")
    check_alike(first, second)
    ordinals = formats.ordinals(first), formats.ordinals(second)
    low, high = np.minimum(*ordinals), np.maximum(*ordinals)
    # Two's complement: the difference modulo 2^64 is the distance, which is below 2^64.
    with np.errstate(over="ignore"):  # NumPy warns where these are scalars
        distance = np.asarray(high.astype(np.uint64) - low.astype(np.uint64))
    nan_a, nan_b = is_nan(first), is_nan(second)
    distance = np.where(nan_a != nan_b, np.uint64(NO_DISTANCE), distance)
    return np.where(nan_a & nan_b, np.uint64(0), distance)


def check_alike(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> None:
    """Raise ValueError where dtypes or shapes differ."""
    if a.dtype != b.dtype or a.shape != b.shape:
        raise ValueError(
            f"ulp_distance counts floats of one format: a is {a.dtype}{list(a.shape)}, "
            f"b is {b.dtype}{list(b.shape)}."
        )


def as_enclosure(reference: Any) -> Enclosure:
    """An Enclosure as it is; anything else is read as an exact array."""
    if isinstance(reference, Enclosure):
        return reference
    return Enclosure(to_float64(as_float_array(reference, "reference")))


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
    return read_only(np.ascontiguousarray(wide).reshape(-1))


def is_nan(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """np.isnan, without the warning that ml_dtypes gives for signalling NaNs."""
    with np.errstate(invalid="ignore"):
        return np.isnan(array)


def _fallback(*arguments: Any) -> None:
    """`_errors_of` in NumPy, for small arrays."""
    *parts, limits, value, uncertainty = arguments
    figures = array_elements.compare(parts, limits)
    value[:], uncertainty[:] = figures.error, figures.uncertainty


@njit(nogil=True)
def _errors_of(first, last, got, hi, lo, radius, scale, format, value, uncertainty):
    p, emin, emax = format
    sizes = np.empty(SPAN)
    for i in range(first, last, SPAN):
        n = min(SPAN, last - i)
        g, (z, tail, r, s) = got[i : i + n], span_of(hi, lo, radius, scale, i, n)
        tally_plain(g, z, tail, r, s, format, sizes)
        for e in range(n):
            if sizes[e] >= 0.0:
                value[i + e] = math.copysign(sizes[e], (np.float64(g[e]) - z[e]) - tail[e])
                uncertainty[i + e] = r[e] * inverse_ulp(bits_of(z[e]) & EXPONENT, p)
            else:
                element = compare(np.float64(g[e]), z[e], tail[e], r[e], s[e], p, emin, emax)
                value[i + e], uncertainty[i + e] = element[1], element[2]
