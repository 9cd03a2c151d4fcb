"""A parameter's value as somebody wrote it: after --param, or in a case file.

A value is None, a truth value, a number, a short text or a flat list of numbers. Numbers are finite
and integers fit into 64 bits; texts and lists are short. Whatever else is one sentence.
"""

from __future__ import annotations

import json
import math
from typing import Any

from refkernels.records import codec

LONGEST_TEXT = 200  # characters
LONGEST_LIST = 64  # numbers: as many as an array can have axes


def parse_parameter(text: str) -> Any:
    """The value of NAME=VALUE's right side: JSON, or a number as Python writes it. Raises
    ValueError with what is wrong, to go after the text itself."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"it has {len(text):,} characters, more than {LONGEST_TEXT}")
    try:
        value = codec.loads(text, depth=1)
    except json.JSONDecodeError:
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"{text[:40]!r} is no number and no list of them") from None
    return check_parameter(value)


def check_parameter(value: Any) -> Any:
    """The value, where it is one that an op may be given. Raises ValueError with what is wrong."""
    if isinstance(value, list):
        if len(value) > LONGEST_LIST:
            raise ValueError(f"it lists {len(value):,} numbers, more than {LONGEST_LIST}")
        if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
            raise ValueError("it is no flat list of numbers")
        return [check_parameter(item) for item in value]
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise ValueError(f"it has {len(value):,} characters, more than {LONGEST_TEXT}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("it is an integer beyond 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it is no finite number")
    if not isinstance(value, str | int | float | None):
        raise ValueError("it is no number and no list of them")
    return value
