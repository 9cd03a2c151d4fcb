"""How ordinary the input of a measurement is, and how wrong its answer: both rank the findings.

Both come from the record. How ordinary the input is follows from the worst element (the inputs that
it depends on, and its exact answer) and from the case's median condition number.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any
from weakref import WeakKeyDictionary

from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.words.escaping import clipped
from refkernels.reporting.words.numerals import all_digits, normal_range, squares_from
from refkernels.reporting.words.vocabulary import UNUSUAL, WIDE, Verdict, rank_of_direction, verdict

_ROUNDING = verdict("rounding").rank
_FEW, _MANY = 256, 65_536  # elements: fewer are little evidence of a cause, more take long


class Input(IntEnum):
    """How ordinary an input is, the most ordinary first.

    ORDINARY   the inputs and the exact answer are 0 or normal numbers whose squares the format
               holds, and the median condition number leaves half of the digits
    DEMANDING  the same numbers, but the condition leaves fewer digits
    EDGE       NaN, infinities, subnormal numbers, numbers whose squares are beyond the format, or a
               condition that leaves no digit
    """

    ORDINARY = 0
    DEMANDING = 1
    EDGE = 2


_KINDS: WeakKeyDictionary[Measurement, Input] = WeakKeyDictionary()  # every view asks again


def input_of(m: Measurement) -> Input:
    """The kind of input on which a measurement shows its finding."""
    if (kind := _KINDS.get(m)) is None:
        kind = _KINDS[m] = _kind_of(m)
    return kind


def _kind_of(m: Measurement) -> Input:
    if m.tally("expected_specials") or not all(
        _is_ordinary(value, m.dtype) for value in _values(m)
    ):
        return Input.EDGE
    median, no_digit = m.number("condition", "median"), all_digits(m.dtype)
    if median is None or median <= math.sqrt(no_digit):
        return Input.ORDINARY
    return Input.DEMANDING if median < no_digit else Input.EDGE


def level_of(m: Measurement) -> Verdict:
    """The verdict, or UNUSUAL for a measurement that is inside the bound but stands out."""
    return UNUSUAL if m.verdict.rank >= _ROUNDING and m.unusual else m.verdict


def concerned(m: Measurement) -> tuple[int, int]:
    """(how many elements show the finding, of how many): those with a wrong special value or beyond
    the bound; else those whose range a form leaves, or else that are not correctly rounded."""
    special = m.tally("special_value_mismatches")
    beyond = max(special, m.tally("beyond_bound")) or m.tally("range_limited")
    if beyond:
        return beyond, max(beyond, m.tally("elements"))
    right, decided = m.rounded
    return decided - right, decided


def loss(m: Measurement) -> float:
    """How wrong a measurement is, from 0 to 1: the share of its elements that are concerned, times
    the mean share of their digits that is lost. A wrong special value has lost all digits."""
    special, elements = m.tally("special_value_mismatches"), m.tally("elements")
    part, whole = concerned(m)
    mean = abs(m.number("ulp", "mean") or 0.0)
    digits = math.log2(all_digits(m.dtype))
    is_known = math.isfinite(mean) and math.isfinite(digits)
    lost = min(1.0, math.log2(1.0 + mean) / digits) if is_known else 1.0
    return max(part / whole * lost if whole else 0.0, special / elements if elements else 0.0)


def example_of(measurements: Iterable[Measurement]) -> Measurement:
    """The measurement to show. It has, in order of priority, the most ordinary input, the worst
    verdict, a wide format, the forward pass and a handy size. Of those that are left, it has the
    typical loss (the upper median)."""
    remaining = list(measurements)
    for rank in _IN_ORDER:
        best = min(rank(m) for m in remaining)
        remaining = [m for m in remaining if rank(m) == best]
    remaining.sort(key=lambda m: (loss(m), m.case, m.output))
    return remaining[len(remaining) // 2]


_IN_ORDER: tuple[Callable[[Measurement], Any], ...] = (
    input_of,
    lambda m: level_of(m).rank,
    lambda m: m.dtype not in WIDE,
    lambda m: rank_of_direction(m.direction),
    lambda m: not _FEW <= m.tally("elements") <= _MANY,
)


Place = tuple[str, str, str, str, str]


def place_of(m: Measurement) -> Place:
    """Target, op, pass, format and output."""
    return m.subject, m.op, m.direction, m.dtype, m.output


class Measured:
    """For each target, op, pass and format, the number of cases measured, edge cases counted apart.
    An output that only a few cases have is averaged over all of them."""

    def __init__(self, study: Study) -> None:
        cases = {(place_of(m)[:4], input_of(m) is Input.EDGE, m.case) for m in study.measurements}
        self._cases = Counter((place, edge) for place, edge, _ in cases)

    def loss(self, measurements: Iterable[Measurement]) -> float:
        """How wrong a finding is: its mean loss over all cases of its kind (edge cases or others)
        on which the op was measured, those that do not show it included. The largest mean of all
        places."""
        sums: dict[tuple[Place, bool], float] = defaultdict(float)
        for m in measurements:
            sums[place_of(m), input_of(m) is Input.EDGE] += loss(m)
        return max(lost / self._cases[place[:4], edge] for (place, edge), lost in sums.items())


def _values(m: Measurement) -> Iterator[float]:
    """The numbers that the worst element depends on, as far as the record shows them, and its exact
    answer."""
    shown = [m.worst.get("exact"), *(m.worst.get("inputs") or {}).values()]
    for place in shown:
        text = place.get("decimal") if isinstance(place, dict) else None
        for part in str(text or "").split(", "):
            try:
                yield float(part)
            except ValueError:  # dots, a truth value, nothing
                continue


def _is_ordinary(value: float, dtype: str) -> bool:
    least, _ = normal_range(dtype)
    return value == 0.0 or least <= abs(value) < squares_from(dtype)


def shown_inputs(m: Measurement, most: int = 2) -> str:
    """`x[0, 5] = -1.839, weight = 1.09`: the inputs of the worst element in one line."""
    parts = []
    for name, place in (m.worst.get("inputs") or {}).items():
        if isinstance(place, dict) and place.get("decimal") is not None:
            parts.append(f"{clipped(str(name), 20)} = {short_number(str(place['decimal']))}")
    shown = ", ".join(parts[:most])
    return shown if len(parts) <= most or shown.endswith("…") else f"{shown}, …"


def distinguishing_digits(got: str, exact: str) -> tuple[str, str]:
    """Both numbers with the fewest digits, 9, 13 or 17, that show that they differ."""
    pairs = [(short_number(got, digits), short_number(exact, digits)) for digits in (9, 13, 17)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1])


def short_number(decimal: str, digits: int = 9) -> str:
    """A decimal, or the first of a list, with at most that number of significant digits."""
    first, *more = clipped(decimal, 200).split(", ")
    try:
        text = f"{float(first):.{digits}g}"
    except ValueError:
        text = clipped(first, 24)
    return f"{text}, …" if more else text
