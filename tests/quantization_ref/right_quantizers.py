"""Right casts, quantizers and dequantizers: by the narrow dtypes' own conversions, and by a table
of the format's numbers. Scales are divided by, or multiplied by their reciprocals."""

import ml_dtypes
import numpy as np


def _kind(to):
    return np.dtype(getattr(ml_dtypes, to, to))


def _numbers(to):
    """The finite numbers of a format, in order."""
    kind = _kind(to)
    if kind.kind in "iu" or "int" in to:
        limits = ml_dtypes.iinfo(kind)
        return np.arange(limits.min, limits.max + 1.0)
    values = np.arange(256, dtype=np.uint8).view(kind).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def _between(x, to):
    """The places of the numbers below x, these, and those above; one more than the format has."""
    numbers = np.pad(_numbers(to), 1, "reflect", reflect_type="odd")
    places = np.clip(np.searchsorted(numbers, x, "right") - 1, 0, numbers.size - 2)
    return places, numbers[places], numbers[places + 1]


def _by_table(x, to, ties="even"):
    """Saturated; -0 stays."""
    wide, numbers = x.astype(np.float64), _numbers(to)
    places, low, high = _between(np.clip(wide, numbers[0], numbers[-1]), to)
    zero = np.searchsorted(numbers, 0.0) + 1
    up = wide - low > high - wide
    tie = wide - low == high - wide
    up |= tie & ((np.abs(places - zero) % 2 == 1) if ties == "even" else (wide > 0))
    y = np.clip(np.where(up, high, low), numbers[0], numbers[-1])
    return np.where(np.isnan(wide), np.nan, np.copysign(y, wide) if numbers[0] < 0 else y)


def _own(x, to, ties="even"):
    """The dtype's own conversion, saturated; other ties than even by the table."""
    kind, largest = _kind(to), _numbers(to)[-1]
    if ties != "even":
        return _by_table(x, to, ties)
    if "int" in to:
        return np.clip(np.rint(x.astype(np.float64)), _numbers(to)[0], largest)
    return np.clip(x.astype(np.float64), -largest, largest).astype(kind).astype(np.float64)


def _casts(rounded):
    def cast(x, draws=None, to="float8_e4m3fn", ties="even", overflow="special"):
        wide = x.astype(np.float64)
        y = rounded(x, to, ties)
        if draws is not None:
            _, low, high = _between(wide, to)
            y = np.where(draws.astype(np.float64) * (high - low) < wide - low, high, low)
            y = np.copysign(np.clip(y, _numbers(to)[0], _numbers(to)[-1]), wide)
        if overflow == "special" and "int" not in to:
            with np.errstate(all="ignore"):
                special = wide.astype(_kind(to)).astype(np.float64)
            y = np.where(np.isfinite(special), y, special)
        return y.astype(x.dtype)

    return cast


def _spread(scale, x):
    for axis, n in enumerate(x.shape[x.ndim - scale.ndim :], x.ndim - scale.ndim):
        scale = np.repeat(scale, n // scale.shape[axis - x.ndim], axis - x.ndim)
    return scale.astype(np.float32 if scale.dtype.itemsize == 1 else scale.dtype)


def _quantizers(rounded, divided):
    def quantize(x, scale, zero_point=None, to="int8", ties="even"):
        units = divided(_wide(x), _wide(_spread(scale, x)))
        if zero_point is None:
            return rounded(units, to, ties).astype(x.dtype)
        whole = np.rint(units.astype(np.float64)) + _spread(zero_point, x)
        return np.clip(whole, _numbers(to)[0], _numbers(to)[-1]).astype(x.dtype)

    return quantize


def _wide(x):
    return x.astype(np.float64 if x.dtype.itemsize == 8 else np.float32)


def _first(x, scale, zero_point=None):
    point = 0 if zero_point is None else _spread(zero_point, x)
    scale = _spread(scale, x)
    return ((x.astype(np.float64) - point) * scale).astype(scale.dtype)


def _after(x, scale, zero_point=None):
    wide = _spread(scale, x)
    point = 0 if zero_point is None else _spread(zero_point, x).astype(wide.dtype)
    return (x.astype(wide.dtype) * wide - point * wide).astype(wide.dtype)


KERNELS = [("cast", _casts(_own)), ("cast", _casts(_by_table))]
KERNELS += [("quantize", _quantizers(_own, np.divide)), ("dequantize", _first)]
KERNELS += [("quantize", _quantizers(_by_table, lambda x, s: x * (1 / s))), ("dequantize", _after)]
