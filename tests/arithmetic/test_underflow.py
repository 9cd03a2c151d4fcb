"""The loss of products by underflow, compared with exact arithmetic, in every association."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hunting import HUNT
from hypothesis import given, settings
from hypothesis import strategies as st

from refkernels.arithmetic.formats import BINARY32, BINARY64
from refkernels.arithmetic.underflow import amplification, loss


@cache
def trees(places):
    """Every binary tree over a tuple of leaves, whatever their order."""
    if len(places) == 1:
        return list(places)
    grown = []
    for mask in range(1, 2 ** len(places) - 1, 2):  # the first leaf is always on the left
        left = tuple(p for i, p in enumerate(places) if mask >> i & 1)
        right = tuple(p for p in places if p not in left)
        grown += [
            (left_tree, right_tree) for left_tree in trees(left) for right_tree in trees(right)
        ]
    return grown


def product(tree, factors):
    if not isinstance(tree, tuple):
        return factors[tree]
    return product(tree[0], factors) * product(tree[1], factors)


def test_every_association_is_tried():
    assert [len(trees(tuple(range(k)))) for k in (2, 3, 4, 5)] == [1, 3, 15, 105]


def test_amplification_is_the_sum_over_sets_of_all_but_two_factors():
    assert amplification(7.0, 9.0) == 1.0
    assert amplification(2.0, 3.0, 5.0) == 1 + 2 + 3 + 5
    assert amplification(2.0, 3.0, 5.0, 7.0) == 1 + 17 + 6 + 10 + 14 + 15 + 21 + 35
    np.testing.assert_array_equal(
        amplification(np.ones((2, 1)), np.ones(3), 0.0), np.full((2, 3), 3)
    )


@pytest.mark.parametrize("format", [BINARY32, BINARY64], ids=str)
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_no_association_loses_more(format, k):
    """Over powers of two times 1.5 or 1, so that nothing is rounded but subnormals."""
    tried = 0

    @settings(max_examples=30 * HUNT)
    @given(st.integers(0, 2**32 - 1))
    def hunt(seed):
        nonlocal tried
        rng = np.random.default_rng(seed)
        middle = format.emin // k
        powers = rng.integers(middle - 40, middle + 20, k) + rng.choice([0, 30, -30], k)
        sizes = np.ldexp(rng.choice([1.0, 1.5, 1.25], k), powers).astype(format.storage)
        exact = np.prod([Fraction(float(size)) for size in sizes])
        wide = sizes.astype(float)
        allowed = Fraction(float(loss(format.min_subnormal, *wide))) * (1 + Fraction(1, 2**20))
        for tree in trees(tuple(range(k))):
            with np.errstate(all="ignore"):
                lost = abs(Fraction(float(product(tree, sizes))) - exact)
            assert lost <= allowed
            if k > 2 and all(0 in pair or k == 2 for pair in pairs(tree)):
                inside = float(loss(format.min_subnormal, *wide[1:], inside=wide[0]))
                assert lost <= Fraction(inside) * (1 + Fraction(1, 2**20))
            tried += 1

    hunt()
    assert tried >= 30


def pairs(tree):
    """The leaves below each product of the tree."""
    if not isinstance(tree, tuple):
        return []
    return [leaves(tree), *pairs(tree[0]), *pairs(tree[1])]


def leaves(tree):
    return leaves(tree[0]) | leaves(tree[1]) if isinstance(tree, tuple) else {tree}


def test_what_is_lost_is_never_much_more_than_the_product():
    allowed = loss(BINARY32.min_subnormal, 2.0**-100, 2.0**-100, 2.0**100)
    assert allowed == 4 * 2.0**-100
    assert loss(BINARY32.min_subnormal, 2.0**-100, 2.0**-20, 2.0**100) == pytest.approx(
        BINARY32.min_subnormal / 2 * 2.0**100
    )
    assert loss(BINARY64.min_subnormal, 2.0**-600, 2.0**-600) >= 2.0**-1075
