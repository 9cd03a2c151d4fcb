"""The exact tier of erf, erfc, gelu and gelu_tanh: Arb's balls, by python-flint.

A float is an exact ball; no expression below cancels where its value is tiny, but at the zeros of
gelu' and gelu_tanh', which the growing precision of the caller resolves. Where tails vanish,
arguments stay at the FARTHEST of the tier before: no exponent holds exp(-10^600).
"""

import math
from collections.abc import Callable
from typing import Any

from refkernels.elementary_ref import erf_tail, gelu_tanh_kernels
from refkernels.elementwise.balls import of_arb
from refkernels.elementwise.function import Ball

GUARD = 32  # bits that the expressions lose, besides cancellation
_FAR, _FAR_TANH = erf_tail.FARTHEST, gelu_tanh_kernels.FARTHEST
Expression = Callable[[Any, Any], Any]  # of x as a ball and of the flint module


def ball(expression: Expression, low: float, high: float, x: float, precision: int) -> Ball:
    """expression(x), x brought into [low, high], as (mid ± radius) 2^exponent; finite x."""
    import flint

    return of_arb(lambda v: expression(v, flint), min(max(x, low), high), precision + GUARD)


def _erf_slope(x: Any, flint: Any) -> Any:
    return 2 / flint.arb.pi().sqrt() * (-x * x).exp()


def _normal(x: Any, flint: Any) -> Any:
    """Phi(x), the distribution function of the normal distribution."""
    return (-x / flint.arb(2).sqrt()).erfc() / 2


def _gelu_slope(x: Any, flint: Any) -> Any:
    return _normal(x, flint) + x * (-x * x / 2).exp() / (2 * flint.arb.pi()).sqrt()


def _twice_argument(x: Any, flint: Any) -> tuple[Any, Any]:
    """v = 2 sqrt(2/pi) (x + 0.044715 x^3), and v'."""
    cubic = flint.arb(44715) / 10**6
    factor = 2 * (2 / flint.arb.pi()).sqrt()
    return factor * (x + cubic * x**3), factor * (1 + 3 * cubic * x**2)


def _gelu_tanh(x: Any, flint: Any) -> Any:
    v, _ = _twice_argument(x, flint)
    return x / (1 + (-v).exp())


def _gelu_tanh_slope(x: Any, flint: Any) -> Any:
    v, slope = _twice_argument(x, flint)
    return (1 + x * slope / (1 + v.exp())) / (1 + (-v).exp())


# name: expression, lowest and highest argument
VALUES: dict[str, tuple[Expression, float, float]] = {
    "erf": (lambda x, flint: x.erf(), -math.inf, math.inf),
    "erfc": (lambda x, flint: x.erfc(), -math.inf, _FAR),
    "gelu": (lambda x, flint: x * _normal(x, flint), -_FAR, math.inf),
    "gelu_tanh": (_gelu_tanh, -_FAR_TANH, math.inf),
}
SLOPES: dict[str, tuple[Expression, float, float]] = {
    "erf": (_erf_slope, -_FAR, _FAR),
    "erfc": (lambda x, flint: -_erf_slope(x, flint), -_FAR, _FAR),
    "gelu": (_gelu_slope, -_FAR, _FAR),
    "gelu_tanh": (_gelu_tanh_slope, -_FAR_TANH, _FAR_TANH),
}
