"""Exact sums of floats as integers."""

from fractions import Fraction

import numpy as np

from refkernels.arithmetic.exact_sums import exact_sum
from refkernels.contexts.arb import Arb
from refkernels.contexts.double_double import LONG, DoubleDouble
from refkernels.contexts.objects import Waiting, data
from refkernels.contexts.rational import Rational, values


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
