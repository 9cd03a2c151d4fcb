"""Sums in sequence and by index, and powers, are those of a loop, or enclose the exact ones."""

import functools
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refkernels.contexts import RoundedArithmetic, working
from refkernels.contexts.composed import Composed, Flushed
from refkernels.contexts.double_double import DoubleDouble
from refkernels.contexts.double_double_value import parts
from refkernels.contexts.doubles import Doubles
from refkernels.contexts.signed_zeros import SignedZeros
from refkernels.contexts.unbounded import Unbounded
from refkernels.contexts.working import data

IN_ORDER = [
    RoundedArithmetic(dtype, order=order, fma=fma, seed=1)
    for dtype, fma in itertools.product(("float32", "float64"), (False, True))
    for order in ("sequential", "reversed", "random", "pairwise")
]
NO_RANGE = [Unbounded(), Unbounded(underflow=True), SignedZeros(made=0.0), SignedZeros(made=-0.0)]


@pytest.mark.parametrize("size", [1.0, 1e-160, 1e160])  # whose products leave the range
@pytest.mark.parametrize("kind", ["", "zeros", "specials"])
@pytest.mark.parametrize("xp", [*IN_ORDER, *NO_RANGE])
def test_a_product_by_the_kernel_is_that_of_partial_sums(
    xp: RoundedArithmetic, kind: str, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, found = np.random.default_rng(8), []
    a, b = (rng.standard_normal(shape) * size for shape in ((2, 1, 9, 300), (3, 300, 7)))
    if kind:
        a[..., 1, :], a[..., 2, :], b[0, 3:, 4] = 0.0, -0.0, 0.0
    if kind == "specials":
        a[0, 0, 5, 7], b[1, 9, 3] = np.inf, np.nan
    for many in (1, 1 << 40):
        monkeypatch.setattr(working, "_MANY", many)
        found.append(np.asarray(data(xp.matmul(xp.array(a), xp.array(b)))))
    np.testing.assert_array_equal(*found)
    number = ~np.isnan(found[0])
    assert found[0][number].tobytes() == found[1][number].tobytes()


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


EXACT_ORDER = [*map(RoundedArithmetic, ("float32", "float64", "bfloat16")), Flushed("float32")]


@pytest.mark.parametrize("xp", [*EXACT_ORDER, Doubles()], ids=lambda xp: xp.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_working_precision_adds_row_after_row(
    shape: tuple[int, int, int], xp: RoundedArithmetic
) -> None:
    a, index = rows(*shape)
    terms = xp.value(a * xp.format.min_normal)
    total = np.zeros((shape[1] + 1, shape[2]), data(terms).dtype)
    for row, place in zip(data(terms), index, strict=True):
        total[place] = xp.plus(total[place], row)
    assert data(xp.scatter_add(terms, index, shape[1] + 1)).tobytes() == total.tobytes()


@pytest.mark.parametrize(
    "xp", [*EXACT_ORDER, Composed("float16"), RoundedArithmetic("float32", fma=True), Doubles()]
)
def test_a_power_is_the_product_of_its_steps(xp: RoundedArithmetic) -> None:
    a = xp.value(np.array([0.9, -0.999, 1.01, -1e-4, np.inf, 0.0]))
    power, steps = xp.power(a, 1000), functools.reduce(xp.multiply, [a] * 1000)
    assert data(1 - power).tobytes() == data(1 - steps).tobytes()
    assert data(power).tobytes() == data(steps).tobytes()
