"""One element of an op's output, recomputed from the op's definition with mpmath.

A value is computed twice, with different precisions; it is off by less than the two differ, or than
the last half of its digits. Both have more digits than the inputs' magnitudes span, so that no
input is lost beside another or beside 1. A gradient is a central difference of the definition,
Σ dy (f(x + h) - f(x - h)) / 2h, with steps so small and so many digits that it too is off by less
than two of them differ: the error of the second is 10^-24 of the first's. It shares nothing with a
gradient's formula. Where the sides of x have different slopes there is none, and another element is
drawn.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hand_functions import FUNCTIONS
from hand_losses import LOSSES
from hand_numbers import exact
from hand_products import PRODUCTS
from hand_rows import LOOKUPS, NORMS, REDUCTIONS, embedding_gradient
from hand_steps import STEPS
from mpmath import mp

DEFINITIONS: dict[str, Callable[..., Any]] = {
    **FUNCTIONS, **REDUCTIONS, **NORMS, **LOOKUPS, **PRODUCTS, **LOSSES, **STEPS,
}  # fmt: skip
GRADIENTS = {"embedding": embedding_gradient}  # where the definition is no derivative
MORE = 40  # digits of the second computation, beside the first's
DECIDED = mp.mpf(10) ** -25  # the largest relative uncertainty of a value that decides

Place = tuple[int, ...]


class NoValue(Exception):
    """There is no finite real number, no derivative, or none that the digits decide."""


@dataclass(frozen=True)
class Value:
    """The second computation, and how far the first was from it."""

    middle: Any
    slack: Any

    @property
    def decided(self) -> bool:
        return bool(self.slack <= DECIDED * abs(self.middle))


@dataclass(frozen=True)
class Element:
    """An element to recompute: of `output`, at `place`. `alone`: the op is elementwise, and the
    inputs are those of this element. `cotangent` is the name of dy, None in forward."""

    op: str
    output: str
    place: Place
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    cotangent: str | None = None
    alone: bool = False

    def value(self, ladder: tuple[int, ...]) -> Value:
        """The element, with as many digits as it needs of those that the ladder offers. Raises
        NoValue."""
        span = digits_spanned(self.inputs.values())
        for digits in (span + digits for digits in ladder):
            first, second = self._at(digits, check=True), self._at(digits + MORE)
            last = abs(second) * mp.mpf(10) ** (-digits // 2)
            value = Value(second, max(abs(first - second), last))
            if value.decided:
                return value
        return value

    def _at(self, digits: int, check: bool = False) -> Any:
        with mp.workdps(digits):
            try:
                if self.cotangent is None:
                    return _real(self._defined(self.inputs, self.output)[self.place])
                return self._slope(digits, check)
            except (ZeroDivisionError, OverflowError) as error:
                raise NoValue from error

    def _defined(self, inputs: Mapping[str, Any], output: str, of: Any = DEFINITIONS) -> Any:
        """The output by the definition, as an array."""
        arrays = {name: array[()] for name, array in inputs.items()}  # without axes: numbers
        result = of[self.op](**arrays, **self.params)
        return np.asarray(result[output] if isinstance(result, dict) else result, object)

    def _slope(self, digits: int, check: bool) -> Any:
        if self.op in GRADIENTS:
            return _real(self._defined(self.inputs, self.output, GRADIENTS)[self.place])
        name = self.output[1:]
        at = self.inputs[name][self.place]
        size = mp.mpf(1) if not at else min(mp.mpf(1), abs(at))
        with mp.workdps(digits + max(int(-mp.log10(size)), 0)):
            h = size * mp.mpf(10) ** (-3 * digits // 10)
            above, below = self._loss(name, at + h), self._loss(name, at - h)
            if check:
                here = self._loss(name, at)
                right, left = (above - here) / h, (here - below) / h
                same = mp.mpf(10) ** (-digits // 7) * max(abs(right), abs(left))
                if abs(right - left) > same + mp.mpf(10) ** (-digits // 4):
                    raise NoValue
            return _real((above - below) / (2 * h))

    def _loss(self, name: str, moved: Any) -> Any:
        """Σ dy y, with the one input moved there."""
        assert self.cotangent is not None
        inputs = {key: array for key, array in self.inputs.items() if key != self.cotangent}
        array = inputs[name].copy()
        array[self.place] = moved
        y = self._defined({**inputs, name: array}, self.cotangent[1:])
        return _real(np.sum(self.inputs[self.cotangent] * y))


def element(
    op: str, output: str, place: Place, inputs: Mapping[str, Any], params: Mapping[str, Any],
    cotangent: str | None, alone: bool,
) -> Element:  # fmt: skip
    """The element, with its inputs as exact numbers."""
    if alone:
        names, arrays = list(inputs), np.broadcast_arrays(*inputs.values())
        inputs = {name: array[place] for name, array in zip(names, arrays, strict=True)}
        place = ()
    numbers = {name: exact(array) for name, array in inputs.items()}
    return Element(op, output, place, numbers, params, cotangent, alone)


def digits_spanned(arrays: Iterable[Any]) -> int:
    """How many decimal digits lie between the largest and the smallest magnitude, 1 included."""
    numbers = (x for array in arrays if array.dtype == object for x in array.ravel())
    sizes = [mp.mag(x) for x in numbers if x and mp.isfinite(x)]
    return (max([*sizes, 0]) - min([*sizes, 0])) * 3 // 10


def _real(value: Any) -> Any:
    if isinstance(value, mp.mpc) or not mp.isfinite(value):
        raise NoValue
    return mp.mpf(value)
