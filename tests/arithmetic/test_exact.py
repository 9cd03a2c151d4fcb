"""Integers and back, exact sums: nothing lost, and no ball that its Enclosure does not contain."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.arithmetic.enclosure import SCALE_LIMIT, Enclosure
from refkernels.arithmetic.exact import (
    from_fractions,
    from_integer_balls,
    intersection,
    to_integers,
)
from refkernels.arithmetic.exact_sums import exact_sum
from refkernels.contexts.arb import Arb
from refkernels.contexts.double_double import LONG, DoubleDouble
from refkernels.contexts.objects import Waiting, data
from refkernels.contexts.rational import Rational, values

floats = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(floats, max_size=6))
def test_to_integers_is_exact(values: list[float]) -> None:
    whole, exponent = to_integers(np.array(values, dtype=np.float64))
    assert [m * Fraction(2) ** exponent for m in whole] == [Fraction(v) for v in values]


def test_to_integers_spans_the_whole_range() -> None:
    values = np.array([[5e-324, -1.7976931348623157e308], [0.0, -0.0]])
    whole, exponent = to_integers(values)
    assert [m * Fraction(2) ** exponent for m in whole] == [Fraction(v) for v in values.ravel()]


def inside(mid: int, radius: int) -> list[Fraction]:
    """The middle of a ball, and points within 2^-3000 of its ends, which are not in it."""
    reach = radius * (1 - Fraction(1, 2**3000))
    return [mid - reach, Fraction(mid), mid + reach]


integers = st.one_of(
    st.integers(-(2**400), 2**400),
    st.integers(-(2**53), 2**53),
    st.sampled_from([2**k + d for k in (53, 54, 106, 107, 108, 300, 301, 400) for d in (-1, 0, 1)]),
    st.builds(lambda a, b: (a << 53) + b, st.integers(2**52, 2**53), st.integers(0, 2**53)),
)


@given(
    integers,
    st.one_of(st.just(0), st.integers(0, 2**60), st.integers(0, 2**420)),
    st.one_of(st.integers(-1300, 1000), st.integers(-40, 40)),
)
def test_a_ball_is_contained_and_hi_is_rounded(mid: int, radius: int, exponent: int) -> None:
    enclosure = from_integer_balls([mid], [radius], [exponent], (1,))
    power = Fraction(2) ** exponent
    for point in inside(mid, radius):
        assert enclosure.contains(0, point * power)
    hi, lo = float(enclosure.hi[0]), float(enclosure.lo[0])
    assert math.isfinite(hi)
    assert hi + lo == hi
    if mid:
        slack = Fraction(1, 2**104) * abs(mid * power)
        unit = Fraction(2) ** (int(enclosure.scale[0]) - 1074)
        width = Fraction(float(enclosure.radius[0])) * Fraction(2) ** int(enclosure.scale[0])
        assert width <= radius * power * (1 + Fraction(1, 2**50)) + slack + 2 * unit


@given(st.fractions(), st.integers(-1200, 1200))
def test_a_fraction_is_contained_tightly(value: Fraction, power: int) -> None:
    exact = value * Fraction(2) ** power
    enclosure = from_fractions([exact], (1,))
    assert enclosure.contains(0, exact)
    assert bool(enclosure.exact_zero[0]) == (exact == 0)
    width = Fraction(float(enclosure.radius[0])) * Fraction(2) ** int(enclosure.scale[0])
    assert width <= abs(exact) / 2**104
    if int(enclosure.scale[0]) == 0 and exact:
        assert float(enclosure.hi[0]) == float(exact)


@given(floats)
def test_a_float_comes_back_exactly(value: float) -> None:
    enclosure = from_fractions([Fraction(value)], ())
    assert float(enclosure.radius) == 0.0
    assert enclosure.contains((), Fraction(value))


def test_shapes_and_empties_are_kept() -> None:
    assert from_fractions([], (0, 3)).shape == (0, 3)
    assert from_fractions([Fraction(k) for k in range(6)], (2, 3)).shape == (2, 3)
    assert to_integers(np.empty(0)) == ([], 0)


@pytest.mark.parametrize(
    ("mid", "radius", "exponent"),
    [
        (1, 2**400, -1300),  # hi itself is far below the smallest float64
        ((1 << 2200) + 1, 0, -2100),  # lo is 2^-2200 of hi: below what any scale holds
        ((1 << 2200) - 1, 0, 0),
        ((1 << 2200) + 3, 1, -3000),
        ((1 << 5000) - (1 << 1100), 0, -5000),
        (3, 1, -1075),
        ((1 << 170) + 1, 1, -1060),
    ],
)
def test_what_underflows_is_in_the_radius(mid: int, radius: int, exponent: int) -> None:
    enclosure = from_integer_balls([mid], [radius], [exponent], (1,))
    for point in inside(mid, radius):
        assert enclosure.contains(0, point * Fraction(2) ** exponent)


def test_a_lo_that_underflows_still_breaks_the_tie() -> None:
    middle = (2**24 + 1) << 2300  # halfway between two float32
    enclosure = from_integer_balls([middle + 1, middle - 1], [0, 0], [-2324, -2324], (2,))
    values, certified = enclosure.round("float32")
    assert values.tolist() == [1.0 + 2.0**-23, 1.0]
    assert certified.all()


@given(st.integers(2**52, 2**53 - 1), st.integers(1, 3000), st.integers(0, 99), st.integers(0, 1))
def test_a_ball_beside_a_midpoint_of_any_format_decides(
    whole: int, depth: int, share: int, above: int
) -> None:
    """(whole + 1/2) ± 2^-depth, and whole, with a ball that ends before the boundary."""
    for boundary, format in ((2 * whole + 1, "float64"), ((whole | 1) << 1, "tf32")):
        shift = 53 - 11 - 1 if format == "tf32" else 0
        middle = (boundary >> shift | 1) << shift << (depth + 10)
        offset = 1000 if above else -1000
        enclosure = from_integer_balls([middle + offset], [10 * share], [-depth - 10], (1,))
        assert enclosure.round(format)[1][0]
        right = from_fractions([Fraction(middle + offset, 2 ** (depth + 10))], (1,))
        assert enclosure.round(format)[0][0] == right.round(format)[0][0]


def element(ball: tuple[int, int, int]) -> Enclosure:
    return from_integer_balls(*([part] for part in ball), (1,))


@given(
    st.tuples(integers, st.integers(1, 2**420), st.integers(-40, 40)),
    st.tuples(st.integers(-(2**60), 2**60), st.integers(0, 2**61), st.integers(-200, 300)),
)
def test_an_intersection_holds_what_both_hold_and_no_more(
    first: tuple[int, int, int], move: tuple[int, int, int]
) -> None:
    left = element(first)
    mid, radius, exponent = first
    moved = (mid << 300) + (move[0] << max(move[2], 0)), radius << (300 + move[2]), exponent - 300
    right = element((moved[0], moved[1] or 1, moved[2]))
    (low, high), (low2, high2) = left.lower_upper(0), right.lower_upper(0)
    low, high = max(low, low2), min(high, high2)
    if low >= high:
        with pytest.raises(ArithmeticError, match="contradict"):
            intersection(left, right)
        return
    common = intersection(left, right)
    ends = common.lower_upper(0)
    for point in (low + (high - low) / 2**3000, (low + high) / 2, high - (high - low) / 2**3000):
        assert common.contains(0, point)
    slack = (high - low) / 2**45 + max(abs(low), abs(high)) / 2**100
    assert ends[1] - ends[0] <= (high - low) + slack


def test_an_intersection_keeps_the_side() -> None:
    """(x, x + 2^-900) and x ± 2^-3000, exactly or not, leave a number above x."""
    beside = Enclosure([1.5, 0.5], [2.0**-900, 0.0], [2.0**-900, 0.5])
    around = from_integer_balls([3 << 2999, 0], [1, 1], [-3000, -3000], (2,))
    for common in (intersection(beside, around), intersection(around, beside)):
        assert common.contains(0, Fraction(3, 2) + Fraction(1, 2**3001))
        assert not common.contains(0, Fraction(3, 2))
        assert not common.contains(1, Fraction(0))
        for low, high in (common.lower_upper(0), common.lower_upper(1)):
            assert 0 < high - low <= Fraction(1, 2**1073)


@pytest.mark.parametrize("sign", [1, -1])
def test_what_no_scale_holds_is_wide_or_beside_zero(sign: int) -> None:
    far = SCALE_LIMIT * 4
    enclosure = from_integer_balls(
        [sign * 5, 3, sign * 5, 3], [1, 4, 1, 4], [far, far, -far, -far], (4,)
    )
    assert (enclosure.hi[0], enclosure.radius[0]) == (sign * np.inf, np.inf)
    assert (enclosure.hi[1], enclosure.radius[1]) == (0.0, np.inf)
    assert enclosure.round("float64")[1].tolist() == [True, False, True, False]
    assert np.sign(enclosure.hi[2]) == sign
    assert (enclosure.scale[2:] == -SCALE_LIMIT).all()
    known = Enclosure([7.0], 0.0, 0.5)
    assert intersection(known, enclosure[1:2]).hi[0] == 7.0


def hard(seed: int, n: int) -> np.ndarray:
    """Of every exponent, subnormal numbers and signed zeros among them."""
    rng = np.random.default_rng(seed)
    x = np.ldexp(rng.uniform(-1, 1, n), rng.integers(-1074, 1024, n))
    x[:4] = [0.0, -0.0, np.finfo(float).max, -np.finfo(float).tiny / 2]
    return x


def test_a_sum_of_numbers_of_every_exponent_is_exact() -> None:
    for seed, n in enumerate((4, 5, 1000)):
        x = hard(seed, n)
        m, e = exact_sum(x)
        assert Fraction(m) * Fraction(2) ** e == sum(map(Fraction, x.tolist()))


def test_narrow_floats_and_nothing_are_added_too() -> None:
    x = np.arange(7, dtype=np.float32) - np.float32(0.1)
    m, e = exact_sum(x)
    assert Fraction(m) * Fraction(2) ** e == sum(map(Fraction, x.tolist()))
    assert exact_sum(np.empty(0))[0] == 0


def test_long_rows_are_added_exactly_by_the_contexts_without_objects() -> None:
    x = np.stack([hard(seed, LONG + 1) * 2.0**-30 for seed in (1, 2)])
    x[1, 1::2] = -x[1, :-1:2]  # 0 but for the last
    truth = [sum(map(Fraction, row.tolist())) for row in x]
    rational = Rational()
    numbers = rational.array(x)
    assert isinstance(numbers, Waiting)
    assert values(rational.sum(numbers)) == truth
    assert numbers.elements is None
    enclosure = DoubleDouble().sum(DoubleDouble().array(x)).enclosure()
    for z, hi, lo, radius in zip(truth, enclosure.hi, enclosure.lo, enclosure.radius, strict=True):
        assert abs(z - Fraction(float(hi[0])) - Fraction(float(lo[0]))) <= Fraction(
            float(radius[0])
        )
        assert radius[0] <= 2.0**-100 * abs(hi[0])
    with Arb(4000) as xp:
        total = data(xp.sum(xp.array(x)))
        assert [total[k, 0].contains(data(xp.number(z))[()]) for k, z in enumerate(truth)] == [
            True
        ] * 2
