"""Reads a parameter's value as a user wrote it: after --param, or in a case file.

A value is None, a boolean, a finite number, a short text or a short flat list of numbers. Integers
fit into 64 bits. Any other value is refused.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from refkernels.records import codec

LONGEST_TEXT = 200  # characters
LONGEST_LIST = 64  # numbers: as many as an array can have axes
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")  # norm.beta names a parameter
_OF_PYTHON = {"None": None, "True": True, "False": False}


def parse_parameter(text: str) -> Any:
    """The value of the right side of NAME=VALUE: JSON, a number, None or a truth value as Python
    writes it, or a bare word, such as sum or norm.beta. Raises ValueError, whose message is a
    clause for the caller to put after the text."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"it has {len(text):,} characters, more than {LONGEST_TEXT}")
    try:
        value = _OF_PYTHON[text] if text in _OF_PYTHON else codec.loads(text, depth=1)
    except json.JSONDecodeError:
        value = _unquoted(text)
    return check_parameter(value)


def _unquoted(text: str) -> Any:
    """What is no JSON."""
    try:
        return float(text)
    except ValueError:
        if _WORD.fullmatch(text):
            return text
    raise ValueError(f"{text[:40]!r} is neither a number, a list of numbers nor a word")


def check_parameter(value: Any) -> Any:
    """The value, if an op may take it. Raises ValueError, whose message is a clause."""
    if isinstance(value, list):
        if len(value) > LONGEST_LIST:
            raise ValueError(f"it lists {len(value):,} numbers, more than {LONGEST_LIST}")
        if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
            raise ValueError("it is not a flat list of numbers")
        return [check_parameter(item) for item in value]
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise ValueError(f"it has {len(value):,} characters, more than {LONGEST_TEXT}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("it is an integer beyond 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it is not a finite number")
    if not isinstance(value, str | int | float | None):
        raise ValueError("it is neither a number nor a list of numbers")
    return value
