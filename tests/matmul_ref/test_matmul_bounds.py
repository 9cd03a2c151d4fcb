"""Planted faults exceed the bound, which is infinite where overflow is possible; that no right
kernel does is in test_matmul_underflow."""

import numpy as np
import pytest

from refkernels import matmul_ref
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.matmul_ref import bounds
from refkernels.matmul_ref.contraction import of_matmul

DTYPES = ("float16", "bfloat16", "float32", "float64")


def errors(got, enclosure):
    """|got - exact| as float64; the enclosures used here are far tighter than any bound."""
    return np.abs((to_float64(got) - enclosure.hi) - enclosure.lo)


def drawn(dtype, seed, k, spread=0):
    rng = np.random.default_rng(seed)
    format = formats.get(dtype)
    power = rng.integers(-spread, spread + 1, k)
    a = np.ldexp(rng.standard_normal((3, k)), power)
    b = np.ldexp(rng.standard_normal((k, 5)), -power[::-1, None])
    return formats.round_to(a, format), formats.round_to(b, format)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [3, 64, 300])
def test_one_dropped_term_exceeds_the_bound(dtype, k):
    a, b = drawn(dtype, k, k)
    a[:, k // 2], b[k // 2] = 3.0, 2.0
    got = matmul_ref.forward_plain(np.delete(a, k // 2, 1), np.delete(b, k // 2, 0), format=dtype)
    allowed = matmul_ref.forward_bound(a, b, format=dtype)
    assert (errors(got, matmul_ref.forward(a, b)) > allowed).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bound_is_infinite_exactly_where_overflow_is_possible(dtype):
    format = formats.get(dtype)
    root = 2.0 ** ((format.emax + 1) // 2)
    for factor, overflows in ((0.25, False), (2.0, True)):
        a = np.full((2, 4), root * factor / 2).astype(format.storage)
        b = np.full((4, 1), root / 2).astype(format.storage)
        b[0] = -b[0]
        assert np.isinf(matmul_ref.forward_bound(a, b, format=dtype)).all() == overflows


def test_float16_sums_may_pass_the_largest_float16_inside():
    a = np.full((1, 8), 200.0, np.float16)
    b = np.array([[200.0], [-200.0]] * 4, np.float16)
    assert np.isfinite(matmul_ref.forward_bound(a, b, format="float16")).all()


def test_special_values_have_no_bound():
    a, b = np.ones((3, 2)), np.ones((2, 2))
    a[0, 0], a[1, 0] = np.inf, np.nan
    allowed = matmul_ref.forward_bound(a, b, format="float64")
    assert np.isnan(allowed[:2]).all()
    assert np.isfinite(allowed[2]).all()


def test_an_overflow_of_finite_operands_makes_the_bound_infinite():
    a = np.full((1, 2), 1e200)
    assert np.isinf(matmul_ref.forward_bound(a, a.T, format="float64")).all()


def test_zero_rows_bound_the_error_by_underflow_alone():
    allowed = matmul_ref.forward_bound(np.zeros((1, 9)), np.ones((9, 1)), format="float64")
    assert 0 < allowed[0, 0] <= 100 * 2.0**-1074
    assert (matmul_ref.forward_bound(np.ones((2, 0)), np.ones((0, 2)), format="float32") == 0).all()


def test_magnitudes_are_upper_bounds_and_tight():
    a, b = drawn("float64", 9, 500)
    total = bounds.magnitudes(of_matmul(a, b))
    exact = matmul_ref.forward(np.abs(a), np.abs(b))
    assert (total >= exact.hi).all()
    assert (total <= exact.hi * (1 + 2e-13)).all()


def test_condition_numbers():
    a = np.array([[1.0, 2.0], [1.0, -1.0], [0.0, 0.0], [1.0, -1.0 + 2.0**-40]])
    b = np.ones((2, 1))
    condition = matmul_ref.forward_condition(a, b)[:, 0]
    assert condition[0] == pytest.approx(2.0, rel=1e-14)
    assert condition[1] == np.inf
    assert condition[2] == 0.0
    assert condition[3] == pytest.approx(2.0**42, rel=1e-11)
    with_bias = matmul_ref.linear_condition(np.ones((1, 2)), np.ones((1, 2)), np.array([-1.0]))
    assert with_bias[0, 0] == pytest.approx(6.0, rel=1e-14)
