"""Records as strict JSON, one per line, with words for the figures that JSON cannot write.

Infinities and NaN are "inf", "-inf" and "nan". Files are not trusted. Python's `json` also accepts
NaN, 1e999, integers of any length and half characters (lone surrogates: "\\ud800"), and it
recurses. Here each of these raises a ValueError whose message is one clause.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from typing import Any, NoReturn

# A text's skeleton: every digit becomes 0; every character that may adjoin a number, a comma.
_SKELETON = bytes.maketrans(b"123456789E]}:[ \t\r\n", b"000000000e,,,,,,,,")
_LONG, _LONG_NEGATIVE = b"," + 19 * b"0", b",-" + 19 * b"0"
_LONG_EXPONENT = re.compile(rb"e\+?000+,")
_NON_FINITE = {str(value): value for value in (math.inf, -math.inf, math.nan)}


def dumps(value: Any) -> str:
    """A tree of figures and texts as strict JSON on one line."""
    try:
        return _ENCODER.encode(value)
    except ValueError:  # rare: a figure is not finite
        return _ENCODER.encode(storable(value))


def storable(value: Any) -> Any:
    """A tree of figures as strict JSON holds it."""
    if isinstance(value, dict):
        return {name: storable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [storable(inner) for inner in value]
    return figure(value) if isinstance(value, float) or hasattr(value, "item") else value


def figure(value: Any) -> bool | int | float | str:
    """A Python or NumPy number as strict JSON holds it."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool | int):
        return plain
    return float(plain) if math.isfinite(plain) else str(float(plain))


def number(stored: bool | int | float | str | None) -> float | None:
    """The float that `figure` stored; None for None."""
    return None if stored is None else float(stored)


def restored(value: Any, texts: Collection[str]) -> Any:
    """The tree that `storable` was given. `texts`: fields that stay texts, even "nan"."""
    if isinstance(value, dict):
        return {
            key: inner if key in texts and isinstance(inner, str) else restored(inner, texts)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [restored(inner, texts) for inner in value]
    return _NON_FINITE.get(value, value) if isinstance(value, str) else value


def holds_words(line: str) -> bool:
    """Whether a line of JSON may hold a figure as a word, and needs `restored`."""
    return 'inf"' in line or '"nan"' in line


def loads(text: str, depth: int | None = None, harmless: bool = False) -> Any:
    """The value of a JSON text; `depth`: how deeply its lists and objects may be nested;
    `harmless`: whether it is part of a text that is not `suspicious`. Raises ValueError for what is
    not JSON, for numbers that no float or 64-bit integer holds, for half characters (lone
    surrogates) and for deeper nesting."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if depth is not None or (not harmless and suspicious(text)):
        _check(value, 100 if depth is None else depth)
    return value


def suspicious(text: str) -> bool:
    """False only if no number is too long and no lone surrogate is written as \\ud800. Searching
    the bytes takes a tenth of the time of walking through the values."""
    if "\\u" in text:
        return True
    skeleton = f",{text},".encode("utf-8", "surrogatepass").translate(_SKELETON)
    if _LONG in skeleton or _LONG_NEGATIVE in skeleton:
        return True
    # This search takes half the time of the regular expression, which it mostly saves.
    three_digits = b"e000" in skeleton or b"e+000" in skeleton
    return three_digits and bool(_LONG_EXPONENT.search(skeleton))


def _check(value: Any, depth: int) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half a character (a lone surrogate)") from None
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("it holds a number that no float64 can")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError("it holds an integer beyond 64 bits")
    elif isinstance(value, dict | list):
        if depth == 0:
            raise ValueError("it is nested too deeply")
        for inner in value.values() if isinstance(value, dict) else value:
            _check(inner, depth - 1)
        for name in value if isinstance(value, dict) else ():
            _check(name, 0)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"bare {name}, which strict JSON does not have")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
