"""Numbers for a reader: few digits, and no rounding that flatters.

A ratio below or above 1 never prints as 1, and a share is 100 % only if nothing is missing.
"""

from __future__ import annotations

import math

NOTHING = "–"


def figure(value: float | None, decimals: int = 1) -> str:
    """`value` with few digits: 0.60, 27.1, 70,188, 4.2e5; "–" for None.

    `decimals`: the digits after the point if there is an exponent.
    """
    if value is None:
        return NOTHING
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 99_999.5 or size < 0.001:
        mantissa, exponent = f"{value:.{decimals}e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    for least, digits in ((100, 0), (10, 1), (0.1, 2), (0.01, 3)):
        if size >= least:
            return f"{value:,.{digits}f}".replace("-", "−")
    return f"{value:.4f}".replace("-", "−")


_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_EXPONENTS = {"float16": 15, "bfloat16": 127, "float32": 127, "float64": 1023}
_NO_DIGIT = {"en": ("no digit", "no digit is right"), "zh": ("无正确位", "没有一位数字正确")}


def all_digits(dtype: str) -> float:
    """The error in ulp that leaves no digit: a quarter of the value, 2^p / 4 ulp. A larger error
    says no more. Infinite for an unknown format."""
    bits = _BITS.get(dtype)
    return math.inf if bits is None else 2.0 ** (bits - 2)


def normal_range(dtype: str) -> tuple[float, float]:
    """The smallest normal number, and 2^(emax + 1), which is beyond every finite number (infinity
    for float64); (0, infinity) for an unknown format."""
    exponent = _EXPONENTS.get(dtype)
    if exponent is None:
        return 0.0, math.inf
    return 2.0 ** (1 - exponent), math.inf if exponent == 1023 else 2.0 ** (exponent + 1)


def squares_from(dtype: str) -> float:
    """2^((emax + 1) / 2): the square of this or a larger number is beyond the format."""
    exponent = _EXPONENTS.get(dtype)
    return math.inf if exponent is None else 2.0 ** ((exponent + 1) / 2)


def digits(error: float, dtype: str) -> tuple[int, int] | None:
    """(decimal digits that an error in ulp leaves, decimal digits of the format); None for an
    unknown format and for NaN. An error of at most 1 ulp leaves all digits."""
    bits = _BITS.get(dtype)
    if bits is None or math.isnan(error):
        return None
    whole = round(bits * math.log10(2.0))
    if lost(error, dtype):
        return 0, whole
    if error <= 1.0:
        return whole, whole
    return max(0, math.floor((bits - math.log2(error)) * math.log10(2.0))), whole


def lost(value: float | None, dtype: str) -> bool:
    """Whether an error in ulp leaves no digit."""
    return value is not None and math.isfinite(all_digits(dtype)) and value >= all_digits(dtype)


def drawn_ulp(value: float | None, dtype: str) -> float | None:
    """The height of an error in a plot: at most the error that leaves no digit."""
    return None if value is None else min(value, all_digits(dtype))


def ulp_figure(value: float | None, dtype: str, lang: str = "en") -> str:
    """A number for a column headed ulp; "no digit" if none is right."""
    return _NO_DIGIT[lang][0] if lost(value, dtype) else figure(value)


def ulps(value: float | None, dtype: str, lang: str = "en") -> str:
    """`27.1 ulp`, or "no digit is right"."""
    return _NO_DIGIT[lang][1] if lost(value, dtype) else f"{figure(value)} ulp"


_LARGEST_RATIO = 1e17


def ratio(value: float | None) -> str:
    """`figure`, except that a value close to 1 shows on which side it lies, and a value beyond
    10^17 is capped: it exceeds what float64's digits distinguish, so its size means nothing."""
    if value is not None and _LARGEST_RATIO < value < math.inf:
        return ">1.0e17"
    text = figure(value)
    if value is None or text != "1.00" or value == 1:
        return text
    return "<1.00" if value < 1 else ">1.00"


def share(part: int, whole: int) -> str:
    """`part` of `whole` in per cent, truncated, not rounded, so that 100 % means all."""
    if whole <= 0:
        return NOTHING
    if part == whole:
        return "100 %"
    if part == 0:
        return "0 %"
    digits = 2 if part / whole > 0.999 else 1
    step = 10**digits
    cut = math.floor(100 * step * part / whole) / step
    return f"{cut:.{digits}f} %" if cut > 0 else f"<{1 / step:.{digits}f} %"


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """`1 case`, `1,204 cases`."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def joined(words: list[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def large(number: int) -> str:
    """A count, in millions or billions if it is large: 812, 41,300, 12.3 million."""
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:.1f} {name}"
    return f"{number:,}"
