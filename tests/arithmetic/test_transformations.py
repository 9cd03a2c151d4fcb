"""Error-free transformations of arrays, against rationals."""

import numpy as np
from fallback_runs import same_bits

from refkernels.arithmetic.interpreted import by_rationals
from refkernels.arithmetic.transformations import multiply_add

TRIED = 20_000


def test_multiply_add_rounds_once() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, TRIED)) * 2.0 ** rng.integers(-150, 150, (3, TRIED))
    kind = rng.integers(0, 8, TRIED)
    short = np.float32(rng.standard_normal((2, TRIED)))  # products of few bits: ties
    a, b = np.where(kind < 3, short, (a, b))
    product = a * b
    near = rng.choice([0.0, 1.0, -1.0, 3.0], TRIED) * 2.0 ** rng.integers(-54, 60, TRIED)
    c = np.where(kind % 2 == 0, product * near, c)  # cancels, or meets the last places
    c = np.where(kind == 1, np.nextafter(-product, rng.choice([-np.inf, np.inf], TRIED)), c)
    c[kind == 3] = rng.choice([0.0, -0.0], (kind == 3).sum())
    a[::50] = rng.choice([0.0, -0.0], len(a[::50]))
    exact = [by_rationals(*numbers) for numbers in zip(a, b, c, strict=True)]
    assert same_bits(multiply_add(a, b, c), np.array(exact))
    twice = product + c
    assert TRIED / 20 < (twice != exact).sum() < TRIED  # the cases need the one rounding


def test_multiply_add_breaks_ties_by_what_is_far_below() -> None:
    a = np.array([1.0 + 2.0**-27, 1.0 + 2.0**-52, 1.0 + 2.0**-30, 2.0**53 + 2.0])
    b = np.array([1.0 - 2.0**-27, 1.0 + 2.0**-52, 1.0 + 2.0**-30, 1.0 + 2.0**-52])
    for c in (-1.0, 2.0**-53, -(2.0**-53), 2.0**-54, 2.0**60, 3.0 * 2.0**-53, 2.0**-110):
        exact = [by_rationals(x, y, c) for x, y in zip(a, b, strict=True)]
        assert same_bits(multiply_add(a, b, np.full(4, c)), np.array(exact))
