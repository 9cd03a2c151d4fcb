"""What Ball decides, and what it knows nothing of. (Its rules: test_enclosures.)"""

from fractions import Fraction

import numpy as np
import pytest
from context_rules import BINARY, UNARY, arb_of, doubles, outside, points, radii
from hunting import HUNT

from refkernels.contexts import Arb, Ball

N = 400 * HUNT
B = Ball()


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


@pytest.mark.parametrize(("square", "spread"), [(0, -1074), (4, -1074), (1000, -60), (-20, -1068)])
def test_an_exact_root_is_as_uncertain_as_its_argument(square: int, spread: int) -> None:
    """However little that is."""
    a, p = np.array([2.0**square]), np.array([2.0**spread])
    value, checked = B.sqrt(B.value(a, p)), 0
    for side in (-1, 1):
        with Arb(4000) as xp:
            truth = xp.sqrt(arb_of([Fraction(a[0]) + side * Fraction(p[0])], (1,), xp))
            assert outside(value, truth) == []
            checked += 1
    assert checked == 2
    assert value.radius[0] <= 2.0 ** (spread - square // 2) + 2.0**-1060


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_nothing_is_known_of_a_value_that_may_be_nan(name: str) -> None:
    """Nor of a function whose values are all near 0, as tanh's are."""
    special = B.array(np.array([np.inf, -np.inf, np.nan]))
    undefined = B.value(np.ones(3), 0.0) / B.value(np.ones(3), 1.0)
    for unknown in (special, undefined):
        value = UNARY[name](B, unknown) if name in UNARY else BINARY[name](B, unknown, B.number(1))
        assert np.isinf(value.radius).all()


def test_what_underflows_in_a_radius_is_not_lost_where_it_is_divided() -> None:
    tiny = np.array([-4.66e-321]), np.array([0.0])
    b, q = np.array([-1.1532760217660358e-163]), np.array([2.739615951571814e-167])
    for side in (-1, 1):
        end = [Fraction(b[0]) + side * Fraction(q[0])]
        with Arb(2000) as xp:
            truth = xp.array(tiny[0]) / arb_of(end, (1,), xp)
            assert outside(B.value(*tiny) / B.value(b, q), truth) == []
    a, p = np.array([2.0**-332]), np.array([2.0**-1074])
    with Arb(2000) as xp:
        truth = xp.rsqrt(arb_of([Fraction(a[0]) - Fraction(p[0])], (1,), xp))
        assert outside(B.rsqrt(B.value(a, p)), truth) == []


def test_a_product_of_zeros_is_zero_and_of_what_is_unknown_unknown() -> None:
    xp = Ball()
    a = xp.value(np.array([[0.0, 0.0], [0.0, 1.0]]), 0.0)
    b = xp.value(np.array([[3.0, 1.0], [0.0, 2.0]]), np.array([[0.5, 0.0], [0.0, 0.0]]))
    product = xp.matmul(a, b)
    np.testing.assert_array_equal(product.radius[0], 0.0)
    np.testing.assert_array_equal(product.radius == 0.0, [[True, True], [True, False]])
    wide = xp.value(np.ones((2, 1)), np.array([[np.inf], [0.0]]))
    assert np.isinf(xp.matmul(a, wide).radius[0, 0])
