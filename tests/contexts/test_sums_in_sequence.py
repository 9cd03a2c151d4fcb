"""Sums in sequence and by index, and powers, are those of a loop, or enclose the exact ones."""

import functools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refkernels.contexts import RoundedArithmetic, working
from refkernels.contexts.composed import Composed, Flushed
from refkernels.contexts.double_double import DoubleDouble
from refkernels.contexts.double_double_value import parts
from refkernels.contexts.doubles import Doubles
from refkernels.contexts.working import data


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["sequential", "reversed", "random"])
def test_the_kernel_gives_the_bits_of_partial_sums(
    dtype: str, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    terms = (rng.standard_normal((3, 5, 4096)) * np.exp2(rng.integers(-60, 60, 4096))).astype(dtype)
    terms[0, 0, 5], terms[0, 1, 7:9] = np.inf, (np.inf, -np.inf)
    terms[0, 2], terms[0, 3, 9], terms[0, 4] = -0.0, np.nan, np.finfo(dtype).max
    found = []
    for many in (1, 1 << 40):
        monkeypatch.setattr(working, "_MANY", many)
        xp = RoundedArithmetic(dtype, order=order)
        found.append(np.asarray(xp.sum(xp.array(terms)).data)[..., 0])
    assert found[0].dtype == np.dtype(dtype)
    np.testing.assert_array_equal(*found)
    number = ~np.isnan(found[0])
    assert found[0][number].tobytes() == found[1][number].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_by_the_kernel_is_that_of_partial_sums(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((2, 1, 40, 300), (3, 300, 9)))
    found = []
    for many in (1, 1 << 40):
        monkeypatch.setattr(working, "_MANY", many)
        xp = RoundedArithmetic(dtype)
        found.append(np.asarray(xp.matmul(xp.array(a), xp.array(b)).data))
    assert found[0].tobytes() == found[1].tobytes()


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
