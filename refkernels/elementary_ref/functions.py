"""The elementary functions as `Function` records, and by their names.

All take x of any shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`), and
raise TypeError for other dtypes and ValueError for an unknown question. The stated radius is that
of the double-double tier (2^-72 where a result is beyond 2^±2000; exponentials of |x| > 2^29 have
none: they are enclosed between zero and 2^-10^8, or are a finite number beyond every format); the
float64 tier, for inputs of 32 bits and fewer, has 2^-49 or less, and 2^-44 of erf and those made of
it and of gelu_tanh. Tails of those below exp(-1400) have 2^-71.
"""

from functools import partial
from typing import Any

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.question import Certify
from refkernels.elementary_ref import conditions, exact, forms
from refkernels.elementary_ref.cases import cases_of
from refkernels.elementary_ref.definitions import DEFINITIONS
from refkernels.elementary_ref.invariants import INVARIANTS
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Filler, Function
from refkernels.kernels.elementary import (
    erf as erf_kernels,
)
from refkernels.kernels.elementary import exponentials, hyperbolic, logarithms, logistic, powers
from refkernels.kernels.elementary import gelu as gelu_kernels
from refkernels.kernels.elementary import gelu_tanh as gelu_tanh_kernels
from refkernels.kernels.elementary.fast import FAST

# name: the module of its kernels, and the codes of f and f' there.
_KERNELS: dict[str, tuple[Any, int, int]] = {
    "exp": (exponentials, exponentials.EXP, exponentials.EXP),
    "exp2": (exponentials, exponentials.EXP2, exponentials.EXP2_SLOPE),
    "expm1": (exponentials, exponentials.EXPM1, exponentials.EXP),
    "log": (logarithms, logarithms.LOG, logarithms.LOG_SLOPE),
    "log2": (logarithms, logarithms.LOG2, logarithms.LOG2_SLOPE),
    "log10": (logarithms, logarithms.LOG10, logarithms.LOG10_SLOPE),
    "log1p": (logarithms, logarithms.LOG1P, logarithms.LOG1P_SLOPE),
    "sinh": (hyperbolic, hyperbolic.SINH, hyperbolic.COSH),
    "cosh": (hyperbolic, hyperbolic.COSH, hyperbolic.SINH),
    "tanh": (hyperbolic, hyperbolic.TANH, hyperbolic.TANH_SLOPE),
    "sigmoid": (logistic, logistic.SIGMOID, logistic.SIGMOID_SLOPE),
    "silu": (logistic, logistic.SILU, logistic.SILU_SLOPE),
    "softplus": (logistic, logistic.SOFTPLUS, logistic.SIGMOID),
    "sqrt": (powers, powers.SQRT, powers.SQRT_SLOPE),
    "rsqrt": (powers, powers.RSQRT, powers.RSQRT_SLOPE),
    "reciprocal": (powers, powers.RECIPROCAL, powers.RECIPROCAL_SLOPE),
}
# The same of kernels by name, and the bound of the fast one.
_NAMED: dict[str, tuple[Any, float]] = {
    "erf": (erf_kernels, erf_kernels.FAST_ERF_BOUND),
    "erfc": (erf_kernels, erf_kernels.FAST_ERFC_BOUND),
    "gelu": (gelu_kernels, gelu_kernels.FAST_GELU_BOUND),
    "gelu_tanh": (gelu_tanh_kernels, gelu_tanh_kernels.FAST_GELU_TANH_BOUND),
}


def _tiers(name: str) -> tuple[Fast, Filler, Filler]:
    """The float64 tier, and the double-doubles of values and slopes."""
    if name in _NAMED:
        kernels, error = _NAMED[name]
        fast, *fillers = (
            getattr(kernels, f"{name}_{part}") for part in ("fast", "values", "slopes")
        )
        return Fast(fast, error), *fillers
    kernels, value, slope = _KERNELS[name]
    return FAST[name], partial(kernels.fill, value), partial(kernels.fill, slope)


def _function(name: str) -> Function:
    fast, values, slopes = _tiers(name)
    return Function(
        name=name,
        fast=fast,
        values=values,
        slopes=slopes,
        exact_value=exact.ball(name),
        exact_slope=exact.ball(f"{name}'"),
        exact_gradient=exact.gradient(name),
        condition=conditions.FORWARD[name],
        slope_condition=conditions.SLOPE[name],
        cases=partial(cases_of, name),
        invariants=INVARIANTS[name],
        slope_forms=forms.SLOPE_FORMS[name],
        primitives=forms.PRIMITIVES,
        definition=DEFINITIONS.get(name),
        **forms.held_to(name),
    )


FUNCTIONS = tuple(_function(name) for name in (*_KERNELS, *_NAMED))
_BY_NAME = {function.name: function for function in FUNCTIONS}


def exp(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = e^x, element by element.

    x           float16, bfloat16, float32 or float64, of any shape (NumPy, DLPack, `__array__`)
    certify     the question (`refkernels.Enclosure`)

    Relative radius <= 2^-103 for float64 (2^-72 beyond 2^±2000), 2^-49 for narrower inputs unless
    the question needs more; exp(±0) = 1 exactly, exp(-inf) = 0. The bound of kernels is
    `forward_bound`: a library limit in ulp, or that of the function's forms.
    Raises TypeError for other dtypes, ValueError for an unknown question.
    Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_BY_NAME["exp"], x, certify)


def exp2(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = 2^x.

    Relative radius <= 2^-103; integers give the power of two itself.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_BY_NAME["exp2"], x, certify)


def expm1(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = e^x - 1, accurate near 0.

    Relative radius <= 2^-95; expm1(±0) = ±0, expm1(-inf) = -1.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_BY_NAME["expm1"], x, certify)


def log(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = log x, the natural logarithm.

    Relative radius <= 2^-100, near 1 too; log(±0) = -inf, NaN below.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_BY_NAME["log"], x, certify)


def log2(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = log x / log 2.

    Relative radius <= 2^-99; powers of two give their exponent itself.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_BY_NAME["log2"], x, certify)


def log10(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = log x / log 10.

    Relative radius <= 2^-99; log10(±0) = -inf, NaN below.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_BY_NAME["log10"], x, certify)


def log1p(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = log(1 + x), accurate near 0.

    Relative radius <= 2^-100; log1p(±0) = ±0, log1p(-1) = -inf, NaN below.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1 (logp1).
    """
    return oracle.forward(_BY_NAME["log1p"], x, certify)


def sinh(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = (e^x - e^-x) / 2.

    Relative radius <= 2^-94; sinh(±0) = ±0.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_BY_NAME["sinh"], x, certify)


def cosh(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = (e^x + e^-x) / 2.

    Relative radius <= 2^-102; cosh(±0) = 1 exactly.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_BY_NAME["cosh"], x, certify)


def tanh(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = sinh x / cosh x.

    Relative radius <= 2^-94; tanh(±0) = ±0, tanh(±inf) = ±1.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1.
    """
    return oracle.forward(_BY_NAME["tanh"], x, certify)


def sigmoid(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = 1 / (1 + e^-x).

    Relative radius <= 2^-101; sigmoid(-inf) = 0, sigmoid(inf) = 1.
    Otherwise as `exp`. Source: SciPy documentation, `scipy.special.expit`.
    """
    return oracle.forward(_BY_NAME["sigmoid"], x, certify)


def silu(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = x / (1 + e^-x).

    Relative radius <= 2^-101; silu(±0) = ±0, silu(-inf) = -0, its limit from below.
    Otherwise as `exp`. Source: Elfwing, Uchibe and Doya (2018), arXiv:1702.03118.
    """
    return oracle.forward(_BY_NAME["silu"], x, certify)


def softplus(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = log(1 + e^x).

    Relative radius <= 2^-99; softplus(-inf) = 0.
    Otherwise as `exp`. Source: Dugas et al. (2001), "Incorporating second-order functional
    knowledge for better option pricing", NIPS 13.
    """
    return oracle.forward(_BY_NAME["softplus"], x, certify)


def sqrt(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = √x, the square root.

    Relative radius <= 2^-105, 0 where the root is a float64; sqrt(-0) = -0, NaN below.
    Otherwise as `exp`. Source: IEEE 754-2019, section 5.4.1 (squareRoot).
    """
    return oracle.forward(_BY_NAME["sqrt"], x, certify)


def rsqrt(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = 1 / √x.

    Relative radius <= 2^-102; rsqrt(0) = inf, rsqrt(-0) = -inf, NaN below.
    Otherwise as `exp`. Source: IEEE 754-2019, section 9.2.1 (rSqrt).
    """
    return oracle.forward(_BY_NAME["rsqrt"], x, certify)


def reciprocal(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = 1 / x.

    Relative radius <= 2^-105, 0 where it is exact; reciprocal(±0) = ±inf.
    Otherwise as `exp`. Source: IEEE 754-2019, section 5.4.1 (division).
    """
    return oracle.forward(_BY_NAME["reciprocal"], x, certify)


def erf(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = 2/√π times the integral of e^(-t²) from 0 to x.

    Relative radius <= 2^-101 for float64, 2^-44 for narrower inputs; erf(±0) = ±0, erf(±inf) = ±1.
    Otherwise as `exp`. Source: NIST DLMF, equation 7.2.1.
    """
    return oracle.forward(_BY_NAME["erf"], x, certify)


def erfc(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = 1 - erf(x), accurate however small it is.

    Relative radius <= 2^-100 for float64, 2^-44 for narrower inputs;
    erfc(±0) = 1, erfc(inf) = 0, erfc(-inf) = 2. Otherwise as `exp`.
    Source: NIST DLMF, equation 7.2.2.
    """
    return oracle.forward(_BY_NAME["erfc"], x, certify)


def gelu(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = x Φ(x) = x erfc(-x / √2) / 2, Φ the distribution function of the normal distribution.

    Relative radius <= 2^-100 for float64, 2^-44 for narrower inputs;
    gelu(±0) = ±0, gelu(-inf) = -0, its limit from below. Otherwise as `exp`.
    Source: Hendrycks and Gimpel (2016), arXiv:1606.08415.
    """
    return oracle.forward(_BY_NAME["gelu"], x, certify)


def gelu_tanh(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), gelu's usual approximation, as a function of
    its own: √(2/π) is the real number and 0.044715 the decimal fraction, not their floats.

    Relative radius <= 2^-92 for float64, 2^-44 for narrower inputs;
    gelu_tanh(±0) = ±0, gelu_tanh(-inf) = -0, its limit from below. Otherwise as `exp`.
    Source: Hendrycks and Gimpel (2016), arXiv:1606.08415.
    """
    return oracle.forward(_BY_NAME["gelu_tanh"], x, certify)
