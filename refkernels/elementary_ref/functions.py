"""The exponential and logarithmic functions as `Function` records, and by their names.

All take x of any shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`), and
raise TypeError for other dtypes and ValueError for an unknown question. The stated radius is that
of the double-double tier (2^-72 where a result is beyond 2^±2000; exponentials of |x| > 2^29 have
none: they are enclosed between zero and 2^-10^8, or are a finite number beyond every format); the
float64 tier, for inputs of 32 bits and fewer, has 2^-49 or less.
"""

from functools import partial
from typing import Any

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.elementary_ref import conditions, exact, forms
from refkernels.elementary_ref.cases import cases_of
from refkernels.elementary_ref.definitions import DEFINITIONS
from refkernels.elementary_ref.invariants import INVARIANTS
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Function
from refkernels.kernels.elementary import exponentials, hyperbolic, logarithms, logistic, powers
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


def _function(name: str) -> Function:
    kernels, value, slope = _KERNELS[name]
    return Function(
        name=name,
        values=partial(kernels.fill, value),
        slopes=partial(kernels.fill, slope),
        exact_value=exact.ball(name),
        exact_slope=exact.ball(f"{name}'"),
        exact_gradient=exact.gradient(name),
        condition=conditions.FORWARD[name],
        slope_condition=conditions.SLOPE[name],
        cases=partial(cases_of, name),
        invariants=INVARIANTS[name],
        fast=FAST[name],
        slope_forms=forms.SLOPE_FORMS[name],
        primitives=forms.PRIMITIVES,
        definition=DEFINITIONS.get(name),
        **forms.held_to(name),
    )


FUNCTIONS = tuple(_function(name) for name in _KERNELS)
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
