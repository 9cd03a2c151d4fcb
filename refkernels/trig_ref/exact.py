"""The exact tier: multiple precision for the few elements that a question leaves open.

libmp (mpmath's core) computes sin, cos and tan of an exact argument to the last bit or so of any
asked precision, with the argument reduced as far as that needs. Here GUARD bits of each result are
given away as its error. The precision grows until the ball decides the question: f(x) is
transcendental for every rational x != 0 (Lindemann), so it is never a rounding boundary itself.
(dy cos x for |x| < 2^-1000 beside a midpoint of a narrower format is right but not certified: no
scale gives float64's lo room for x^2.)
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from mpmath import libmp

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import from_integer_balls
from refkernels.arithmetic.question import Question

GUARD = 20
_PRECISIONS = (160, 320, 640, 1280, 2560, 5120)  # dy cos x: 2^-2149 beside dy for the smallest x
_FUNCTIONS = {"sin": libmp.mpf_sin, "cos": libmp.mpf_cos, "tan": libmp.mpf_tan}
_ONE = libmp.from_int(1)
Evaluation = Callable[[int], Any]  # precision in bits -> mpf
Ball = tuple[int, int, int]  # (mid ± radius) * 2^exponent


def values(name: str, x: npt.NDArray[np.float64], question: Question) -> Enclosure:
    """f(x) for finite x != 0, as sharp as the question asks; flat arrays."""
    function = _FUNCTIONS[name]

    def at(argument: float) -> Evaluation:
        exact_argument = libmp.from_float(argument)
        return lambda p: function(exact_argument, p, "n")

    return _refine([at(argument) for argument in x.tolist()], question)


def gradients(
    name: str, dy: npt.NDArray[np.float64], x: npt.NDArray[np.float64], question: Question
) -> Enclosure:
    """dy f'(x) for finite dy != 0 and x != 0, as sharp as the question asks; flat arrays."""
    slope = _SLOPES[name]

    def product(factor: float, argument: float) -> Evaluation:
        left, right = libmp.from_float(factor), libmp.from_float(argument)
        return lambda p: libmp.mpf_mul(left, slope(right, p), p, "n")

    pairs = zip(dy.tolist(), x.tolist(), strict=True)
    return _refine([product(factor, argument) for factor, argument in pairs], question)


def _secant_squared(x: Any, precision: int) -> Any:
    cosine = libmp.mpf_cos(x, precision, "n")
    return libmp.mpf_div(_ONE, libmp.mpf_mul(cosine, cosine), precision, "n")


_SLOPES: dict[str, Callable[[Any, int], Any]] = {
    "sin": lambda x, p: libmp.mpf_cos(x, p, "n"),
    "cos": lambda x, p: libmp.mpf_neg(libmp.mpf_sin(x, p, "n")),
    "tan": _secant_squared,
}


def _refine(evaluations: list[Evaluation], question: Question) -> Enclosure:
    """Each evaluation at the first precision that decides it, or at the last one."""
    found = [_ball(evaluate(_PRECISIONS[0]), _PRECISIONS[0]) for evaluate in evaluations]
    enclosure = _enclose(found)
    for precision in _PRECISIONS[1:]:
        rest = np.flatnonzero(question.undecided(enclosure))
        if not rest.size:
            break
        sharper = [_ball(evaluations[i](precision), precision) for i in rest]
        enclosure = enclosure.replace(rest, _enclose(sharper))
    return enclosure


def _enclose(balls: list[Ball]) -> Enclosure:
    mids, radii, exponents = zip(*balls, strict=True)
    return from_integer_balls(mids, radii, exponents, (len(balls),))


def _ball(number: Any, precision: int) -> Ball:
    """The mpf with a relative error of 2^(GUARD - precision) given to it."""
    sign, mantissa, exponent, size = number
    shift = max(precision - size, 0)
    mid = int(mantissa) << shift
    return (-mid if sign else mid), 1 << (GUARD + 1), int(exponent) - shift
