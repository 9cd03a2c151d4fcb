"""Every rule of Ball holds the exact value, against Arb at a point of each input's ball.

REFKERNELS_HUNT multiplies the number of enclosures.
"""

import functools
import os
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from refkernels.contexts import Arb, Ball
from refkernels.contexts.context import FUNCTIONS as NAMES

HUNT = int(os.environ.get("REFKERNELS_HUNT", "1"))
N = 400 * HUNT
B = Ball()
Doubles = Any


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


def points(rng: np.random.Generator, mid: Doubles, radius: Doubles) -> list[Fraction]:
    """A number of each ball: an end or anything between."""
    where = rng.choice([-1.0, 1.0, 0.0, 0.5, -0.25], mid.size)
    return [
        Fraction(m) + Fraction(r) * Fraction(t)
        for m, r, t in zip(mid.tolist(), radius.tolist(), where.tolist(), strict=True)
    ]


def arb_of(exact: list[Fraction], shape: tuple[int, ...], xp: Arb) -> Any:
    from refkernels.contexts.objects import objects

    return xp.value(objects([xp.element(x) for x in exact], shape))


def outside(value: Any, truth: Any) -> list[int]:
    """The places where a ball certainly does not hold Arb's; in Arb, whose exponents are free."""
    places = []
    balls = zip(value.mid.flat, value.radius.flat, truth.data.flat, strict=True)
    for i, (m, r, z) in enumerate(balls):
        if np.isfinite(r) and z.is_finite() and abs(z - flint.arb(float(m))) > flint.arb(float(r)):
            places.append(i)
    return places


def known(value: Any) -> int:
    return int(np.isfinite(value.radius).sum())


UNARY = {
    "negative": lambda xp, a: -a,
    "absolute": lambda xp, a: abs(a),
    "square": lambda xp, a: xp.square(a),
    "cube": lambda xp, a: xp.power(a, 3),
    "inverse square": lambda xp, a: xp.power(a, -2),
    "clip": lambda xp, a: xp.clip(a, -1, 3),
    **{name: functools.partial(lambda name, xp, a: xp.function(name, a), name) for name in NAMES},
}
BINARY = {
    "add": lambda xp, a, b: a + b,
    "subtract": lambda xp, a, b: a - b,
    "multiply": lambda xp, a, b: a * b,
    "divide": lambda xp, a, b: a / b,
    "maximum": lambda xp, a, b: xp.maximum(a, b),
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
    "product with itself": lambda xp, a: xp.matmul(a, xp.transpose(a, (1, 0))),
    "scatter": lambda xp, a: xp.scatter_add(a, np.arange(a.shape[0]) % 3, 4),
    "shape": lambda xp, a: xp.concatenate([xp.take(a, np.array([0, 0]), 1), a], 1),
}


@pytest.mark.parametrize("name", UNARY)
def test_rules_of_one_argument_hold_the_exact_value(name: str) -> None:
    rng = np.random.default_rng(1)
    mid = doubles(rng, N)
    radius = radii(rng, mid)
    if name in NAMES:  # beyond, Arb takes its time
        mid = np.where(np.abs(mid) < 2000.0, mid, np.sign(mid) * 700.0)
        radius = np.minimum(radius, 100.0)
    exact = points(rng, mid, radius)
    value = UNARY[name](B, B.value(mid, radius))
    with Arb(1200) as xp:
        truth = UNARY[name](xp, arb_of(exact, mid.shape, xp))
        assert outside(value, truth) == []
    assert known(value) > N // 8


@pytest.mark.parametrize("name", BINARY)
def test_rules_of_two_arguments_hold_the_exact_value(name: str) -> None:
    rng = np.random.default_rng(2)
    a, b = doubles(rng, N), doubles(rng, N)
    b = np.where(rng.random(N) < 0.2, np.nextafter(a, -a), b)  # next to one another
    p, q = radii(rng, a), radii(rng, b)
    exact = points(rng, a, p), points(rng, b, q)
    value = BINARY[name](B, B.value(a, p), B.value(b, q))
    with Arb(4000) as xp:
        truth = BINARY[name](xp, *(arb_of(one, a.shape, xp) for one in exact))
        assert outside(value, truth) == []
    assert known(value) > N // 8


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("shape", [(5, 1), (7, 3), (4, 33)], ids=str)
def test_rules_of_rows_hold_the_exact_value(name: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    for _ in range(2 * HUNT):
        mid = doubles(rng, shape[0] * shape[1])
        radius = radii(rng, mid)
        exact = points(rng, mid, radius)
        value = ROWS[name](B, B.value(mid.reshape(shape), radius.reshape(shape)))
        with Arb(4000) as xp:
            truth = ROWS[name](xp, arb_of(exact, shape, xp))
            assert outside(value, truth) == []
        assert value.shape == truth.shape


def test_a_comparison_is_decided_only_where_every_point_agrees() -> None:
    rng = np.random.default_rng(4)
    a, b = doubles(rng, N), doubles(rng, N)
    b = np.where(rng.random(N) < 0.3, a, b)
    p, q = radii(rng, a), radii(rng, b)
    mask = B.value(a, p) < B.value(b, q)
    exact = [x < y for x, y in zip(points(rng, a, p), points(rng, b, q), strict=True)]
    assert not np.any(mask.yes & ~np.array(exact))
    assert not np.any(mask.no & np.array(exact))
    assert 0 < mask.decided.sum() < N


def test_what_is_exact_has_radius_zero() -> None:
    a = B.array(np.array([1.0, -2.0, 0.0, 3.0]))
    for exact in (-a, abs(a), B.max(a), B.maximum(a, -a), B.reshape(a, (2, 2)), a * B.number(0)):
        assert not np.any(exact.radius)
    assert not np.any(B.number(0.1).radius)
    assert B.number(Fraction(1, 3)).radius > 0.0


def test_a_ball_around_zero_has_no_inverse_and_a_negative_one_no_root() -> None:
    around = B.value(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    assert np.isinf((B.number(1) / around).radius).all()
    assert np.isinf(B.rsqrt(around).radius).all()
    assert np.isinf(B.log(around).radius).all()
    assert np.isinf(B.sqrt(B.value(-1.0, 0.5)).radius)
    assert np.isinf(B.array(np.array([np.inf, np.nan])).radius).all()
