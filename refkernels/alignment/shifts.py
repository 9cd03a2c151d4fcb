"""Which steps of two runs belong together: one run is late, or goes through a schedule faster."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_FASTEST = 64  # steps of one run in a step of the other
_LATEST = 1000  # steps
_Alike = Callable[[Any, Any], bool]


def moved(a: dict[int, Any], b: dict[int, Any], alike: _Alike, least: int) -> dict[str, Any]:
    """The run that has at every step t what the other has at step t - `steps`, or at `stride` t and
    a few steps (`at`); {} where there is no such rule. `a`, `b`: values by step, in order; `least`:
    how many other values show a rule."""
    order = list(a)
    rules = [(1, order[0] - step) for step in order[1 : min(len(order) // 2, _LATEST) + 1]]
    rules += ((k, shift) for k in range(2, _FASTEST) for shift in sorted(range(-k, k + 1), key=abs))
    sides = (("B", "A", b, a), ("A", "B", a, b))
    for (stride, shift), (run, other, own, its) in itertools.product(rules, sides):
        if len(set(_shared(own, its, stride, shift, alike))) >= least:
            at = f"{stride} t" + (f" {'-' if shift < 0 else '+'} {abs(shift)}" if shift else "")
            kind = "fast" if stride > 1 else "late"
            return {"moved": kind, "run": run, "other": other, "steps": -shift, "at": at}
    return {}


def _shared(
    own: dict[int, Any], its: dict[int, Any], stride: int, shift: int, alike: _Alike
) -> list[Any]:
    """One run's values at all steps that have one in the other run; none where two differ."""
    values, ends = [], (next(iter(its), 0), next(reversed(its), -1))
    for step, value in own.items():
        place = stride * step + shift
        if place > ends[1]:
            break
        if place >= ends[0]:
            if place not in its or not alike(value, its[place]):
                return []
            values.append(value)
    return values
