"""The exact tier: multiple precision for the few elements that a question leaves open.

A function gives balls (mid ± radius) 2^exponent of integers that hold the value for certain; the
precision grows until they decide the question, or to the last one here. A value that is a rounding
boundary itself, a rational, has to come with radius 0.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import from_integer_balls
from refkernels.arithmetic.question import Question
from refkernels.elementwise.function import Ball, Doubles, Function

_PRECISIONS = (160, 320, 640, 1280, 2560, 5120)  # 1 + x^2 and the smallest x: 2^-2149 beside 1
Evaluation = Callable[[int], Ball]  # by precision in bits


def values(function: Function, x: Doubles, question: Question) -> Enclosure:
    """f(x) for finite x, flat, as sharp as the question asks."""

    def at(argument: float) -> Evaluation:
        return lambda precision: function.exact_value(argument, precision)

    return _refine([at(argument) for argument in x.tolist()], question)


def gradients(function: Function, dy: Doubles, x: Doubles, question: Question) -> Enclosure:
    """dy f'(x) for finite dy and x, flat, as sharp as the question asks."""

    whole = function.exact_gradient

    def product(factor: float, argument: float) -> Evaluation:
        if whole is not None:
            return lambda precision: whole(factor, argument, precision)
        top, bottom = factor.as_integer_ratio()  # bottom is a power of two

        def at(precision: int) -> Ball:
            mid, radius, exponent = function.exact_slope(argument, precision)
            return mid * top, radius * abs(top), exponent - (bottom.bit_length() - 1)

        return at

    return _refine([product(*pair) for pair in zip(dy.tolist(), x.tolist(), strict=True)], question)


def _refine(evaluations: list[Evaluation], question: Question) -> Enclosure:
    """Each evaluation at the first precision that decides it, or at the last one."""
    enclosure = _enclose([evaluate(_PRECISIONS[0]) for evaluate in evaluations])
    for precision in _PRECISIONS[1:]:
        rest: npt.NDArray[np.intp] = np.flatnonzero(question.undecided(enclosure))
        if not rest.size:
            break
        sharper = [evaluations[i](precision) for i in rest]
        enclosure = enclosure.replace(rest, _enclose(sharper))
    return enclosure


def _enclose(balls: list[Ball]) -> Enclosure:
    mids, radii, exponents = zip(*balls, strict=True)
    return from_integer_balls(mids, radii, exponents, (len(balls),))
