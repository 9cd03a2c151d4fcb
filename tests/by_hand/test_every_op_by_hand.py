"""Every op, direction and output: random elements of random cases, recomputed with mpmath.

The definitions (`hand_*.py`) share no code with the oracles. `make hunt` takes more draws of each,
and others each time.
"""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hand import DEFINITIONS, NoValue, Value, element
from hunting import HUNT, one_in, seed_of
from mpmath import mp

from refkernels import Enclosure, registry
from refkernels.op import Case, Direction, Op

Ends = tuple[Any, Any]  # of an interval, in mpmath's numbers: their exponents are of any size
OPS = registry.ops()
QUESTIONS = [
    (op, direction, output)
    for op in OPS.values()
    for direction in op.directions
    for output in op.names(direction)
]
NAMED: Any = {"ids": lambda q: f"{q[0].name}-{q[1]}-{q[2]}"}
SEED = seed_of(14)
DRAWS = 200  # until an element has a finite value
ELEMENTS = {"forward": 6000, "backward": 1300}  # of the inputs, where an element takes them all
EXACT = 6000  # digits, more than a value has, with which ends and slack are compared
NOTHING = mp.mpf(10) ** -40  # digits cannot tell 0 from less, where an exact 0 is claimed
LADDERS = {True: (120, 600, 5000), False: (120, 600)}  # digits; for a function, for other ops


def test_every_op_has_a_definition() -> None:
    assert DEFINITIONS.keys() == OPS.keys()


@pytest.mark.parametrize("question", QUESTIONS, **NAMED)
def test_an_element_lies_in_its_enclosure(question: tuple[Op, Direction, str]) -> None:
    op, direction, output = question
    name = f"{op.name} {direction} {output}"
    for draw in range(HUNT):  # elements of each question
        rng = np.random.default_rng([SEED, draw, zlib.crc32(name.encode())])
        drawn = f"{name}, REFKERNELS_FUZZ_SEED={SEED}, draw {draw}"
        element = decided(op, direction, output, rng)
        assert element, f"{drawn}: no element of {DRAWS} drawn has a value"
        where, ends, value = element
        assert holds(ends, value), f"{drawn}, {where}: {value} is not in {ends}"


@pytest.mark.parametrize("question", one_in(3, QUESTIONS), **NAMED)
def test_an_interval_beside_it_does_not_hold_the_element(
    question: tuple[Op, Direction, str],
) -> None:
    """The computation by hand is accurate enough to refuse a neighbour of the enclosure."""
    op, direction, output = question
    name = f"{op.name} {direction} {output}"
    rng = np.random.default_rng([SEED, 0, zlib.crc32(name.encode())])
    element = decided(op, direction, output, rng)
    assert element
    (lower, upper), value = element[1:]
    with mp.workdps(EXACT):
        least = mp.ldexp(1, -2000) if value.decided else 2 * NOTHING
        width = max(upper - lower, abs(lower) / 2**80, least)
        assert not holds((lower + width, upper + width), value)
        assert not holds((lower - width, upper - width), value)


def test_a_tables_gradient_is_drawn_where_its_rows_were_looked_up() -> None:
    """Elsewhere it is 0, and does not notice a cotangent that is moved by 2^-30."""
    op, rng, noticed = OPS["embedding"], np.random.default_rng(SEED), 0
    for _ in range(12):
        element = decided(op, "backward", "dweight", rng)
        assert element
        ends, value = element[1:]
        moved = Value(value.middle * (1 + mp.ldexp(1, -30)), value.slack)
        noticed += not holds(ends, moved)
        assert value.middle == 0 or not holds(ends, moved)
    assert noticed >= 4


def decided(
    op: Op, direction: Direction, output: str, rng: np.random.Generator
) -> tuple[str, Ends, Value] | None:
    """The first random element whose value is known: what it is, its enclosure, its value."""
    for where, ends, value in drawn(op, direction, output, rng):
        nothing = ends[0] == ends[1] == 0 and abs(value.middle) + value.slack < NOTHING
        if value.decided or nothing:
            return where, ends, value
    return None


def holds(ends: Ends, value: Value) -> bool:
    """Whether the interval, with the value's own uncertainty, holds it."""
    (lower, upper), middle = ends, value.middle
    least = mp.fsub(middle, value.slack, dps=EXACT, rounding="f")
    most = mp.fadd(middle, value.slack, dps=EXACT, rounding="c")
    return bool((lower < most and least < upper) or lower == middle == upper)


def ends_of(enclosure: Enclosure, place: tuple[int, ...]) -> Ends | None:
    """The ends of a finite element's open interval, (hi + lo ± radius) 2^scale."""
    parts = [float(part[place]) for part in (enclosure.hi, enclosure.lo, enclosure.radius)]
    if not np.isfinite(parts).all():
        return None
    hi, lo, radius = map(mp.mpf, parts)
    middle, scale = mp.fadd(hi, lo, exact=True), int(enclosure.scale[place])
    lower, upper = mp.fsub(middle, radius, exact=True), mp.fadd(middle, radius, exact=True)
    return mp.ldexp(lower, scale), mp.ldexp(upper, scale)


def place_in(enclosure: Enclosure, rng: np.random.Generator) -> tuple[int, ...]:
    """A random place: of an element other than 0 in half of the draws, where there is one. Most
    rows of a table's gradient are 0, whatever the inputs."""
    places = np.argwhere(np.asarray(enclosure) != 0.0) if rng.integers(2) else ()
    if len(places):
        return tuple(map(int, places[rng.integers(len(places))]))
    return tuple(int(rng.integers(n)) for n in enclosure.shape)


def drawn(
    op: Op, direction: Direction, output: str, rng: np.random.Generator
) -> Iterator[tuple[str, Ends, Value]]:
    """Random elements that have a finite value."""
    regimes: dict[str, list[Case]] = {}
    for case in op.cases():
        if direction in case.directions:
            regimes.setdefault(case.regime, []).append(case)
    for _ in range(DRAWS):
        cases = list(regimes.values())[rng.integers(len(regimes))]  # so that params take turns
        case = cases[rng.integers(len(cases))]
        dtype = case.dtypes[rng.integers(len(case.dtypes))]
        inputs, params = case.build(dtype)
        inputs = {name: inputs[name] for name in op.takes(direction) if name in inputs}
        if not op.elementwise and sum(map(np.size, inputs.values())) > ELEMENTS[direction]:
            continue
        enclosure = op.evaluate(direction, inputs, params).get(output)
        if enclosure is None or not enclosure.size:
            continue
        place = place_in(enclosure, rng)
        ends = ends_of(enclosure, place)
        if ends is None:
            continue
        cotangent = op.cotangent if direction == "backward" else None
        given, shape = {**op.params, **params}, enclosure.shape
        asked = element(op.name, output, place, inputs, given, cotangent, shape, op.elementwise)
        try:
            yield f"{case.name}, {dtype}, {place}", ends, asked.value(LADDERS[op.elementwise])
        except NoValue:
            continue
