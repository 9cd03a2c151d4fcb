"""Values of the certified contexts as Enclosures, which have no value at their ends."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.arithmetic.exact import from_fractions, from_integer_balls
from refkernels.contexts.ball import BallValue
from refkernels.contexts.double_double_value import DoubleDoubleValue
from refkernels.contexts.objects import data
from refkernels.contexts.value import Value
from refkernels.contexts.working import WorkingValue
from refkernels.elementwise import balls

Shape = tuple[int, ...]


def ball(mid: npt.NDArray[np.float64], radius: npt.NDArray[np.float64]) -> Enclosure:
    """Of a ball, whose ends may be the value."""
    return Enclosure(mid, 0.0, np.where(radius > 0.0, np.nextafter(radius, np.inf), 0.0))


def value(result: Value, shape: Shape) -> Enclosure:
    """Of a Ball or a DoubleDouble."""
    assert isinstance(result, BallValue | DoubleDoubleValue)
    return _spread(result.enclosure(), shape)


def arb(precision: int) -> Callable[[Value, Shape], Enclosure]:
    """Of Arb's balls, their integers kept to twice the precision."""

    def enclose(result: Value, shape: Shape) -> Enclosure:
        elements = np.broadcast_to(data(result), shape).reshape(-1).tolist()
        mids, radii, exponents = zip(*(_open(x, 2 * precision) for x in elements), strict=True)
        return from_integer_balls(mids, radii, exponents, shape)

    return enclose


def _open(x: Any, bits: int) -> tuple[int, int, int]:
    mid, radius, exponent = balls.of(x, bits)
    return mid, radius + (radius > 0), exponent


def rational(result: Value, shape: Shape) -> Enclosure:
    """Of exact fractions; of surds, which are no fractions, nothing is told."""
    elements = np.broadcast_to(data(result), shape).reshape(-1).tolist()
    known = [one if isinstance(one, Fraction) else Fraction(0) for one in elements]
    found = from_fractions(known, shape)
    exact = np.array([isinstance(one, Fraction) for one in elements], bool).reshape(shape)
    return trusted(found.hi, found.lo, np.where(exact, found.radius, np.inf), found.scale)


def computed(result: Value, shape: Shape) -> Enclosure:
    """Of binary64 arithmetic: the special values that it gives are what is meant."""
    assert isinstance(result, WorkingValue)
    return Enclosure(np.broadcast_to(result.data, shape).astype(np.float64))


def narrower(one: Enclosure, other: Enclosure) -> Enclosure:
    """Of each element the Enclosure with the smaller radius; both hold it."""
    better = np.flatnonzero(other.radius < one.radius)  # neither has a scale
    return one.replace(better, other[better])


def _spread(result: Enclosure, shape: Shape) -> Enclosure:
    columns = (result.hi, result.lo, result.radius, result.scale)
    return trusted(*(np.broadcast_to(column, shape) for column in columns))
