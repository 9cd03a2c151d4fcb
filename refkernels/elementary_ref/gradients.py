"""Certified formulas of functions and gradients whose definition loses digits, and where slopes
saturate."""

from collections.abc import Callable
from typing import Any

from refkernels.elementary_ref.forms import CUBIC, HALF
from refkernels.elementwise.function import End
from refkernels.kernels.elementary import erf_tail

Formula = Callable[..., Any]


def _sigmoid(xp: Any, x: Any) -> Any:
    e = xp.exp(-abs(x))
    return xp.where(x < 0, e, xp.number(1)) / (1 + e)


def _twice_argument(xp: Any, x: Any) -> tuple[Any, Any]:
    """v = 2 sqrt(2/pi) (x + 0.044715 x^3), and v'."""
    factor, square = 2 * xp.sqrt(2 / xp.pi()), xp.number(CUBIC) * xp.square(x)
    return factor * x * (1 + square), factor * (1 + 3 * square)


def _gelu_tanh(xp: Any, dy: Any, x: Any) -> Any:
    v, slope = _twice_argument(xp, x)
    return dy * (_sigmoid(xp, v) * (1 + x * slope * _sigmoid(xp, -v)))


def _gelu(xp: Any, dy: Any, x: Any) -> Any:
    normal = xp.erfc(-x / xp.sqrt(xp.number(2))) * xp.number(HALF)
    bell = xp.exp(-xp.square(x) * xp.number(HALF)) / xp.sqrt(2 * xp.pi())
    return dy * (normal + x * bell)


TRUTHS: dict[str, Formula] = {
    "gelu_tanh": lambda xp, x: x * _sigmoid(xp, _twice_argument(xp, x)[0]),
}
GRADIENTS: dict[str, Formula] = {
    "log": lambda xp, dy, x: dy / x,
    "log1p": lambda xp, dy, x: dy / (1 + x),
    "cosh": lambda xp, dy, x: dy * xp.function("sinh", x),
    "tanh": lambda xp, dy, x: 4 * dy * _sigmoid(xp, 2 * x) * _sigmoid(xp, -2 * x),
    "sigmoid": lambda xp, dy, x: dy * _sigmoid(xp, x) * _sigmoid(xp, -x),
    "silu": lambda xp, dy, x: dy * (_sigmoid(xp, x) * (1 + x * _sigmoid(xp, -x))),
    "softplus": lambda xp, dy, x: dy * _sigmoid(xp, x),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}
_FAR = 1000.0  # e^-1000 is below 2^-1400
ENDS = {
    "erf": (End(erf_tail.FARTHEST, 0.0, 1.0), End(-erf_tail.FARTHEST, 0.0, 1.0)),
    "erfc": (End(erf_tail.FARTHEST, 0.0, -1.0), End(-erf_tail.FARTHEST, 0.0, -1.0)),
    "silu": (End(_FAR, 1.0, 1.0), End(-(2.0**29), 0.0, -1.0)),
    "softplus": (End(_FAR, 1.0, -1.0),),
    "gelu": (End(_FAR, 1.0, 1.0), End(-erf_tail.FARTHEST, 0.0, -1.0)),
    "gelu_tanh": (End(_FAR, 1.0, 1.0), End(-(2.0**10), 0.0, -1.0)),
}
"""silu', gelu' and gelu_tanh' are above 1 far out, softplus' below."""
