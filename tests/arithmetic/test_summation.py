"""Each sum keeps to the bound in its docstring, against exact rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hunting import HUNT
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from refkernels.arithmetic import formats, summation

SUMS = ("sequential", "pairwise", "kahan", "neumaier")
DTYPES = ("float32", "float64")


def exact(x):
    return [Fraction(float(value)) for value in x]


def gamma(n, u):
    return n * u / (1 - n * u)


def bound(name, x, u):
    """The docstrings' bounds, as exact rationals."""
    n, s, size = len(x), abs(sum(exact(x))), sum(abs(v) for v in exact(x))
    if name == "sequential":
        return gamma(max(n - 1, 0), u) * size
    if name == "pairwise":
        return gamma(19 + max(math.ceil(math.log2(max(n, 64) / 64)), 0), u) * size
    if name == "kahan":
        return (2 * u + 8 * n * u * u) * size
    return u * s + gamma(max(n - 1, 0), u) ** 2 * size


def arrays(dtype):
    width = 32 if dtype == "float32" else 64
    power = 100 if dtype == "float32" else 900
    numbers = st.builds(
        lambda m, e: math.ldexp(m, e),
        st.floats(-1, 1, width=width, allow_subnormal=False),
        st.integers(-power // 4, power),
    )
    few = hnp.arrays(dtype, st.integers(0, 12), elements=numbers.map(np.dtype(dtype).type))

    def many(seed):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(0, 300))
        return np.ldexp(rng.uniform(-1, 1, n), rng.integers(-power // 4, power, n)).astype(dtype)

    return few | st.integers(0, 2**32 - 1).map(many)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SUMS)
def test_sums_keep_to_their_bounds(name, dtype):
    u = Fraction(formats.get(dtype).u)

    @settings(max_examples=20 * HUNT)
    @given(arrays(dtype))
    def hunt(x):
        got = getattr(summation, name)(x)
        assert abs(Fraction(float(got)) - sum(exact(x))) <= bound(name, x, u)

    hunt()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["dot", "dot2"])
def test_dot_products_keep_to_their_bounds(name, dtype):
    u = Fraction(formats.get(dtype).u)
    rng = np.random.default_rng(5)
    for n in (0, 1, 2, 3, 17, 200):
        for _ in range(20):
            power = 25 if dtype == "float32" else 200
            x, y = (np.ldexp(rng.standard_normal(n), rng.integers(-power, power, n)) for _ in "xy")
            x, y = x.astype(dtype), y.astype(dtype)
            products = [a * b for a, b in zip(exact(x), exact(y), strict=True)]
            size = sum(abs(p) for p in products)
            error = abs(Fraction(float(getattr(summation, name)(x, y))) - sum(products))
            if name == "dot2":
                assert error <= u * abs(sum(products)) + gamma(n, u) ** 2 * size
            else:
                assert error <= gamma(n, u) * size


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 5, 7, 8, 9, 127, 128, 129, 1000, 4099])
def test_pairwise_gives_the_bits_of_numpy(n, dtype):
    x = np.random.default_rng(n).standard_normal(n).astype(dtype)
    assert summation.pairwise(x) == np.add.reduce(x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sequential_gives_the_bits_of_a_loop(dtype):
    x = np.random.default_rng(3).standard_normal(1000).astype(dtype)
    total = np.dtype(dtype).type(0)
    for value in x:
        total = total + value
    assert summation.sequential(x) == total


@pytest.mark.parametrize("dtype", DTYPES)
def test_neumaier_sees_what_kahan_loses(dtype):
    big = 2.0 ** (formats.get(dtype).p + 6)
    x = np.array([1.0, big, 1.0, -big], dtype)
    assert summation.neumaier(x) == 2.0
    assert summation.kahan(x) == 0.0
    assert summation.sequential(x) == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_dot2_is_exact_to_the_last_bit_where_the_plain_dot_has_none(dtype):
    p = formats.get(dtype).p
    x = np.array([1 + 2.0 ** (1 - p), -1.0], dtype)
    y = np.array([1 - 2.0 ** (1 - p), 1.0], dtype)
    assert summation.dot2(x, y) == -(2.0 ** (2 - 2 * p))
    assert summation.dot(x, y) == 0.0
