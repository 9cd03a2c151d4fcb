"""Adversarial numbers, points of balls, and every primitive as a rule of a name."""

import functools
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from refkernels.contexts import Arb
from refkernels.contexts.context import FUNCTIONS as NAMES
from refkernels.contexts.objects import objects

Doubles = Any


TIES = ("even", "away", "half_up", "zero", "down", "up")
NARROW = ("float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn", "bfloat16", "int8")


def doubles(rng: np.random.Generator, n: int) -> Doubles:
    """Of every size that a formula meets, and the places where rules go wrong."""
    kinds = [
        rng.normal(0, 1, n),
        rng.normal(0, 1, n) * 2.0 ** rng.integers(-30, 31, n),
        rng.normal(0, 1, n) * 2.0 ** rng.integers(-1074, 1020, n),
        rng.integers(-4, 5, n).astype(float),
        np.ldexp(rng.integers(-9, 10, n).astype(float), rng.integers(-1074, -1040, n)),
        np.nextafter(rng.integers(-4, 5, n).astype(float), rng.choice([-np.inf, np.inf], n)),
    ]
    return np.choose(rng.integers(0, len(kinds), n), kinds)


def radii(rng: np.random.Generator, mid: Doubles) -> Doubles:
    n = mid.size
    kinds = [
        np.zeros(n),
        np.abs(mid) * 2.0 ** rng.integers(-60, 2, n),
        2.0 ** rng.integers(-1074, 3, n).astype(float),
    ]
    return np.choose(rng.integers(0, len(kinds), n), kinds)


def tails(rng: np.random.Generator, head: Doubles) -> tuple[Doubles, Doubles]:
    """A double-double's rest and its radius, some exact, some wide."""
    n = head.size
    ulp = np.spacing(np.abs(head))
    low = np.choose(
        rng.integers(0, 3, n), [np.zeros(n), ulp * rng.uniform(-0.499, 0.499, n), ulp / 4]
    )
    low = np.where(head + low == head, low, 0.0)
    radii = [np.zeros(n), ulp * 2.0 ** rng.integers(-60, 0, n), np.abs(head) / 8]
    radii.append(np.full(n, 2.0**-1074))
    radius = np.choose(rng.integers(0, len(radii), n), radii)
    return low, radius


def points(rng: np.random.Generator, mid: Doubles, radius: Doubles) -> list[Fraction]:
    """A number of each ball: an end or anything between."""
    where = rng.choice([-1.0, 1.0, 0.0, 0.5, -0.25], mid.size)
    return [
        Fraction(m) + Fraction(r) * Fraction(t)
        for m, r, t in zip(mid.tolist(), radius.tolist(), where.tolist(), strict=True)
    ]


def arb_of(exact: list[Fraction], shape: tuple[int, ...], xp: Arb) -> Any:
    return xp.value(objects([xp.element(x) for x in exact], shape))


def outside(value: Any, truth: Any) -> list[int]:
    """The places where a ball certainly does not hold Arb's; in Arb, whose exponents are free."""
    places = []
    balls = zip(value.mid.flat, value.radius.flat, truth.data.flat, strict=True)
    for i, (m, r, z) in enumerate(balls):
        if np.isfinite(r) and z.is_finite() and abs(z - flint.arb(float(m))) > flint.arb(float(r)):
            places.append(i)
    return places


def outside_double_double(value: Any, truth: Any) -> list[int]:
    places = []
    columns = (value.head, value.tail.mid, value.tail.radius, truth.data)
    for i, (h, m, r, z) in enumerate(zip(*(x.flat for x in columns), strict=True)):
        if np.isfinite(r) and z.is_finite():
            off = abs(z - flint.arb(float(h)) - flint.arb(float(m)))
            if off > flint.arb(float(r)):
                places.append(i)
    return places


UNARY = {
    "negative": lambda xp, a: -a,
    "absolute": lambda xp, a: abs(a),
    "square": lambda xp, a: xp.square(a),
    "cube": lambda xp, a: xp.power(a, 3),
    "inverse square": lambda xp, a: xp.power(a, -2),
    "floor": lambda xp, a: xp.floor(a),
    **{f"round {t}": functools.partial(lambda t, xp, a: xp.round(a, ties=t), t) for t in TIES},
    **{to: functools.partial(lambda to, xp, a: xp.round(a, to), to) for to in NARROW},
    "clip": lambda xp, a: xp.clip(a, -1, 3),
    **{name: functools.partial(lambda name, xp, a: xp.function(name, a), name) for name in NAMES},
}
BINARY = {
    "add": lambda xp, a, b: a + b,
    "subtract": lambda xp, a, b: a - b,
    "multiply": lambda xp, a, b: a * b,
    "divide": lambda xp, a, b: a / b,
    "quotient": lambda xp, a, b: xp.quotient(a, b),
    "maximum": lambda xp, a, b: xp.maximum(a, b),
    "logaddexp": lambda xp, a, b: xp.logaddexp(a, b),
    "minimum": lambda xp, a, b: xp.minimum(a, b),
    "where": lambda xp, a, b: xp.where(a < b, a * b, a + b),
}
ROWS = {
    "sum": lambda xp, a: xp.sum(a),
    "sum over axis 0": lambda xp, a: xp.sum(a, 0),
    "mean": lambda xp, a: xp.mean(a),
    "max": lambda xp, a: xp.max(a),
    "cumsum": lambda xp, a: xp.cumsum(a),
    "norm": lambda xp, a: xp.norm(a),
    "prod": lambda xp, a: xp.prod(a),
    "others": lambda xp, a: xp.others(a),
    "streamed mean": lambda xp, a: xp.welford(a)[0],
    "streamed squares": lambda xp, a: xp.welford(a)[1],
    "product with itself": lambda xp, a: xp.matmul(a, xp.transpose(a, (1, 0))),
    "newton and schulz": lambda xp, a: xp.newton_schulz(
        a / (1 + xp.sum(xp.sum(xp.square(a)), 0)), *(xp.number(k) for k in (3.0, -4.0, 2.0)), 3
    ),
    "scatter": lambda xp, a: xp.scatter_add(a, np.arange(a.shape[0]) % 3, 4),
    "shape": lambda xp, a: xp.concatenate([xp.take(a, np.array([0, 0]), 1), a], 1),
}
RULES = {
    **UNARY,
    **{name: lambda xp, a, rule=rule: rule(xp, a, xp.square(a)) for name, rule in BINARY.items()},
    **ROWS,
}
