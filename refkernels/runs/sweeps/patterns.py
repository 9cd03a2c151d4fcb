"""Bit patterns: the inputs of a sweep as integers, and ranges of them as a user writes them.

A pattern is the unsigned integer of a float's bits. Patterns count upwards in magnitude, the
positive floats first: 0x00000000 is +0, 0x7f800000 +inf, 0x80000000 -0 in float32. A binade is all
patterns that share sign and exponent field, pattern >> (p - 1).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format


@dataclass(frozen=True)
class Span:
    """The patterns start, ..., stop - 1."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class RangeError(ValueError):
    """The range cannot be read; the message says what is wrong and how to write one."""


def width(format: Format) -> int:
    """Bits of a pattern."""
    return 8 * format.storage.itemsize


def everything(format: Format) -> tuple[Span, ...]:
    """Every pattern of the format."""
    return (Span(0, 1 << width(format)),)


def parse_range(text: str, format: Format) -> tuple[Span, ...]:
    """The patterns that ``A:B`` means, both ends included.

    Hexadecimal ends are patterns (``0x3f800000:0x3fffffff``); decimal ends are values, each rounded
    to the format (``-1.0:1.0``, ``0:inf``), and mean all floats from A to B: the positive patterns
    and the negative ones, -0 with 0. Raises RangeError for other text, TypeError for anything but a
    string.
    """
    if not isinstance(text, str):
        raise TypeError(f"A range is a string such as '-1.0:1.0', not a {type(text).__name__}.")
    ends = text.split(":")
    if len(ends) != 2:
        raise RangeError(f"--range {text!r} is not A:B: write 0x3f800000:0x40000000 or -1.0:1.0.")
    hexadecimal = [end.strip().lower().startswith("0x") for end in ends]
    if any(hexadecimal) and not all(hexadecimal):
        raise RangeError(
            f"--range {text!r} mixes a bit pattern and a number: write both ends in the same way."
        )
    if all(hexadecimal):
        return _patterns_between(text, ends, format)
    return _values_between(text, ends, format)


def _patterns_between(text: str, ends: Sequence[str], format: Format) -> tuple[Span, ...]:
    if not all(re.fullmatch(r"0[xX][0-9a-fA-F]+", end.strip()) for end in ends):
        raise RangeError(f"--range {text!r}: a bit pattern looks like 0x3f800000.")
    first, last = (int(end, 16) for end in ends)
    if last >> width(format):
        raise RangeError(f"--range {text!r}: {format} has patterns of {width(format)} bits.")
    if first > last:
        raise RangeError(f"--range {text!r} is empty: the first pattern is beyond the last.")
    return (Span(first, last + 1),)


def _values_between(text: str, ends: Sequence[str], format: Format) -> tuple[Span, ...]:
    try:
        low, high = (float(formats.round_to([float(end)], format)[0]) for end in ends)
    except ValueError:
        raise RangeError(
            f"--range {text!r}: an end is neither a number nor a bit pattern like 0x3f800000."
        ) from None
    if not low <= high:
        raise RangeError(f"--range {text!r} is empty: the first number must not exceed the last.")
    spans = []
    if high >= 0.0:
        nearest, farthest = abs(max(low, 0.0)), abs(high)
        spans.append(Span(pattern_of(nearest, format), pattern_of(farthest, format) + 1))
    if low <= 0.0:
        sign = 1 << (width(format) - 1)
        nearest, farthest = abs(max(-high, 0.0)), abs(low)
        spans.append(
            Span(sign + pattern_of(nearest, format), sign + pattern_of(farthest, format) + 1)
        )
    return tuple(spans)


def pattern_of(value: float, format: Format) -> int:
    """The pattern of a value that the format holds."""
    return int(np.array([value]).astype(format.storage).view(format.bits_dtype)[0])


def values_of(patterns: npt.ArrayLike, format: Format) -> npt.NDArray[Any]:
    """The floats that have these patterns."""
    return np.asarray(patterns).astype(format.bits_dtype).view(format.storage)


def value_of(pattern: int, format: Format) -> float:
    """The float of one pattern, as a Python float."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is data here
        return float(values_of([pattern], format)[0])


def hexadecimal(pattern: int, format: Format) -> str:
    """0x3f800000: all digits, so that patterns line up. A negative int64 is taken modulo 2^64."""
    bits = width(format)
    return f"0x{pattern & ((1 << bits) - 1):0{bits // 4}x}"


def numbered(pair: Sequence[int], format: Format) -> int:
    """A pair of patterns as one number, the first input in the high bits; `parts` splits it."""
    first, second = pair
    return first << width(format) | second


def parts(number: int, format: Format, takes: int) -> list[int]:
    """The patterns of the inputs: [number] of a function of one, the pair of one of two."""
    bits = width(format)
    return [number] if takes == 1 else [number >> bits, number & ((1 << bits) - 1)]


def binades(format: Format) -> int:
    """The number of binades of both signs, with those of zero and of the special values."""
    return 1 << (width(format) - format.p + 1)


def binade_fields(binade: int, format: Format) -> tuple[int, int | None]:
    """(sign, exponent) of a binade: its floats are ±1.f * 2^exponent. The subnormals have
    exponent emin - 1, infinities and NaNs None."""
    half = binades(format) // 2
    sign, field = (-1 if binade >= half else 1), binade % half
    return sign, (None if field == half - 1 else format.emin + field - 1)


def split(spans: Sequence[Span], size: int) -> list[Span]:
    """The spans cut at the multiples of `size`."""
    pieces = []
    for span in spans:
        start = span.start
        while start < span.stop:
            stop = min(span.stop, (start // size + 1) * size)
            pieces.append(Span(start, stop))
            start = stop
    return pieces


def count(spans: Sequence[Span]) -> int:
    """The number of patterns in all spans together."""
    return sum(len(span) for span in spans)


def printed(pattern: int, format: Format) -> str:
    """The shortest decimal that reads back as this float; "nan" and "inf" in words."""
    with np.errstate(invalid="ignore"):
        value = values_of([pattern], format)[0]
    # As a float32 a bfloat16 has a decimal that is longer than necessary, but reads back exactly.
    return str(np.float32(value) if format.name == "bfloat16" else value)
