"""Passes over rows and columns, bit by bit against loops in Python, at every length of the rest."""

from fractions import Fraction

import numpy as np
import pytest

from refkernels.arithmetic.eft import two_sum
from refkernels.kernels.rows import lanes
from refkernels.kernels.rows.passes import LANES, STRIP

SIZES = [1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 1000]


def fma(a, b, c):
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def compensated(terms):
    """(hi, lo) of the terms in LANES lanes that are folded in halves."""
    s, c = [0.0] * LANES, [0.0] * LANES
    for j, term in enumerate(terms):
        s[j % LANES], e = two_sum.py_func(s[j % LANES], float(term))
        c[j % LANES] += e
    while len(s) > 1:
        half = len(s) // 2
        for k in range(half):
            s[k], e = two_sum.py_func(s[k], s[half + k])
            c[k] = (c[k] + c[half + k]) + e
        s, c = s[:half], c[:half]
    return two_sum.py_func(s[0], c[0])


def row_of(rng, n):
    return (rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n)).astype(np.float32)


@pytest.mark.parametrize("n", SIZES)
def test_statistics_have_the_bits_of_a_plain_loop(n):
    rng = np.random.default_rng(n)
    x, d = row_of(rng, n), np.full(n + 1, 7.0)
    hi, lo = compensated(x)
    c = hi / n
    delta = (fma(-c, n, hi) + lo) / n
    assert lanes.row_mean(x) == (c, delta)
    squares, top = lanes.deviation_squares(x, c, delta, d[:n])
    d0 = x.astype(np.float64) - c
    np.testing.assert_array_equal(d, [*(d0 - delta), 7.0])
    assert (squares, top) == (compensated(d0 * d0)[0], np.abs(d0).max())


@pytest.mark.parametrize("n", SIZES)
def test_outputs_have_the_bits_of_a_plain_loop(n):
    rng = np.random.default_rng(n)
    dy, d, weight, bias = row_of(rng, n), *rng.standard_normal((3, n))
    hi = np.full(n + 1, 7.0)
    top = lanes.write_normalised(d, weight, bias, 1.7, hi[:n])
    y = [fma(a * 1.7, g, b) for a, g, b in zip(d, weight, bias, strict=True)]
    np.testing.assert_array_equal(hi, [*y, 7.0])
    assert top == np.abs(y).max()
    a, beta, r = 0.3, -1.2, 0.9
    top = lanes.write_gradient(d, dy, weight, (a, beta, r), hi[:n])
    t = dy.astype(np.float64) * weight
    dx = [fma(-each, beta, value - a) * r for each, value in zip(d, t, strict=True)]
    np.testing.assert_array_equal(hi, [*dx, 7.0])
    assert top == np.abs(dx).max()


@pytest.mark.parametrize("n", SIZES)
def test_projections_have_the_bits_of_a_plain_loop(n):
    rng = np.random.default_rng(n)
    dy, d, weight = row_of(rng, n), *rng.standard_normal((2, n))
    t = dy.astype(np.float64) * weight
    one, along, squares, top, varies = lanes.projection_sums(d, dy, weight)
    assert (one, along) == (compensated(t)[0], compensated(t * d)[0])
    assert (top, varies) == (np.abs(t).max(), n > 1)
    exact = sum(Fraction(value) ** 2 for value in t)
    assert abs(Fraction(squares) - exact) <= exact * (n + 4) * Fraction(lanes.U)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("value", [0.0, -0.0, 3.5, -1e30])
def test_only_a_constant_row_does_not_vary(n, value):
    dy, ones = np.full(n, value, np.float32), np.ones(n)
    assert not lanes.projection_sums(ones, dy, ones)[4]
    for at in {1, n // 2, n - 1} & set(range(1, n)):
        changed = dy.copy()
        changed[at] = np.nextafter(np.float32(value), np.float32(1.0))
        assert lanes.projection_sums(ones, changed, ones)[4]


@pytest.mark.parametrize("n", [1, 8, STRIP - 1, STRIP, STRIP + 1, 3 * STRIP + 5])
def test_column_sums_have_the_bits_of_a_plain_loop(n):
    rng = np.random.default_rng(n)
    x, dy = np.stack([row_of(rng, n) for _ in range(14)]).reshape(2, 7, n)
    numbers = rng.standard_normal((5, lanes.ROW_NUMBERS)) ** 2
    columns = np.zeros(lanes.COLUMN_TALLIES * STRIP * -(-n // STRIP))
    expected = np.zeros((n, lanes.COLUMN_TALLIES))
    for first, last in [(0, 3), (3, 4), (4, 4), (4, 7)]:
        lanes.add_parameter_gradients(x, dy, first, last, numbers, columns)
        for i in range(first, last):
            c, delta, r, a, b = numbers[i - first]
            for j, sums in enumerate(expected):
                y = np.float64(dy[i, j])
                p = (((np.float64(x[i, j]) - c) - delta) * r) * y
                for at, term in ((0, p), (2, y)):
                    sums[at], e = two_sum.py_func(sums[at], term)
                    sums[at + 1] += e
                sums[4] += abs(y)
                sums[5] = fma(abs(y), a, fma(abs(p), b, sums[5]))
    for j in range(n):
        at = lanes.column_place(j)
        np.testing.assert_array_equal(columns[at : at + 5 * STRIP + 1 : STRIP], expected[j])
    assert np.count_nonzero(columns[: lanes.column_place(n - 1) + 1])


@pytest.mark.parametrize("n", SIZES)
def test_row_kappa_covers_terms_that_cancel(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        terms = rng.standard_normal(n) * 2.0 ** rng.integers(-60, 60, n)
        terms[n // 2 :] = -terms[: n - n // 2] * (1.0 + 2.0**-40)
        hi, lo = compensated(terms)
        exact = sum(map(Fraction, terms))
        size = sum(abs(Fraction(term)) for term in terms)
        assert abs(Fraction(hi) + Fraction(lo) - exact) <= Fraction(lanes.row_kappa(n)) * size
