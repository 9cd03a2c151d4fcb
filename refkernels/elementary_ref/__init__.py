"""Exponentials, logarithms and functions made of them: certified values and gradients.

    exp(x), log(x), tanh(x), ... -> Enclosure        backward(name, dy, x) -> Enclosure of dy f'(x)
    forward_bound(name, x, format=...)               backward_bound(name, dy, x, format=...)
    forward_condition(name, x)                       backward_condition(name, dy, x)
    forward_plain(name, x, format=...)               backward_plain(name, dy, x, format=...)

Inputs of 32 bits and fewer go to a vectorised float64 kernel with a proven relative bound (`fast`
of `kernels.elementary`). Double-doubles come from two cores there, `exponential` and `logarithm`
(tables and Taylor series, with the error budgets). The elements that are still open, sinh and cosh
of float64 and all gradients are read from formulas (`ops.refine`; `gradients`).

Special values follow the limits; rsqrt(-0) and reciprocal(-0) are -inf and sqrt(-0) is -0 as in
IEEE 754, and slopes at -0 are those of the first forms dy/x, dy/(2 y), -dy y^3/2, ...: infinite,
with the sign that -0 gives them. A tail below 2^-10^8 is enclosed between zero and that number; the
exponential of an argument beyond 2^29 is a finite number beyond every format (`Enclosure`): every
rounding is certified.

All take x of any shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`), and
raise TypeError for other dtypes and ValueError for an unknown question. The stated radius is that
of the double-double tier (2^-72 where a result is beyond 2^±2000; exponentials of |x| > 2^29 have
none: they are enclosed between zero and 2^-10^8, or are a finite number beyond every format); the
float64 tier, for inputs of 32 bits and fewer, has 2^-49 or less, and 2^-44 of erf and those made of
it and of gelu_tanh. Tails of those below exp(-1400) have 2^-71.
"""

from functools import partial

from refkernels.elementary_ref.functions import FUNCTIONS
from refkernels.elementwise import bounds, oracle, plain
from refkernels.elementwise.ops import STANDARD, Family, named

_FAMILY = Family("elementary_ref", FUNCTIONS)
__all__ = ["OPS", *named(_FAMILY)]
OPS = _FAMILY.ops
backward = _FAMILY.by_name(oracle.backward)
backward_bound = _FAMILY.by_name(bounds.backward_bound)
backward_condition = _FAMILY.by_name(bounds.backward_condition)
backward_plain = _FAMILY.by_name(plain.backward_plain)
cases = _FAMILY.cases
forward_bound = _FAMILY.by_name(bounds.forward_bound)
forward_condition = _FAMILY.by_name(bounds.forward_condition)
forward_plain = _FAMILY.by_name(plain.forward_plain)
_like_exp = partial(_FAMILY.public, like="exp")
_HENDRYCKS = "Hendrycks and Gimpel (2016), arXiv:1606.08415"

exp = _FAMILY.public(
    "exp",
    "e^x, element by element",
    "Relative radius <= 2^-103 (2^-72 beyond 2^±2000); exp(±0) = 1 exactly, exp(-inf) = 0",
)
exp2 = _like_exp("exp2", "2^x", "Relative radius <= 2^-103; integers give the power of two itself")
expm1 = _like_exp(
    "expm1",
    "e^x - 1, accurate near 0",
    "Relative radius <= 2^-95; expm1(±0) = ±0, expm1(-inf) = -1",
)
log = _like_exp(
    "log",
    "log x, the natural logarithm",
    "Relative radius <= 2^-100, near 1 too; log(±0) = -inf, NaN below",
)
log2 = _like_exp(
    "log2", "log x / log 2", "Relative radius <= 2^-99; powers of two give their exponent itself"
)
log10 = _like_exp(
    "log10", "log x / log 10", "Relative radius <= 2^-99; log10(±0) = -inf, NaN below"
)
log1p = _like_exp(
    "log1p",
    "log(1 + x), accurate near 0",
    "Relative radius <= 2^-100; log1p(±0) = ±0, log1p(-1) = -inf, NaN below",
    f"{STANDARD} (logp1)",
)
sinh = _like_exp("sinh", "(e^x - e^-x) / 2", "Relative radius <= 2^-94; sinh(±0) = ±0")
cosh = _like_exp("cosh", "(e^x + e^-x) / 2", "Relative radius <= 2^-102; cosh(±0) = 1 exactly")
tanh = _like_exp(
    "tanh", "sinh x / cosh x", "Relative radius <= 2^-94; tanh(±0) = ±0, tanh(±inf) = ±1"
)
sigmoid = _like_exp(
    "sigmoid",
    "1 / (1 + e^-x)",
    "Relative radius <= 2^-101; sigmoid(-inf) = 0, sigmoid(inf) = 1",
    "SciPy documentation, `scipy.special.expit`",
)
silu = _like_exp(
    "silu",
    "x / (1 + e^-x)",
    "Relative radius <= 2^-101; silu(±0) = ±0, silu(-inf) = -0, its limit from below",
    "Elfwing, Uchibe and Doya (2018), arXiv:1702.03118",
)
softplus = _like_exp(
    "softplus",
    "log(1 + e^x)",
    "Relative radius <= 2^-99; softplus(-inf) = 0",
    "Dugas et al. (2001), NIPS 13",
)
sqrt = _like_exp(
    "sqrt",
    "√x, the square root",
    "Relative radius <= 2^-105, 0 where the root is a float64; sqrt(-0) = -0, NaN below",
    "IEEE 754-2019, section 5.4.1 (squareRoot)",
)
rsqrt = _like_exp(
    "rsqrt",
    "1 / √x",
    "Relative radius <= 2^-102; rsqrt(0) = inf, rsqrt(-0) = -inf, NaN below",
    f"{STANDARD} (rSqrt)",
)
reciprocal = _like_exp(
    "reciprocal",
    "1 / x",
    "Relative radius <= 2^-105, 0 where it is exact; reciprocal(±0) = ±inf",
    "IEEE 754-2019, section 5.4.1 (division)",
)
erf = _like_exp(
    "erf",
    "2/√π times the integral of e^(-t²) from 0 to x",
    "Relative radius <= 2^-101, of narrower inputs 2^-44; erf(±0) = ±0, erf(±inf) = ±1",
    "NIST DLMF, equation 7.2.1",
)
erfc = _like_exp(
    "erfc",
    "1 - erf(x), accurate however small it is",
    "Relative radius <= 2^-100, of narrower inputs 2^-44; erfc(±0) = 1, erfc(inf) = 0",
    "NIST DLMF, equation 7.2.2",
)
gelu = _like_exp(
    "gelu",
    "x Φ(x) = x erfc(-x / √2) / 2, Φ the distribution function of the normal distribution",
    "Relative radius <= 2^-100, of narrower inputs 2^-44; gelu(±0) = ±0, gelu(-inf) = -0",
    _HENDRYCKS,
)
gelu_tanh = _like_exp(
    "gelu_tanh",
    "x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), with the real √(2/π) and the decimal 0.044715",
    "Relative radius <= 2^-92, of narrower inputs 2^-44; gelu_tanh(±0) = ±0, gelu_tanh(-inf) = -0",
    _HENDRYCKS,
)
