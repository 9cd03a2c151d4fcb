"""Checks enclosures of every primitive against exact rationals or Arb, and counts them.

    python benchmarks/enclosures.py [Ball fused DoubleDouble Arb Bound] [--elements 80000]

Each reading of a primitive checks --elements elements: random and adversarial ones, as the tests
draw them (`context_rules`), with ties and the ends of float64. Where an input is not finite, the
radius must be infinite. Fused kernels must have the bits of NumPy's mids (`agree`). `Bound` counts
the answers of emulated kernels in all formats. Algebraic primitives are compared with exact
rationals, the others with Arb, at a precision that decides every comparison. A stopped run resumes.
The counts go to benchmarks/results, and tools/write_readme.py copies them into docs/trust.md. The
first element outside its enclosure raises AssertionError.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import flint
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "contexts"))
from context_kernels import attacked
from context_rules import BINARY, NAMES, ROWS, UNARY, doubles, radii, tails

from refkernels.contexts import Arb, Ball, DoubleDouble, Rational, generated
from refkernels.contexts.double_double_value import DoubleDoubleValue
from refkernels.contexts.graph import Untraceable
from refkernels.contexts.objects import data, objects
from refkernels.records.files import write_whole

KEPT = Path(__file__).parent / "results" / "cpu-x86_64-linux" / "enclosures.json"
CALL = 20_000  # elements of one call
PRECISIONS = 200, 1400, 5000, 20000
TRANSCENDENTAL = {*NAMES, "logaddexp", "newton and schulz", "norm", "real power"}
DENSE = {"prod", "others"}  # their rationals have as many digits as all factors together
HULLS = {"where", "streamed squares"}  # their mids may depend on the rounding of a radius
FORMATS = "float16", "bfloat16", "float32", "float64"
SHAPES = (60, 1), (90, 3), (40, 33), (150, 5)
LARGEST = np.nextafter(np.finfo(float).max, 0.0)  # with a neighbour on either side
B, D = Ball(), DoubleDouble()
Array = Any
Exact = tuple[Any, Any]  # numbers of Arb without a radius
Rule = Callable[..., Any]
RULES: dict[str, Rule] = {
    **UNARY,
    **BINARY,
    "real power": lambda xp, a, b: xp.real_power(xp.square(a) + xp.number(2.0**-40), b),
    **ROWS,
}


class Fractions(Rational):
    """flint's rationals, an order faster than Python's; None where 0 divides."""

    def element(self, value: Any) -> Any:
        exact = super().element(value)
        return flint.fmpq(exact.numerator, exact.denominator)

    def power(self, a: Any, exponent: int) -> Any:
        return self.each(lambda x: x**exponent if exponent > 0 or x != 0 else None, a)

    def divide(self, a: Any, b: Any) -> Any:
        return self.each(lambda x, y: x / y if y != 0 else None, a, b)

    def step(self, a: Any, grid: Any) -> Any:
        return self.each(lambda x: self.element(grid.of_rational(Fraction(int(x.p), int(x.q)))), a)


# --- truth ------------------------------------------------------------------------------------


def point(*terms: float) -> Any:
    """terms[0] + terms[1] terms[2] + terms[3], exactly."""
    m, r, t, *low = (flint.arb(x) for x in terms)
    return sum(low, m + r * t)


def rational(x: Any) -> Any:
    """The rational that an exact ball is."""
    mantissa, exponent = x.man_exp()
    scale = flint.fmpq(2) ** abs(int(exponent))
    return flint.fmpq(mantissa) * scale if exponent > 0 else flint.fmpq(mantissa) / scale


def exact_points(columns: Sequence[Array]) -> list[Any]:
    with flint.ctx.workprec(8000):
        return [point(*row) for row in zip(*(x.reshape(-1).tolist() for x in columns), strict=True)]


def check(name: str, points: list[list[Any]], shape: Any, known: dict[int, Exact]) -> int:
    """How many elements are `known`, as middle and radius; each is there, or AssertionError."""
    rule = RULES[name]
    if name not in TRANSCENDENTAL:
        xp = Fractions()
        arguments = [xp.value(objects([rational(x) for x in column], shape)) for column in points]
        truth = data(rule(xp, *arguments)).reshape(-1)
        for i, exact in known.items():
            middle, radius = map(rational, exact)
            assert truth[i] is not None, (name, exact)
            assert abs(truth[i] - middle) <= radius, (name, exact, truth[i])
        return len(known)
    waiting = list(known)
    for precision in PRECISIONS[2 if name in ROWS else 0 :]:
        with Arb(precision) as arb:
            if name in ROWS:
                inputs = [objects(column, shape) for column in points]
                truth = data(rule(arb, *map(arb.value, inputs))).reshape(-1)[waiting]
            else:
                inputs = [objects([x[i] for i in waiting], (len(waiting),)) for x in points]
                truth = data(rule(arb, *map(arb.value, inputs)))
            off = {i: abs(z - known[i][0]) for i, z in zip(waiting, truth, strict=True)}
            outside = [known[i] for i in waiting if off[i] > known[i][1]]
            assert not outside, (name, outside[:3])
            waiting = [i for i in waiting if not off[i] <= known[i][1]]
        if not waiting:
            return len(known)
    raise AssertionError((name, "undecided", [known[i] for i in waiting[:3]]))


def sums(*parts: Array) -> dict[int, Exact]:
    """Where the last part is finite: the sum of the others, and that part, the radius."""
    columns = [np.broadcast_to(x, parts[0].shape).reshape(-1).tolist() for x in parts]
    rows = enumerate(zip(*columns, strict=True))
    with flint.ctx.workprec(8000):
        known = {i: [flint.arb(x) for x in row] for i, row in rows if np.isfinite(row[-1])}
        return {i: (sum(middle), radius) for i, (*middle, radius) in known.items()}


# --- what is compared -------------------------------------------------------------------------


def numbers(name: str, rng: np.random.Generator, n: int) -> list[Array]:
    """The middles of the arguments."""
    a = doubles(rng, n)
    if name in TRANSCENDENTAL - {"norm"}:  # Arb is slow on larger ones
        a = np.where(np.abs(a) < 2000.0, a, np.sign(a) * rng.choice([700.0, 709.7, 745.2, 27.0], n))
    elif name not in DENSE:
        a = np.where(rng.random(n) < 0.01, np.copysign(LARGEST, a), a)
    else:
        a = np.where(np.abs(np.log2(np.abs(a) + 1e-300)) < 40.0, a, 1.5)
    if name not in BINARY and name != "real power":
        return [a]
    b = doubles(rng, n)
    with np.errstate(all="ignore"):
        near = [b, np.nextafter(a, -a), -a, np.spacing(a) * (rng.integers(-4, 4, n) + 0.5)]
    b = np.choose(rng.choice(4, n, p=[0.6, 0.2, 0.05, 0.15]), near)
    return [a, np.clip(b, -30, 30) if name == "real power" else np.nan_to_num(b)]


def spread(name: str, rng: np.random.Generator, mid: Array) -> Array:
    with np.errstate(over="ignore"):
        radius = radii(rng, mid)
    return np.minimum(radius, 100.0 if name in TRANSCENDENTAL else np.finfo(float).max)


def place(rng: np.random.Generator, n: int) -> Array:
    """Places in a ball: its ends, its middle, anywhere."""
    return np.where(
        rng.random(n) < 0.6, rng.choice([-1.0, 1.0, 0.0], n), rng.uniform(-1, 1, n).round(9)
    )


def balls(name: str, rng: np.random.Generator, shape: Any) -> Iterator[tuple[Array, Array, Any]]:
    for mid in numbers(name, rng, int(np.prod(shape))):
        radius = spread(name, rng, mid)
        yield mid, radius, exact_points([mid, radius, place(rng, mid.size)])


def ball(name: str, rng: np.random.Generator, shape: Any) -> int:
    drawn = list(balls(name, rng, shape))
    value = RULES[name](B, *(B.value(m.reshape(shape), r.reshape(shape)) for m, r, _ in drawn))
    if name not in ROWS:
        special = [m.copy() for m, _, _ in drawn]
        for middle in special:
            middle[:3] = np.inf, -np.inf, np.nan
        assert np.isinf(RULES[name](B, *map(B.array, special)).radius[:3]).all(), name
    return check(name, [p for _, _, p in drawn], shape, sums(value.mid, value.radius))


def double_double(name: str, rng: np.random.Generator, shape: Any) -> int:
    values, points = [], []
    for head in numbers(name, rng, int(np.prod(shape))):
        low, radius = tails(rng, head)
        parts = [x.reshape(shape) for x in (head, low, radius)]
        values.append(DoubleDoubleValue(D, parts[0], B.value(parts[1], parts[2])))
        points.append(exact_points([head, radius, place(rng, head.size), low]))
    value = RULES[name](D, *values)
    assert np.all(value.head + value.tail.mid == value.head), name
    return check(name, points, shape, sums(value.head, value.tail.mid, value.tail.radius))


def fused(name: str, rng: np.random.Generator, shape: Any) -> int:
    """A kernel of exact arguments, or of the hull of two numbers: a choice that nothing decides."""
    exact, middles = bool(rng.random() < 0.5), numbers(name, rng, int(np.prod(shape)))
    ends = []
    for mid in middles:
        radius = np.zeros_like(mid) if exact else spread(name, rng, mid)
        with np.errstate(all="ignore"):
            low, high = mid - radius, mid + radius
            fits = np.isfinite(low - high)
        ends.append([np.where(fits, x, mid).reshape(shape) for x in (low, high)])
    points = []
    for low, high in ends:
        with np.errstate(all="ignore"):
            inside = low + (high - low) * rng.random(shape)
        inside = np.where((inside >= low) & (inside <= high), inside, low)
        points.append(np.choose(rng.integers(0, 3, shape), [low, high, inside]))
    arrays = [low for low, _ in ends] if exact else [x for pair in ends for x in pair]
    formula = _exact(name) if exact else _hulls(name)
    ((mid, radius),) = generated.of(formula, *arrays).balls()
    plain = formula(B, *map(B.array, arrays))
    if name not in HULLS:
        agree(name, arrays, (mid, radius), (plain.mid, plain.radius))
    zeros = [np.zeros(shape)] * 2
    return check(name, [exact_points([x, *zeros]) for x in points], shape, sums(mid, radius))


def agree(name: str, arrays: list[Array], by_numpy: tuple[Array, Array], by_kernel: Any) -> None:
    """Asserts equal mids where both are finite, and equal radii, to 2^-20, where nothing magnifies
    their roundings. They are magnified by wide balls, by roots of numbers that underflow, and by
    divisors beyond 2^1000, whose inverse a kernel takes for 2^-1000."""
    (mid, radius), (a, p) = by_numpy, by_kernel
    known = np.isfinite(radius) & np.isfinite(p)
    np.testing.assert_array_equal(mid[known], a[known], name)
    near = known & (radius <= np.abs(mid) * 2.0**-10) & (np.abs(mid) > 2.0**-300)
    if name not in ROWS:
        near &= np.all([np.abs(x) < 2.0**300 for x in arrays], axis=0)
    p, q = p[near], radius[near]
    assert np.all(np.abs(p - q) <= np.minimum(p, q) * 2.0**-20 + 2.0**-1060), name


def _exact(name: str) -> Rule:
    return lambda xp, *values: RULES[name](xp, *values)


def _hulls(name: str) -> Rule:
    def read(xp: Any, *ends: Any) -> Any:
        one = xp.number(1)
        maybe = one / 3 * 3 < one
        hulls = [
            xp.where(maybe, low, high) for low, high in zip(ends[::2], ends[1::2], strict=True)
        ]
        return RULES[name](xp, *hulls)

    return read


def arb(name: str, rng: np.random.Generator, shape: Any) -> int:
    """Balls of 64 bits: of Arb's own rules, and of the rules written in them."""
    drawn = list(balls(name, rng, shape))
    with Arb(64) as xp:
        columns = [
            [flint.arb(*pair) for pair in zip(m.tolist(), r.tolist(), strict=True)]
            for m, r, _ in drawn
        ]
        enclosed = data(RULES[name](xp, *(xp.value(objects(column, shape)) for column in columns)))
    known = {i: (x.mid(), x.rad()) for i, x in enumerate(enclosed.flat) if x.is_finite()}
    return check(name, [p for _, _, p in drawn], shape, known)


def bound(name: str, rng: np.random.Generator, shape: Any) -> int:
    """Answers of kernels, in every format."""
    shape = tuple(rng.choice([(8, 13), (3, 40), (20, 1)]))
    return sum(attacked(RULES[name], 1 + (name in BINARY), dtype, rng, shape) for dtype in FORMATS)


READINGS = {
    "Ball": ball, "fused": fused, "DoubleDouble": double_double, "Arb": arb, "Bound": bound,
}  # fmt: skip


def counted(reading: str, name: str, elements: int, seed: int) -> int:
    """Check `elements` elements or a few more, and return how many; a tenth where each takes long,
    0 where there is no kernel."""
    rng = np.random.default_rng([seed, *reading.encode(), *name.encode()])
    slow = name in (*DENSE, "newton and schulz") or (name in ROWS and reading == "Arb")
    goal = elements // (10 if slow else 1)
    checked = calls = 0
    while checked < goal:
        shape = SHAPES[calls % len(SHAPES)] if name in ROWS else (min(goal, CALL),)
        try:
            checked += READINGS[reading](name, rng, shape)
        except Untraceable:
            return 0
        calls += 1
        assert checked or calls < 20, (reading, name, "nothing is known")
    return checked


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("readings", nargs="*", default=[], help=", ".join(READINGS))
    parser.add_argument("--elements", type=int, default=80_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    record: dict[str, Any] = {"elements": arguments.elements, "seed": arguments.seed, "counts": {}}
    previous = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else record
    if previous | {"counts": {}} == record:
        record = previous  # resumes
    for reading in arguments.readings or READINGS:
        counts = record["counts"].setdefault(reading, {})
        for name in RULES:
            if name in counts or (reading == "Bound" and name == "real power"):
                continue
            start = time.perf_counter()
            counts[name] = counted(reading, name, arguments.elements, arguments.seed)
            seconds = time.perf_counter() - start
            print(f"{reading:13}{name:22}{counts[name]:10,}{seconds:8.1f} s", flush=True)
            write_whole(KEPT, json.dumps(record, indent=1) + "\n")
    total = sum(sum(counts.values()) for counts in record["counts"].values())
    print(f"{total:,} in all, none outside")


if __name__ == "__main__":
    main()
