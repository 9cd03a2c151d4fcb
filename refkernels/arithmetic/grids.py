"""Grids: the numbers of a narrow format, and the step functions that round to them.

A grid holds k 2^(e - p + 1) with |k| < 2^p and e >= emin, between `least` and `largest`. The whole
numbers are a grid whose every number is subnormal. Rounding to a grid never decreases, so that an
interval is rounded by its ends; beyond the grid a number becomes the nearest end (saturation).

Source: Rouhani et al. (2023), OCP Microscaling Formats (MX) Specification 1.0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import ml_dtypes
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.wording import shown

Ties = Literal["even", "away", "half_up", "zero", "down", "up"]
Doubles = npt.NDArray[np.float64]


def _nearest_away(t: Any) -> Any:
    size = np.abs(t)
    below = np.floor(size)  # size - below is exact, where size + 0.5 would be rounded
    return np.copysign(below + (size - below >= 0.5), t)


def _half_up(t: Any) -> Any:
    below = np.floor(t)
    return below + (t - below >= 0.5)


_OF_FLOATS: dict[str, Callable[[Any], Any]] = {
    "even": np.rint, "away": _nearest_away, "half_up": _half_up, "zero": np.trunc,
    "down": np.floor, "up": np.ceil,
}  # fmt: skip
_OF_FRACTIONS: dict[str, Callable[[Fraction], int]] = {
    "even": round, "zero": int, "down": math.floor, "up": math.ceil,
    "away": lambda t: math.floor(abs(t) + Fraction(1, 2)) * (1 if t > 0 else -1),
    "half_up": lambda t: math.floor(t + Fraction(1, 2)),
}  # fmt: skip


@dataclass(frozen=True)
class NumberGrid:
    """Rounding to the numbers of `name`. `ties`: to the nearest, of two the "even" one, the one
    "away" from zero or the upper one; or toward "zero", "down" or "up". Requires p <= 53."""

    name: str
    p: int
    emin: int
    least: float
    largest: float
    ties: Ties = "even"
    signed_zero: bool = True

    @property
    def is_integer(self) -> bool:
        """Whether it is a format of integers, which has no NaN and no infinity."""
        return self.p == 53 and not self.signed_zero

    @property
    def step(self) -> float:
        """The distance between the numbers around 0."""
        return math.ldexp(1.0, self.emin - self.p + 1)

    def __call__(self, values: Doubles) -> Doubles:
        """float64 numbers, rounded; NaN and the signs of zeros stay where the format has them."""
        with np.errstate(all="ignore"):
            exponent = np.maximum(np.frexp(values)[1] - 1, self.emin) - self.p + 1
            units = _OF_FLOATS[self.ties](np.ldexp(values, -exponent))
            rounded = np.where(np.isfinite(values), np.ldexp(units, exponent), values)
            if self.is_integer:
                rounded[np.isnan(rounded)] = 0.0
            clipped = np.clip(rounded, self.least, self.largest)
            return np.asarray(clipped if self.signed_zero else clipped + 0.0)  # -0 + 0 = 0

    def of_rational(self, value: Fraction) -> Fraction:
        """A fraction, rounded."""
        above = value.numerator.bit_length() - value.denominator.bit_length()
        exponent = above if abs(value) >= Fraction(2) ** above else above - 1
        unit = Fraction(2) ** (max(exponent, self.emin) - self.p + 1)
        rounded = _OF_FRACTIONS[self.ties](value / unit) * unit
        least, largest = (
            Fraction(end) if math.isfinite(end) else rounded for end in (self.least, self.largest)
        )
        return min(max(rounded, least), largest)


@functools.cache
def grid(to: str = "", ties: Ties = "even") -> NumberGrid:
    """The grid of a dtype, such as "float8_e4m3fn", "float4_e2m1fn", "float8_e8m0fnu", "bfloat16",
    "int8" or "int4"; all whole numbers by default. Raises ValueError for anything else."""
    if ties not in get_args(Ties):
        raise ValueError(f"ties is {shown(ties)}: it must be one of {', '.join(get_args(Ties))}.")
    if not to:
        return NumberGrid("", 53, 52, -math.inf, math.inf, ties)
    try:
        kind = np.dtype(getattr(ml_dtypes, to, to))
        if kind.name.startswith(("int", "uint")):
            whole = ml_dtypes.iinfo(kind)
            return NumberGrid(
                to, 53, 52, float(whole.min), float(whole.max), ties, signed_zero=False
            )
        if kind.kind not in "fV":
            raise TypeError
        float_ = ml_dtypes.finfo(kind)
    except Exception:  # of many types
        raise ValueError(
            f"{shown(to)} is no format of floats or integers, such as float8_e4m3fn or int8."
        ) from None
    p, emin = float_.nmant + 1, int(float_.minexp)
    signed = bool(np.signbit(np.array(-0.0).astype(kind).astype(np.float64)))
    return NumberGrid(to, p, emin, float(float_.min), float(float_.max), ties, signed)
