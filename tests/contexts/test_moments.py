"""Mean and squared distances in one pass: the error of streams and merges of any shape."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refkernels.contexts.arb import Arb, ends
from refkernels.contexts.bound import Bound
from refkernels.contexts.working import RoundedArithmetic, data

Moments = tuple[Any, Any, int]


def merged(a: Moments, b: Moments) -> Moments:
    """Chan, Golub and LeVeque's merge, in the arrays' format; a is not the shorter."""
    kind = a[0].dtype.type
    n = a[2] + b[2]
    delta = b[0] - a[0]
    mean = a[0] + delta * (kind(b[2]) / kind(n))
    squares = a[1] + b[1] + delta * delta * kind(a[2]) * kind(b[2]) / kind(n)
    return mean, squares, n


def by_merges(x: Any, parts: int) -> tuple[Any, Any]:
    """Every `parts`-th number is a lane that streams; then the lanes are merged in pairs."""
    lanes = []
    for lane in range(min(parts, x.shape[1])):
        mean, squares = RoundedArithmetic(str(x.dtype)).welford(
            RoundedArithmetic(str(x.dtype)).array(x[:, lane::parts])
        )
        lanes.append((data(mean)[:, 0], data(squares)[:, 0], len(range(lane, x.shape[1], parts))))
    while len(lanes) > 1:
        half = (len(lanes) + 1) // 2
        pairs = [merged(lanes[k], lanes[half + k]) for k in range(len(lanes) - half)]
        lanes = pairs + lanes[len(pairs) : half]
    return lanes[0][0], lanes[0][1]


def hard_rows(dtype: str, n: int) -> Any:
    rng = np.random.default_rng(n)
    tiny = float(np.finfo(dtype).smallest_subnormal)
    rows = [
        rng.standard_normal(n),
        1e4 + rng.standard_normal(n),
        np.sort(1e3 + 1e-3 * rng.standard_normal(n)),
        np.where(np.arange(n) < n // 2, -1e6, 1e-6),
        tiny * rng.integers(-5, 6, n),
        np.full(n, 0.1),
        float(np.finfo(dtype).max) ** 0.45 * rng.uniform(0.5, 1, n),
    ]
    return np.stack(rows).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_streams_and_merges_keep_to_the_bound_of_moments(dtype: str) -> None:
    compared = 0
    for n in (1, 2, 3, 17, 1000):
        x = hard_rows(dtype, n)
        reading = Bound(dtype)
        bounds = [value.error[:, 0] for value in reading.welford(reading.array(x))]
        with Arb(600) as xp:
            truths = [ends(value) for value in xp.welford(xp.array(x))]
        for parts in (1, 2, 7, 64, n):
            with np.errstate(all="ignore"):
                merged = by_merges(x, parts)
            for got, bound, truth in zip(merged, bounds, truths, strict=True):
                for value, most, (low, high) in zip(got, bound, truth, strict=True):
                    if np.isfinite(most):
                        off = max(abs(Fraction(float(value)) - z) for z in (low, high))
                        assert off <= Fraction(float(most)) + Fraction(1, 2**1100)
                        compared += 1
    assert compared > 300


def test_the_bound_of_moments_is_of_the_size_of_the_condition() -> None:
    """n u κ of the variance, κ the mean over the deviation; none where u n is beyond 1."""
    x = (1000 + np.random.default_rng(1).standard_normal((1, 4096))).astype(np.float32)
    reading = Bound("float32")
    _, squares = reading.welford(reading.array(x))
    relative = squares.error[0, 0] / squares.exact.mid[0, 0]
    assert 1e3 * 4096 * 2.0**-24 < relative < 5e3 * 4096 * 2.0**-24
    reading = Bound("float16")
    assert np.isinf(reading.welford(reading.array(np.ones((1, 4000), np.float16)))[0].error).all()
