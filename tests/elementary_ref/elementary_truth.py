"""Truths that share no code with the oracle: Arb's balls for enclosures, MPFR for roundings."""

from collections.abc import Callable
from typing import Any

import erf_truth
import flint
import gmpy2
import numpy as np

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format

NAMES = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh"),
    *("sigmoid", "silu", "softplus", "sqrt", "rsqrt", "reciprocal"),
    *erf_truth.NAMES,
)
_ARB: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: x.exp(),
    "exp2": lambda x: (x * flint.arb(2).log()).exp(),
    "expm1": lambda x: x.expm1(),
    "log": lambda x: x.log(),
    "log2": lambda x: x.log() / flint.arb(2).log(),
    "log10": lambda x: x.log() / flint.arb(10).log(),
    "log1p": lambda x: x.log1p(),
    "sinh": lambda x: x.sinh(),
    "cosh": lambda x: x.cosh(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: ((x / 2).tanh() + 1) / 2 if x > 0 else x.exp() / (1 + x.exp()),
    "silu": lambda x: x / (1 + (-x).exp()),
    "softplus": lambda x: x + (-x).exp().log1p() if x > 0 else x.exp().log1p(),
    "sqrt": lambda x: x.sqrt(),
    "rsqrt": lambda x: 1 / x.sqrt(),
    "reciprocal": lambda x: 1 / x,
}
_ARB_SLOPES: dict[str, Callable[[Any], Any]] = {
    "exp": _ARB["exp"],
    "exp2": lambda x: _ARB["exp2"](x) * flint.arb(2).log(),
    "expm1": _ARB["exp"],
    "log": lambda x: 1 / x,
    "log2": lambda x: 1 / (x * flint.arb(2).log()),
    "log10": lambda x: 1 / (x * flint.arb(10).log()),
    "log1p": lambda x: 1 / (1 + x),
    "sinh": lambda x: x.cosh(),
    "cosh": lambda x: x.sinh(),
    "tanh": lambda x: 1 / x.cosh() ** 2,
    "sigmoid": lambda x: 1 / (2 * (x / 2).cosh()) ** 2,
    "silu": lambda x: (1 + (1 + x) * (-x).exp()) / (1 + (-x).exp()) ** 2,
    "softplus": _ARB["sigmoid"],
    "sqrt": lambda x: 1 / (2 * x.sqrt()),
    "rsqrt": lambda x: -1 / (2 * x * x.sqrt()),
    "reciprocal": lambda x: -1 / (x * x),
}


def forward(name: str, x: float, bits: int = 2500) -> Any:
    """f(x) as a ball."""
    with flint.ctx.workprec(bits):
        return _ARB[name](flint.arb(x)) if name in _ARB else erf_truth.forward(name, x)


def slope(name: str, x: float, bits: int = 2500) -> Any:
    """f'(x) as a ball."""
    with flint.ctx.workprec(bits):
        return _ARB_SLOPES[name](flint.arb(x)) if name in _ARB else erf_truth.slope(name, x)


def holds(enclosure: Enclosure, i: int, truth: Any, bits: int = 2500) -> bool:
    """Whether the interval holds the true ball, all of it but what the ball itself is wide."""
    with flint.ctx.workprec(bits):
        power = flint.arb(2) ** int(enclosure.scale[i])
        hi, lo, radius = (
            flint.arb(float(part[i])) * power
            for part in (enclosure.hi, enclosure.lo, enclosure.radius)
        )
        distance = abs(truth.mid() - (hi + lo))
        return bool(distance <= radius + 2 * truth.rad() + abs(truth.mid()) * power_of(-bits + 8))


def power_of(exponent: int) -> Any:
    return flint.arb(2) ** exponent


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
