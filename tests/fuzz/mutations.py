"""Malformed values and files, made from good ones."""

import json
from typing import Any

import numpy as np

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, -(2**63), 2**63, 10**30, 10**400, 0.5, -0.0, 1e308, 5e-324,
    "inf", "-inf", "nan", "", "0", "x", "1e999", "\0", "\x1b[31m", "\ud800", "\u202e", "a\nb",
    "a|b", "$x$", "\\frac{", "{{ x }}", "{% x %}", "</svg><script>", "../../x", "%s%n", "数" * 400,
    [], {}, [[]], [None], [0, 1], [[0, 1]], [["x", "y"]], {"": None}, {"x": {"y": []}},
    {"input": 1, "got": 2}, [{"sign": 1, "exponent": 10**6, "inputs": 1}],
)  # fmt: skip


def strange(random: np.random.Generator) -> Any:
    """A value that fits few places."""
    if random.random() < 0.05:
        value: Any = strange(random)
        for _ in range(int(random.choice([3, 30, 300]))):
            value = [value] if random.random() < 0.5 else {"x": value}
        return value
    return _copy(STRANGE[int(random.integers(len(STRANGE)))])


def mutated(value: Any, random: np.random.Generator) -> Any:
    """A copy of a JSON value with one place altered: replaced, left out, moved or renamed."""
    value = _copy(value)
    place = _place(value, random)
    if place is None:
        return strange(random)
    holder, key = place
    what = random.random()
    if what < 0.2:
        del holder[key]
    elif what < 0.3 and isinstance(holder, dict):
        holder[str(random.choice(["", "\0", "\ud800", "x.y", "inputs", "数"]))] = holder.pop(key)
    elif what < 0.45:
        source = _place(value, random)
        holder[key] = _copy(source[0][source[1]]) if source else None
    elif what < 0.6 and isinstance(holder[key], int | float):
        factor = float(random.choice([-1.0, 0.0, 1e-300, 1e10, 0.5]))
        holder[key] = factor * min(max(holder[key], -(2**1000)), 2**1000)
    else:
        holder[key] = strange(random)
    return value


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """The bytes with a few altered, left out, repeated, or cut off at the end."""
    changed = bytearray(content)
    for _ in range(int(random.integers(1, 5))):
        if not changed:
            break
        place = int(random.integers(len(changed)))
        length = int(random.choice([1, 1, 1, 2, 8, 60]))
        what = random.random()
        if what < 0.6:
            changed[place : place + length] = random.bytes(min(length, len(changed) - place))
        elif what < 0.75:
            del changed[place : place + length]
        elif what < 0.9:
            changed[place:place] = changed[place : place + length]
        else:
            del changed[place:]
    return bytes(changed)


def line(record: Any) -> str:
    """A record as a line of JSON, as an editor might leave it."""
    return json.dumps(record)


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))  # without Python's recursion


def _place(value: Any, random: np.random.Generator) -> tuple[Any, Any] | None:
    """(holder, key) of a place in a tree: every level alike, however many leaves it has."""
    keys = _keys(value)
    if not keys:
        return None
    key = keys[int(random.integers(len(keys)))]
    deeper = _place(value[key], random) if random.random() < 0.8 else None
    return deeper or (value, key)


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value))) if isinstance(value, list) else []
