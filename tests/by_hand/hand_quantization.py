"""Casts and quantizers, by a search among all numbers of a format."""

import bisect
import functools
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
from hand_numbers import Numbers, each, number
from mpmath import mp


@functools.cache
def numbers_of(to: str) -> list[Fraction]:
    """All finite numbers of a format of at most 16 bits, in order."""
    if "int" in to:
        whole = ml_dtypes.iinfo(to)
        return [Fraction(k) for k in range(int(whole.min), int(whole.max) + 1)]
    kind = np.dtype(getattr(ml_dtypes, to, to))
    bits = 4 if "4_" in to else 6 if "6_" in to else 8 * kind.itemsize
    every = np.arange(2**bits, dtype=f"u{kind.itemsize}")
    wide = every.view(kind).astype(float)
    return sorted({Fraction(x) for x in wide[np.isfinite(wide)].tolist()})


def fraction(x: Any) -> Fraction:
    """An mpf's own value."""
    sign, mantissa, exponent, _ = mp.mpf(x)._mpf_
    return Fraction(-mantissa if sign else mantissa) * Fraction(2) ** exponent


def rounded(x: Any, to: str, ties: str, draw: Any = None) -> Any:
    """The neighbours of x in the format, and which of them it becomes. Of two at one distance, the
    even one has an even place among the numbers from 0 on."""
    if not mp.isfinite(x):
        return x
    if to == "float32":
        with mp.workprec(24):
            return +mp.mpf(x)
    known, exact = numbers_of(to), fraction(x)
    place = bisect.bisect_left(known, exact)
    above = known[min(place, len(known) - 1)]
    below = above if above == exact else known[max(place - 1, 0)]
    if draw is not None:
        chosen = above if exact - below > fraction(draw) * (above - below) else below
    elif ties in ("zero", "up"):
        chosen = below if (ties == "zero") == (exact > 0) else above
    elif exact - below != above - exact:
        chosen = below if exact - below < above - exact else above
    elif ties == "away":
        chosen = max(below, above, key=abs)
    else:
        zero = bisect.bisect_left(known, 0)
        chosen = below if (bisect.bisect_left(known, below) - zero) % 2 == 0 else above
    return mp.mpf(chosen.numerator) / chosen.denominator


def cast(x: Numbers, to: str, ties: str, overflow: str, draws: Any = None) -> Any:
    def one(x: Any, draw: Any = None) -> Any:
        y, ends = rounded(x, to, ties, draw), numbers_of(to)
        step = max(ends[-1] - ends[-2], Fraction(1))
        beyond = mp.isinf(x) or (mp.isfinite(x) and abs(fraction(x)) >= ends[-1] + step / 2)
        if not beyond:
            return y
        largest = max(min(x, ends[-1].numerator), ends[0].numerator)
        return largest if overflow == "saturate" else mp.nan

    return each(one)(x) if draws is None else np.frompyfunc(one, 2, 1)(x, draws)


def spread(scale: Any, shape: tuple[int, ...]) -> Any:
    scale = np.reshape(scale, (1,) * (len(shape) - np.ndim(scale)) + np.shape(scale))
    for axis, n in enumerate(shape):
        scale = np.repeat(scale, n // scale.shape[axis], axis)
    return scale


def quantize(x: Numbers, scale: Any, to: str, ties: str, zero_point: Any = None) -> Any:
    with mp.workprec(400):
        units = x / spread(scale, x.shape)
    if zero_point is None:
        return each(lambda u: rounded(u, to, ties))(units)
    whole = each(lambda u: mp.nint(u))(units) + spread(zero_point, x.shape)
    return each(lambda u: rounded(mp.mpf(u), to, ties))(whole)


def dequantize(x: Any, scale: Any, zero_point: Any = None) -> Any:
    offset = 0 if zero_point is None else spread(zero_point, x.shape)
    return (x - offset) * spread(scale, x.shape)


def block_quantize(
    x: Numbers, to: str, block: Any, scales: str, rule: str, eps: float, tensor_scale: Any = None
) -> Any:
    blocks = x.reshape(*x.shape[:-1], -1, block or x.shape[-1])
    most = numbers_of(to)[-1]
    power = 2 ** ((most.numerator // most.denominator).bit_length() - 1)
    divisor = mp.mpf(power) if rule == "floor" else mp.mpf(most.numerator) / most.denominator
    whole = mp.mpf(1) if tensor_scale is None else tensor_scale
    with mp.workprec(400):
        largest = np.maximum(abs(blocks).max(-1, keepdims=True), number(eps)) / whole / divisor
    ties = {"floor": "zero", "ceil": "up", "nearest": "even"}[rule]
    scale = each(lambda s: rounded(s, scales, ties))(largest)
    with mp.workprec(400):
        units = blocks / np.where(scale == 0, mp.mpf(1), scale * whole)
    y = np.where(scale == 0, mp.mpf(0), each(lambda u: rounded(u, to, "even"))(units))
    return {"y": y.reshape(x.shape), "scale": scale[..., 0]}


def table_quantize(x: Numbers, table: Any) -> Any:
    """By the distances of all numbers: the lesser of two that are as near, the first of equals."""
    scale = abs(x).max(-1, keepdims=True)
    units = x / np.where(scale == 0, mp.mpf(1), scale)
    nearest = each(lambda u: min((abs(t - u), t, k) for k, t in enumerate(table))[2])
    return {"y": nearest(units), "scale": scale[..., 0]}


def narrow_step(
    param: Numbers, update: Numbers, to: str, comp: Any = None, draws: Any = None
) -> Any:
    total = update if comp is None else update + comp
    new = cast(param + total, to, "even", "saturate", draws)
    return {"param": new, "comp": None if comp is None else total - (new - param)}


_ALL = (cast, quantize, dequantize, block_quantize, table_quantize, narrow_step)
QUANTIZERS = {f.__name__: f for f in _ALL}
