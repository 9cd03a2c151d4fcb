"""JSON as this project writes it, read from files of strangers: finite numbers, real text.

Python's `json` also takes NaN, 1e999 and integers of any length, and makes half characters of
"\\ud800"; and it recurses. Here these are a ValueError, whose message is one clause.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

# A text's skeleton: every digit is 0, what stands beside a number is a comma, no exponent has a +.
_SKELETON = bytes.maketrans(b"123456789E]}:[ \t\r\n", b"000000000e,,,,,,,,")
_LONG_INTEGERS = (b"," + 19 * b"0", b",-" + 19 * b"0")
_LONG_EXPONENT = re.compile(rb"e000+,")


def loads(text: str, depth: int | None = None) -> Any:
    """The value of a JSON text; `depth`: how far its lists and objects may be nested. Raises
    ValueError for what is no JSON, for numbers that no float or 64-bit integer holds, for half
    characters (lone surrogates) and for deeper nesting."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if depth is not None or _suspicious(text):
        _check(value, 100 if depth is None else depth)
    return value


def _suspicious(text: str) -> bool:
    """False only where no number is too long, and no half character is written as \\ud800: a look
    at the bytes takes a tenth of the time of a walk through the values."""
    if "\\u" in text:
        return True
    skeleton = f",{text},".encode("utf-8", "surrogatepass").translate(_SKELETON, delete=b"+")
    return any(one in skeleton for one in _LONG_INTEGERS) or bool(_LONG_EXPONENT.search(skeleton))


def storable(value: Any) -> Any:
    """A tree of figures as strict JSON holds it: NaN and infinities are "nan", "inf", "-inf"."""
    if isinstance(value, dict):
        return {name: storable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [storable(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


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
