"""Correct roundings that share no code with the oracle: MPFR's."""

from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np

from refkernels.arithmetic.formats import Format

ERROR_FUNCTIONS = ("erf", "erfc", "gelu", "gelu_tanh")
NAMES = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh"),
    *("sigmoid", "silu", "softplus", "sqrt", "rsqrt", "reciprocal"),
    *ERROR_FUNCTIONS,
)
_MPFR: dict[str, Callable[[Any], Any]] = {
    "exp": gmpy2.exp,
    "exp2": gmpy2.exp2,
    "expm1": gmpy2.expm1,
    "log": gmpy2.log,
    "log2": gmpy2.log2,
    "log10": gmpy2.log10,
    "log1p": gmpy2.log1p,
    "sinh": gmpy2.sinh,
    "cosh": gmpy2.cosh,
    "tanh": gmpy2.tanh,
    "sqrt": gmpy2.sqrt,
    "reciprocal": lambda x: 1 / x,
    "erf": gmpy2.erf,
    "erfc": gmpy2.erfc,
}
_COMPOSED: dict[str, Callable[[Any], Any]] = {
    "rsqrt": lambda x: 1 / gmpy2.sqrt(x),  # rec_sqrt(-0) is +inf, IEEE 754's rSqrt(-0) is not
    "sigmoid": lambda x: 1 / (1 + gmpy2.exp(-x)),
    "silu": lambda x: x / (1 + gmpy2.exp(-x)),
    "softplus": lambda x: gmpy2.log1p(gmpy2.exp(x)) if x < 0 else x + gmpy2.log1p(gmpy2.exp(-x)),
    "gelu": lambda x: x * gmpy2.erfc(-x / gmpy2.sqrt(gmpy2.mpfr(2))) / 2,
    "gelu_tanh": lambda x: x / (1 + gmpy2.exp(-_argument(x))),
}


def _argument(x: Any) -> Any:
    """gelu_tanh's 2 sqrt(2/pi) (x + 0.044715 x^3)."""
    return 2 * gmpy2.sqrt(2 / gmpy2.const_pi()) * (x + gmpy2.mpfr(44715) / 10**6 * x * x * x)


def mpfr_context(format: Format) -> Any:
    """MPFR arithmetic in the format, subnormals included."""
    return gmpy2.context(
        precision=format.p,
        emax=format.emax + 1,
        emin=format.emin - format.p + 2,
        subnormalize=True,
    )


def rounded(name: str, x: np.ndarray, format: Format) -> np.ndarray:
    """f(x) for finite float64 x, correctly rounded to the format by MPFR, as float64."""
    arguments = [gmpy2.mpfr(value, 53) for value in x.tolist()]
    if name in _COMPOSED:
        with gmpy2.context(precision=250):
            arguments = [_COMPOSED[name](argument) for argument in arguments]
        function: Callable[[Any], Any] = lambda y: +y  # noqa: E731
    else:
        function = _MPFR[name]
    with mpfr_context(format):
        return np.array([float(function(argument)) for argument in arguments])
