"""One element of an op's output, recomputed from the op's definition with mpmath.

A value is computed twice: with some digits, everything rounded down, and with more, everything
rounded up. So a number that is lost beside another moves the two apart, however few the digits. The
value is off by less than they differ, or than the last half of its digits. Where that decides
nothing, more digits are taken; the first are those that the inputs' magnitudes span.

A gradient is a central difference of the definition, Σ dy (f(x + h) - f(x - h)) / 2h, whose two
sides are rounded apart; it is uncertain by their last digits at least. Its step shrinks with the
digits, so that the error of the second is 10^-24 of the first's. It shares nothing with a
gradient's formula. Where the slopes on the two sides of x stay apart as the step shrinks there is
none, and another element is drawn.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hand_functions import FUNCTIONS
from hand_losses import LOSSES
from hand_models import MODELS
from hand_numbers import OPPOSITE, Numbers, Rounding, exact, rounded
from hand_products import PRODUCTS
from hand_quantization import QUANTIZERS
from hand_rows import LOOKUPS, NORMS, REDUCTIONS, embedding_gradient, spectral_norm_gradient
from hand_steps import STEPS
from mpmath import mp

DEFINITIONS: dict[str, Callable[..., Any]] = {
    **FUNCTIONS, **REDUCTIONS, **NORMS, **LOOKUPS, **PRODUCTS, **LOSSES, **STEPS, **QUANTIZERS,
    **MODELS,
}  # fmt: skip
# Where the definition is no derivative:
GRADIENTS = {"embedding": embedding_gradient, "spectral_norm": spectral_norm_gradient}
ABSENT = {"weight": 1, "bias": 0}  # what an input that is left out is in the definition
MORE = 40  # digits of the second computation, beside the first's
DECIDED = mp.mpf(10) ** -25  # the largest relative uncertainty of a value that decides
SMOOTH = mp.mpf(10) ** -6  # of two slopes' difference, where the step is 10^-12 of the other

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
    """An element to recompute: of `output`, at `place`. `cotangent` is the name of dy, None in
    forward."""

    op: str
    output: str
    place: Place
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    cotangent: str | None = None

    def value(self, ladder: tuple[int, ...]) -> Value:
        """The element, with as many digits as it needs of those that the ladder offers. Raises
        NoValue."""
        span = digits_spanned(self.inputs.values())
        for digits in (span + digits for digits in ladder):
            first, lost, apart = self._at(digits, "f")
            second, _, still_apart = self._at(digits + MORE, "c")
            last = abs(second) * mp.mpf(10) ** (-digits // 2)
            value = Value(second, max(abs(first - second), last, lost))
            if still_apart > max(apart * SMOOTH, value.slack):
                raise NoValue
            if value.decided:
                break
        return value

    def _at(self, digits: int, rounding: Rounding) -> tuple[Any, Any, Any]:
        """The element; what a difference loses at least; how far its two slopes are apart."""
        try:
            if self.cotangent is None:
                return self._defined(DEFINITIONS, digits, rounding), 0, 0
            if self.op in GRADIENTS:
                return self._defined(GRADIENTS, digits, rounding), 0, 0
            return self._slope(digits, rounding)
        except (ZeroDivisionError, OverflowError) as error:
            raise NoValue from error

    def _defined(self, of: Any, digits: int, rounding: Rounding) -> Any:
        with rounded(digits, rounding):
            return _real(computed(of[self.op], self.inputs, self.params, self.output)[self.place])

    def _slope(self, digits: int, rounding: Rounding) -> tuple[Any, Any, Any]:
        at = _real(self.inputs[self.output[1:]][self.place])
        size = min(mp.mag(at), 0) if at else 0
        h = mp.ldexp(1, size - digits)
        digits += max(-size, 0) * 3 // 10
        above = self._loss(mp.fadd(at, h, exact=True), digits, rounding)
        below = self._loss(mp.fsub(at, h, exact=True), digits, OPPOSITE[rounding])
        here = self._loss(at, digits, rounding)
        with rounded(digits, rounding):
            lost = abs(here) * mp.mpf(10) ** -digits / h
            return (above - below) / (2 * h), lost, abs((above - here) - (here - below)) / h

    def _loss(self, moved: Any, digits: int, rounding: Rounding) -> Any:
        """Σ dy y, with the one input moved there."""
        assert self.cotangent is not None
        name = self.output[1:]
        inputs = {key: array for key, array in self.inputs.items() if key != self.cotangent}
        array = inputs[name].copy()
        array[self.place] = moved
        with rounded(digits, rounding):
            y = computed(
                DEFINITIONS[self.op], {**inputs, name: array}, self.params, self.cotangent[1:]
            )
            return _real(np.sum(self.inputs[self.cotangent] * y))


def computed(
    definition: Callable[..., Any], inputs: Mapping[str, Any], params: Mapping[str, Any],
    output: str,
) -> Numbers:  # fmt: skip
    """The output by the definition, as an array."""
    arrays = {name: array[()] for name, array in inputs.items()}  # without axes: numbers
    result = definition(**arrays, **params)
    return np.asarray(result[output] if isinstance(result, dict) else result, object)


def element(
    op: str, output: str, place: Place, inputs: Mapping[str, Any], params: Mapping[str, Any],
    cotangent: str | None = None, shape: tuple[int, ...] = (), alone: bool = False,
) -> Element:  # fmt: skip
    """The element of an output of that shape, with its inputs as exact numbers. `alone`: the op is
    elementwise, and only the inputs of this element are kept."""
    inputs = dict(inputs)
    if cotangent is not None:
        name = output[1:]
        inputs.setdefault(name, np.full(shape, float(ABSENT.get(name, 0))))
    if alone:
        names, arrays = list(inputs), np.broadcast_arrays(*inputs.values())
        inputs = {name: array[place] for name, array in zip(names, arrays, strict=True)}
        place = ()
    numbers = {name: exact(array) for name, array in inputs.items()}
    return Element(op, output, place, numbers, params, cotangent)


def digits_spanned(arrays: Iterable[Any]) -> int:
    """How many decimal digits lie between the largest and the smallest magnitude, 1 included."""
    numbers = (x for array in arrays if array.dtype == object for x in array.ravel())
    sizes = [mp.mag(x) for x in numbers if x and mp.isfinite(x)]
    return (max([*sizes, 0]) - min([*sizes, 0])) * 3 // 10


def _real(value: Any) -> Any:
    if isinstance(value, mp.mpc) or not mp.isfinite(value):
        raise NoValue
    return mp.mpf(value)
