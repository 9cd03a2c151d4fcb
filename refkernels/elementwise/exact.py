"""The exact tier: multiple precision for the few elements that a question leaves open.

A function gives balls (mid ± radius) 2^exponent of integers with the value certainly and strictly
inside. The precision grows until they decide the question, or up to the last one here. A value that
is a rounding boundary itself, a rational, must have radius 0. The answer of the tier before is
kept, since it may know what no precision here decides, such as on which side of x the value
x (1 - exp(-x)) lies.
"""

from collections.abc import Callable

import numpy as np

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import from_integer_balls, intersection
from refkernels.arithmetic.ladder import Indices, refine
from refkernels.arithmetic.question import Question
from refkernels.elementwise.function import Ball, Doubles, Function

_PRECISIONS = (160, 320, 640, 1280, 2560, 5120)  # 1 + x^2 and the smallest x: 2^-2149 beside 1
Evaluation = Callable[[int], Ball]  # by precision in bits


def values(function: Function, x: Doubles, question: Question, known: Enclosure) -> Enclosure:
    """f(x) for finite x, flat, as sharp as the question asks; `known` from the tier before."""

    def at(argument: float) -> Evaluation:
        return lambda precision: function.exact_value(argument, precision)

    return _refine([at(argument) for argument in x.tolist()], question, known)


def gradients(
    function: Function, dy: Doubles, x: Doubles, question: Question, known: Enclosure
) -> Enclosure:
    """dy f'(x) for finite dy and x, flat, as sharp as the question asks; `known` as in `values`."""

    exact_gradient = function.exact_gradient

    def product(factor: float, argument: float) -> Evaluation:
        if exact_gradient is not None:
            return lambda precision: exact_gradient(factor, argument, precision)
        top, bottom = factor.as_integer_ratio()  # bottom is a power of two

        def at(precision: int) -> Ball:
            mid, radius, exponent = function.exact_slope(argument, precision)
            return mid * top, radius * abs(top), exponent - (bottom.bit_length() - 1)

        return at

    pairs = zip(dy.tolist(), x.tolist(), strict=True)
    return _refine([product(*pair) for pair in pairs], question, known)


def _refine(evaluations: list[Evaluation], question: Question, known: Enclosure) -> Enclosure:
    """Each evaluation at the first precision that decides it, or at the last one."""

    def sharper(left: Indices, precision: int, before: Enclosure) -> Enclosure:
        return intersection(before, _enclose([evaluations[i](precision) for i in left]))

    left = np.flatnonzero(question.undecided(known))
    return refine(known, left, _PRECISIONS, sharper, question.undecided)


def _enclose(balls: list[Ball]) -> Enclosure:
    mids, radii, exponents = zip(*balls, strict=True)
    return from_integer_balls(mids, radii, exponents, (len(balls),))
