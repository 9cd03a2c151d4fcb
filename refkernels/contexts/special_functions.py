"""The special function units of NVIDIA's Hopper to the bit: what `ex2.approx.ftz.f32` and its like
give, which __expf, __sinf, Triton's tl.exp and CUDA's --use_fast_math are made of.

Every result depends on a key of 20 to 25 bits: the argument's fraction (its complement for negative
numbers), its mantissa and its exponent's parity, or its turns cut to 25 bits. By key the folder
`hopper` holds the distance, in ulp, from the correctly rounded value or from a parabola for each of
many intervals. Measured on an H100; there all 2^32 arguments agree, of sin and cos all keys.
"""

from __future__ import annotations

import functools
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

_F = np.float32
_M = 1 << 23  # mantissas
_SIGN, _INF, _NAN, _ONE, _LEAST = 0x80000000, 0x7F800000, 0x7FFFFFFF, 0x3F800000, 0x00800000
LOW = 0x3504F4  # the first mantissa whose logarithm is at least 1/2
TANH = {-8: 6, -7: 6, -6: 6, -5: 5, -4: 5, -3: 4, -2: 4, -1: 4, 0: 3, 1: 2, 2: 3}
"""By exponent, the low bits of the argument that tanh leaves out."""
_ROUNDED: dict[str, Callable[[Any], Any]] = {
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
}


def ex2(x: Singles) -> Singles:
    """2^x."""
    sign, bits, *_, special = _split(x)
    size = np.where(special, 0.0, np.minimum(np.abs(x), _F(1024))).astype(np.float64)
    fixed = np.floor(size * _M).astype(np.int64)
    whole, fraction = fixed >> 23, fixed & (_M - 1)
    below = (sign > 0) & (fraction > 0)
    whole = np.where(below, -whole - 1, np.where(sign > 0, -whole, whole))
    result = found("ex2", np.where(below, _M - 1 - fraction, fraction)) + ((whole - 1) << 23)
    result = np.where(result < _LEAST, 0, np.minimum(result, _INF))
    return _joined(np.where(bits == _INF, np.where(sign > 0, 0, _INF), result), x)


def lg2(x: Singles) -> Singles:
    """log2 x: the exponent and the mantissa's logarithm in fixed point, cut off; negative sums are
    complements."""
    sign, bits, mantissa, exponent, _ = _split(x)
    stored, low = found("lg2", mantissa), mantissa < LOW
    part = np.floor(stored.astype(np.uint32).view(_F).astype(np.float64) * 2.0**24).astype(np.int64)
    total = (exponent << 24) + np.where(low, part, (1 << 24) - 1 - part)
    cut = _toward_zero(np.where(total < 0, -total - 1, total) * 2.0**-24).view(np.uint32)
    result = np.where(total < 0, _SIGN, 0) | cut.astype(np.int64)
    result = np.where((exponent == 0) & low, stored, result)
    result = np.where((exponent == -1) & ~low, stored | _SIGN, result)
    result = np.where((exponent == -1) & (mantissa == 0), _ONE | _SIGN, result)
    result = np.where(sign > 0, _NAN, np.where(bits == _INF, _INF, result))
    return _joined(np.where(bits < _LEAST, _INF | _SIGN, result), x)


def sin(x: Singles) -> Singles:
    """sin x, by turns rounded to float32."""
    sign, bits, *_ = _split(x)
    quarter, place = _turns(x)
    result = found("sin", np.where(quarter & 1, _M - 1 - place, place))
    return _joined(np.where(bits == _INF, _NAN, result ^ (quarter >> 1 << 31) ^ sign), x)


def cos(x: Singles) -> Singles:
    """cos x, by turns rounded to float32."""
    quarter, place = _turns(x)
    result = found("sin", np.where(quarter & 1, place, _M - 1 - place))
    negative = ((quarter + 1) >> 1 & 1) << 31
    return _joined(np.where(np.isinf(x), _NAN, result ^ negative), x)


def tanh(x: Singles) -> Singles:
    """tanh x, which is x below 2^-8."""
    sign, result, mantissa, exponent, _ = _split(x)
    result, start = np.where(exponent > 2, _ONE, result), 0
    for power, left_out in TANH.items():
        here = exponent == power
        result[here] = found("tanh", start + (mantissa[here] >> left_out))
        start += _M >> left_out
    return _joined(sign | result, x)


def rcp(x: Singles) -> Singles:
    """1 / x."""
    sign, bits, mantissa, exponent, _ = _split(x)
    result = found("rcp", mantissa) - (exponent << 23)
    result = np.where((result < _LEAST) | (bits == _INF), 0, result)
    return _joined(sign | np.where(bits < _LEAST, _INF, result), x)


def rsqrt(x: Singles) -> Singles:
    """1 / sqrt(x)."""
    sign, bits, mantissa, exponent, _ = _split(x)
    result = found("rsqrt", ((exponent & 1) << 23) + mantissa) - (exponent >> 1 << 23)
    result = np.where(sign > 0, _NAN, np.where(bits == _INF, 0, result))
    return _joined(np.where(bits < _LEAST, sign | _INF, result), x)


def sqrt(x: Singles) -> Singles:
    """The square root."""
    sign, bits, mantissa, exponent, _ = _split(x)
    result = found("sqrt", ((exponent & 1) << 23) + mantissa) + (exponent >> 1 << 23)
    result = np.where(sign > 0, _NAN, np.where(bits == _INF, _INF, result))
    return _joined(np.where(bits < _LEAST, sign, result), x)


def _split(x: Singles) -> tuple[Integers, Integers, Integers, Integers, npt.NDArray[np.bool_]]:
    """Sign, magnitude, mantissa and exponent; and which numbers are infinite, NaN or flushed."""
    bits = np.ascontiguousarray(x, _F).view(np.uint32).astype(np.int64).reshape(np.shape(x))
    sign, size = bits & _SIGN, bits & _NAN
    return sign, size, size & (_M - 1), (size >> 23) - 127, (size >= _INF) | (size < _LEAST)


def _joined(bits: Integers, x: Singles) -> Singles:
    return np.where(np.isnan(x), _NAN, bits).astype(np.uint32).view(_F)


def _turns(x: Singles) -> tuple[Integers, Integers]:
    """The quarter of the circle, and the place in it."""
    with np.errstate(all="ignore"):
        turns = _toward_zero(np.abs(x.astype(np.float64)) * float(_F(0.15915494)))
    cut = np.where(np.isfinite(turns) & (turns >= 2.0**-126), turns, 0.0).astype(np.float64)
    fixed = np.fmod(np.floor(cut * 2.0**25), 2.0**25).astype(np.int64)
    return fixed >> 23, fixed & (_M - 1)


def _toward_zero(values: npt.NDArray[np.float64]) -> Singles:
    """Numbers that are not negative in float32, cut off."""
    nearest = values.astype(_F)
    return np.where(nearest > values, np.nextafter(nearest, _F(0)), nearest).astype(_F)


def found(name: str, key: Integers, parts: Any = None) -> Integers:
    """The bits of the results by key. Only these are unfolded: a table has up to 2^24."""
    parts = parts or _table(name)
    folded = np.zeros(key.shape, np.int64)
    for place, plane in enumerate(parts["rest"]):
        folded |= plane[key].astype(np.int64) << 8 * place
    if name in _ROUNDED:
        first = (_ONE + key).astype(np.uint32).view(_F).astype(np.float64)
        near = _ROUNDED[name](first).astype(_F)
    else:
        length = parts["rest"].shape[1] // parts["curves"].shape[1]
        offset, slope, bend = parts["curves"][:, key // length]
        place = (key % length + 0.5) / length - 0.5
        near = _toward_zero(np.maximum(offset + place * (slope + place * bend), 0.0))
    return near.view(np.uint32) + ((folded >> 1) ^ -(folded & 1))


@functools.cache
def _table(name: str) -> dict[str, npt.NDArray[Any]]:
    """The distances by key, a plane for each of their bytes, and the parabolas."""
    packed = Path(__file__).with_name("hopper").joinpath(f"{name}.npz.xz").read_bytes()
    with np.load(io.BytesIO(lzma.decompress(packed)), allow_pickle=False) as file:
        return dict(file)


def _gradual(x: Singles) -> Singles:
    """2^x without `.ftz`: below -126 the square of 2^(x/2)."""
    low = x < -126.0
    root = ex2(np.where(low, x * _F(0.5), x))
    return root * np.where(low, root, _F(1))


_LOG2_E, _LN_2, _LOG10_2 = _F(1.442695), _F(0.6931472), _F(0.30103)
FAST: dict[str, tuple[Callable[[Singles], Singles], ...]] = {
    "exp": (lambda x: ex2(x * _LOG2_E), lambda x: _gradual(x * _LOG2_E)),
    "exp2": (ex2, _gradual),
    "log": (lambda x: lg2(x) * _LN_2,),
    "log2": (lg2,),
    "log10": (lambda x: lg2(x) * _LOG10_2,),
    "sin": (sin,),
    "cos": (cos,),
    "tanh": (tanh,),
    "sqrt": (sqrt,),
    "rsqrt": (rsqrt,),
}
"""What fast forms of a function compute: with flushed subnormal numbers, and without."""
