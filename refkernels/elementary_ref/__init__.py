"""Exponentials, logarithms and functions made of them: certified values and gradients.

    exp(x), log(x), tanh(x), ... -> Enclosure        backward(name, dy, x) -> Enclosure of dy f'(x)
    forward_bound(name, x, format=...)               backward_bound(name, dy, x, format=...)
    forward_condition(name, x)                       backward_condition(name, dy, x)
    forward_plain(name, x, format=...)               backward_plain(name, dy, x, format=...)

Inputs of 32 bits and fewer go to a vectorised float64 kernel with a proven relative bound (`fast`
of `kernels.elementary`). Double-doubles come from two cores there, `exponential` and `logarithm`
(tables and Taylor series, with the error budgets). Arb and rational arithmetic decide the elements
that are still open (`exact`).

Special values follow the limits; rsqrt(-0) and reciprocal(-0) are -inf and sqrt(-0) is -0 as in
IEEE 754, and slopes at -0 are those of the formulas 1/x, 1/(2 sqrt x), ...: infinite, with the sign
that -0 gives them. A tail below 2^-10^8 is enclosed between zero and that number; the exponential
of an argument beyond 2^29 is a finite number beyond every format (`Enclosure`): every rounding is
certified.

All take x of any shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`), and
raise TypeError for other dtypes and ValueError for an unknown question. The stated radius is that
of the double-double tier (2^-72 where a result is beyond 2^±2000; exponentials of |x| > 2^29 have
none: they are enclosed between zero and 2^-10^8, or are a finite number beyond every format); the
float64 tier, for inputs of 32 bits and fewer, has 2^-49 or less, and 2^-44 of erf and those made of
it and of gelu_tanh. Tails of those below exp(-1400) have 2^-71.
"""

__kernels_of__ = ("kernels.elementary", "elementwise")

from typing import Any

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.elementary_ref.functions import FUNCTIONS
from refkernels.elementwise import oracle
from refkernels.elementwise.ops import Family

__all__ = [
    "OPS",
    "backward",
    "backward_bound",
    "backward_condition",
    "backward_plain",
    "cases",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "forward_bound",
    "forward_condition",
    "forward_plain",
    "gelu",
    "gelu_tanh",
    "log",
    "log1p",
    "log2",
    "log10",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "silu",
    "sinh",
    "softplus",
    "sqrt",
    "tanh",
]

_FAMILY = Family("elementary_ref", FUNCTIONS)
OPS = _FAMILY.ops
backward = _FAMILY.backward
backward_bound = _FAMILY.backward_bound
backward_condition = _FAMILY.backward_condition
backward_plain = _FAMILY.backward_plain
cases = _FAMILY.cases
forward_bound = _FAMILY.forward_bound
forward_condition = _FAMILY.forward_condition
forward_plain = _FAMILY.forward_plain
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
