"""The exact tier of erf, erfc, gelu and gelu_tanh: Arb's balls, by python-flint.

A float is an exact ball. No expression below cancels where its value is tiny, except at the zeros
of gelu' and gelu_tanh', which the caller resolves by more precision.
"""

from collections.abc import Callable
from typing import Any

from refkernels.elementwise.balls import of_arb
from refkernels.elementwise.function import Ball

GUARD = 32  # bits that the expressions lose, besides cancellation
Expression = Callable[[Any, Any], Any]  # of x as a ball, and the flint module


def ball(expression: Expression, x: float, precision: int) -> Ball:
    """expression(x) as (mid ± radius) 2^exponent; finite x."""
    import flint

    return of_arb(lambda v: expression(v, flint), x, precision + GUARD)


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


VALUES: dict[str, Expression] = {
    "erf": lambda x, flint: x.erf(),
    "erfc": lambda x, flint: x.erfc(),
    "gelu": lambda x, flint: x * _normal(x, flint),
    "gelu_tanh": _gelu_tanh,
}
SLOPES: dict[str, Expression] = {
    "erf": _erf_slope,
    "erfc": lambda x, flint: -_erf_slope(x, flint),
    "gelu": _gelu_slope,
    "gelu_tanh": _gelu_tanh_slope,
}
