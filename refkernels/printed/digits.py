"""The floats that print as a number: the interval that its digits leave open.

A float is within half a unit of the last of its digits, but for two conventions. NumPy, and what
prints through it, stops where the digits identify one float, and cuts zeros: a number of fewer
digits than others of its array is the float nearest to the text, or has its zeros cut. torch and
oneflow print whole numbers as "3.", exactly; typed digits, as in np.array([0.1]), mean the nearest
float. So the interval is the hull of text ± half a unit and the nearest float, between floats of
the dtype. An unknown dtype is float32, unless a number has more digits than that needs.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.printed.text import Printed

Doubles = npt.NDArray[np.float64]
_ROUNDED = ("torch", "oneflow")  # these print every number with the same number of digits
_FLOAT32_DIGITS = 9
_BEYOND_FLOAT32 = Fraction(341) * 10**36  # no float32 prints as more, however few its digits
_LARGEST_EXPONENT = 5000  # of a printed number: the smallest number of any format is 1e-4951
_PARTS = re.compile(r"[-+]?(\d*)(?:(\.)(\d*))?(?:[eE]([-+]?\d+))?")


@dataclass(frozen=True)
class Intervals:
    """Every number's interval [low, high], float64 arrays of the tensor's shape; both ends of a NaN
    are NaN. `middle`: the printed numbers as floats of the format. `exact`: whether every printed
    number is a float of the format."""

    low: Doubles
    high: Doubles
    middle: npt.NDArray[Any]
    format: Format | None
    exact: bool
    digits: int

    @cached_property
    def mid(self) -> Doubles:
        """The middle of every interval."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.where(self.low == self.high, self.low, self.low / 2 + self.high / 2)

    @cached_property
    def radius(self) -> Doubles:
        """At least the distance of `mid` from either end; 0 for exact and non-finite numbers."""
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.maximum(self.high - self.mid, self.mid - self.low)
            distance = np.where(
                distance > 0.0, np.nextafter(distance * (1 + 2.0**-50), np.inf), 0.0
            )
        return np.where(np.isfinite(self.mid), distance, 0.0)


def intervals(tensor: Printed) -> Intervals:
    """The intervals of a tensor's numbers.

    Raises ValueError, one sentence, for a truncated tensor and for numbers that fit no format.
    """
    if tensor.shape is None:
        raise ValueError(
            f"Tensor {called(tensor)} is printed with ... in place of most numbers: print it whole "
            "(set_printoptions(threshold=1_000_000) in NumPy, torch, paddle and oneflow)."
        )
    if tensor.dtype == "bool" or set(tensor.texts) <= {"True", "False"}:
        return _exact_intervals(tensor, np.array([text in ("True", "1") for text in tensor.texts]))
    if _is_integer(tensor):
        try:
            numbers = [int(text) for text in tensor.texts]
            kind = np.int8 if tensor.dtype == "int8" else np.int64  # int8 may be an operand
            return _exact_intervals(tensor, np.array(numbers, kind))
        except (ValueError, OverflowError):
            bits = 8 if tensor.dtype == "int8" else 64
            raise ValueError(f"Tensor {called(tensor)} holds no {bits}-bit integers.") from None
    digits = max(map(significant, tensor.texts))
    scale = _fraction(tensor.scale) if tensor.scale else Fraction(1)
    finite = [_fraction(text) * scale for text in tensor.texts if _is_finite(text)]
    wide = digits > _FLOAT32_DIGITS and not all(map(_is_float32, tensor.texts))
    wide |= any(abs(value) > _BEYOND_FLOAT32 for value in finite)
    format = formats.get(tensor.dtype or ("float64" if wide else "float32"))
    ends = _ends(tensor, format)
    low, high, middle = np.array(ends, np.float64).reshape(-1, 3).T.reshape(3, *tensor.shape)
    exact = all(_nearest(value, format) == value for value in finite)
    with np.errstate(over="ignore"):
        return Intervals(low, high, middle.astype(format.storage), format, exact, digits)


def called(tensor: Printed) -> str:
    """The tensor's number and name, for a sentence."""
    return f"{tensor.number} ({tensor.name})" if tensor.name else f"{tensor.number}"


def significant(text: str) -> int:
    """The number of significant digits of a printed number."""
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return 0
    digits = (parts[1] + (parts[3] or "")).lstrip("0")
    return max(len(digits), 1)


def _is_float32(text: str) -> bool:
    """Whether a number with a float64's digits is one of float32, as `item()` returns it."""
    with np.errstate(all="ignore"):
        return bool(np.float32(text) == np.float64(text))


def _is_integer(tensor: Printed) -> bool:
    if tensor.dtype is not None:
        return "int" in tensor.dtype
    return all(text.lstrip("+-").isdigit() for text in tensor.texts) and not tensor.typed


def _exact_intervals(tensor: Printed, numbers: npt.NDArray[Any]) -> Intervals:
    assert tensor.shape is not None
    array = numbers.reshape(tensor.shape)
    doubles = array.astype(np.float64)
    return Intervals(doubles, doubles, array, None, True, 0)


def _ends(tensor: Printed, format: Format) -> list[tuple[float, float, float]]:
    """low, high and the nearest float of every number."""
    scale = _fraction(tensor.scale) if tensor.scale else Fraction(1)
    of_numpy = tensor.framework not in _ROUNDED and (tensor.framework != "" or tensor.spaced)
    places = max(map(_decimals, tensor.texts)) if of_numpy else None  # trailing zeros are cut
    exact = tensor.typed or (
        tensor.framework in _ROUNDED
        and all(text.endswith(".") for text in tensor.texts if _is_finite(text))
    )
    ends = []
    for text in tensor.texts:
        if not _is_finite(text):
            special = float(text)
            ends.append((special, special, special))
            continue
        value = _fraction(text) * scale
        exponent = _exponent_of_last_digit(text)
        if places is not None and "e" not in text.lower():
            exponent = min(exponent, -places)
        half = Fraction(0) if exact else Fraction(10) ** exponent * scale / 2
        nearest = _nearest(value, format)
        if math.isinf(nearest) and not exact:  # digits of a float near the end of the range
            nearest = math.copysign(format.max, nearest)
            if abs(value) - half > Fraction(format.max):
                raise ValueError(
                    f"Tensor {called(tensor)} holds {text}, but {format.name} ends at "
                    f"{format.max:.5g}: correct its dtype."
                )
        low = min(_inside(value - half, format, 1), nearest)
        high = max(_inside(value + half, format, -1), nearest)
        if not exact:
            low, high = max(low, -format.max), min(high, format.max)
        if exact:  # or the number itself, in a wider format
            double = float(value)
            low, high = min(low, double), max(high, double)
        ends.append((low, high, nearest))
    return ends


def _is_finite(text: str) -> bool:
    return text.lstrip("+-")[:1].lower() not in ("n", "i")


def _decimals(text: str) -> int:
    """The number of digits after the point; 0 for a number with an exponent."""
    parts = _PARTS.fullmatch(text)
    return 0 if parts is None or parts[4] else len(parts[3] or "")


def _exponent_of_last_digit(text: str) -> int:
    """The power of ten of the last digit."""
    parts = _PARTS.fullmatch(text.replace("_", ""))
    assert parts is not None
    return _exponent(parts[4]) - len(parts[3] or "")


def _exponent(text: str | None) -> int:
    value = int(text or 0)
    if abs(value) > _LARGEST_EXPONENT:
        raise ValueError(f"A printed number has the exponent {value}, which no format has.")
    return value


def _fraction(text: str) -> Fraction:
    parts = _PARTS.fullmatch(text.replace("_", ""))
    if parts is None:
        raise ValueError(f"{text!r} is not a finite number.")
    _exponent(parts[4])
    return Fraction(text)


def _nearest(value: Fraction, format: Format) -> float:
    """The nearest float of the format, ties to even; infinity beyond its range."""
    if not value:
        return 0.0
    quantum = max(_floor_log2(abs(value)), format.emin) - format.p + 1
    steps = round(value / Fraction(2) ** quantum)
    return _ldexp(steps, quantum, format)


def _inside(value: Fraction, format: Format, side: int) -> float:
    """The first float of the format at or above the value (side 1), at or below (side -1)."""
    if not value:
        return 0.0
    quantum = max(_floor_log2(abs(value)), format.emin) - format.p + 1
    scaled = value / Fraction(2) ** quantum
    steps = math.ceil(scaled) if side > 0 else math.floor(scaled)
    return _ldexp(steps, quantum, format)


def _ldexp(steps: int, quantum: int, format: Format) -> float:
    if abs(steps) * Fraction(2) ** quantum > Fraction(format.max):
        return math.copysign(math.inf, steps)
    return math.ldexp(steps, quantum)


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess - 1 if Fraction(2) ** guess > value else guess
