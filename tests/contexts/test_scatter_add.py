"""Sums of the rows with one index: those of double-doubles enclose the exact ones, those of the
working precision are added row after row."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refkernels.contexts.double_double import DoubleDouble
from refkernels.contexts.double_double_value import parts
from refkernels.contexts.working import RoundedArithmetic, data

SHAPES = ((0, 3, 1), (1, 1, 1), (5, 2, 1), (200, 7, 2), (3000, 5, 3), (1000, 1, 1))


def rows(count: int, length: int, columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng([count, length])
    size = np.exp(10 * rng.standard_normal((count, columns)))
    return rng.standard_normal((count, columns)) * size, rng.integers(0, length, count)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_double_doubles_enclose_the_exact_sums(shape: tuple[int, int, int]) -> None:
    xp, (a, index) = DoubleDouble(), rows(*shape)
    sums = parts(xp.scatter_add(xp.array(a), index, shape[1] + 1))
    for place in np.ndindex(*sums.shape):
        exact = sum(map(Fraction, a[index == place[0], place[1]].tolist()), Fraction(0))
        middle = Fraction(float(sums.head[place])) + Fraction(float(sums.tail.mid[place]))
        radius = float(sums.tail.radius[place])
        assert abs(exact - middle) <= Fraction(radius)
        assert radius <= 2.0**-96 * np.abs(a[index == place[0], place[1]]).sum()
    assert not np.signbit(sums.head[sums.head == 0]).any()


@pytest.mark.parametrize("format", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_working_precision_adds_row_after_row(shape: tuple[int, int, int], format: str) -> None:
    xp, (a, index) = RoundedArithmetic(format), rows(*shape)
    narrow, total = a.astype(format), np.zeros((shape[1] + 1, shape[2]), format)
    for row, place in zip(narrow, index, strict=True):
        total[place] = total[place] + row
    assert np.array_equal(data(xp.scatter_add(xp.value(narrow), index, shape[1] + 1)), total)
