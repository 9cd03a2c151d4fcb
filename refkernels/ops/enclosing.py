"""Values of the certified contexts as Enclosures, whose ends are not attained."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.bits import bits_of, float_of
from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.arithmetic.exact import from_fractions, from_integer_balls
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.vectors import full_width
from refkernels.contexts.ball import BallValue
from refkernels.contexts.double_double_value import DoubleDoubleValue
from refkernels.contexts.objects import data
from refkernels.contexts.value import Value
from refkernels.contexts.working import RoundedValue
from refkernels.kernels import balls

Shape = tuple[int, ...]


@njit(nogil=True)
def open_ends(radius: Any) -> bool:
    """Turns closed balls into open ones that contain them: each radius other than 0 and infinity
    becomes the next float. Returns whether all radii are finite."""
    full_width()
    known = 0
    for i in range(radius.size):
        finite = radius[i] < np.inf
        radius[i] = float_of(bits_of(radius[i]) + (finite & (radius[i] > 0.0)))
        known += finite
    return bool(known == radius.size)


def ball(mid: npt.NDArray[np.float64], radius: npt.NDArray[np.float64]) -> Enclosure:
    """From a ball, whose ends may be attained."""
    return Enclosure(mid, 0.0, np.where(radius > 0.0, np.nextafter(radius, np.inf), 0.0))


def value(result: Value, shape: Shape) -> Enclosure:
    """From a value of Ball or DoubleDouble."""
    assert isinstance(result, BallValue | DoubleDoubleValue)
    return _spread(result.enclosure(), shape)


def arb(precision: int) -> Callable[[Value, Shape], Enclosure]:
    """From Arb's balls, their integers kept to twice the precision."""

    def enclose(result: Value, shape: Shape) -> Enclosure:
        elements = np.broadcast_to(data(result), shape).reshape(-1).tolist()
        mids, radii, exponents = zip(*(_open(x, 2 * precision) for x in elements), strict=True)
        return from_integer_balls(mids, radii, exponents, shape)

    return enclose


def _open(x: Any, bits: int) -> tuple[int, int, int]:
    mid, radius, exponent = balls.of(x, bits)
    return mid, radius + (radius > 0), exponent


def rational(result: Value, shape: Shape) -> Enclosure:
    """From exact fractions; a surd gets an infinite radius."""
    elements = np.broadcast_to(data(result), shape).reshape(-1).tolist()
    fractions = [element if isinstance(element, Fraction) else Fraction(0) for element in elements]
    enclosure = from_fractions(fractions, shape)
    exact = np.array([isinstance(element, Fraction) for element in elements], bool).reshape(shape)
    return trusted(
        enclosure.hi, enclosure.lo, np.where(exact, enclosure.radius, np.inf), enclosure.scale
    )


def computed(result: Value, shape: Shape) -> Enclosure:
    """From binary64 arithmetic, for its special values."""
    assert isinstance(result, RoundedValue)
    return Enclosure(np.broadcast_to(result.data, shape).astype(np.float64))


def narrower(first: Enclosure, second: Enclosure) -> Enclosure:
    """For each element the Enclosure with the smaller radius; both contain the value."""
    better = np.flatnonzero(second.radius < first.radius)  # neither has a scale
    return first.replace(better, second[better])


def _spread(result: Enclosure, shape: Shape) -> Enclosure:
    columns = (result.hi, result.lo, result.radius, result.scale)
    return trusted(*(np.broadcast_to(column, shape) for column in columns))
