"""Functions of one ball, for kernels: f(a) with its proven error, and f's variation over a ± p.

Each rule takes (a, p), p None where a is exact, and gives (mid, radius); see `ball_rules`. NumPy's
`Ball` and generated kernels run the same rules, so that their mids have the same bits. A radius of
infinity says that these float64 kernels cannot decide: `functions` then asks the double-double
tiers. Where an argument may be NaN nothing is known, however narrow the function's range.

Relative errors: 2^-51 of exp and rsqrt, 2^-50 of expm1, log and log1p, 2^-49 of tanh and erf, 2^-46
of erfc, and e = 2^-1074 absolutely where a result underflows. `kernels.elementary` (`fast`, `erf`)
proves them for float64 arguments, with these differences here; sqrt is correctly rounded.
  exp      n = rint(x / ln 2) has 11 bits up to |x| = 1400, so its reduction is as exact as up to
           700; 2^n in two factors, of which the second may round a subnormal. expm1 is exp beyond
           600, where 1 is 2^-865 of it.
  log      of a subnormal, log(2^54 x) with e - 54: errors of log m and of e ln 2 are relative to
           themselves.
  erf      x² is rounded: u of x², which moves erf(x) / x by 0.23 u for |x| < 1; beyond, the tail
           by x² u <= 0.16 u of erf x. Both fit between the proven 2^-49.04, 2^-49.9 and 2^-49.
  erfc     x² = s + t exactly, e^-t = 1 - t to 2^-90: two roundings more than 2^-46.4.
           erfc(12) = 2^-212.2: beyond 12 a ball around 0. erfc(0) = 1.

Spreads, x = p / a:
  exp      e^p - 1 <= p (1 + p) for p <= 1; expm1 the same, times |expm1 a| + 1. Where a + p is
           below -750, as in a logit that a huge number masks, e^(a + p) < 2^-1080
  log      -log(1 - x) <= x / (1 - x) <= x (1 + 2 x) for x <= 1/2; log1p with 1 + a for a
  tanh     p sup (1 - tanh²); |tanh| is at least |tanh a| - p everywhere in the ball
  erf      2 p / √pi
  erfc     2 p / √pi; for a >= 0 also p e^(2 a p) slope(a), and slope(a) = 2 e^(-a²) / √pi
           <= (a + √(a² + 2)) erfc a (Abramowitz and Stegun 7.1.13), e^(2 a p) <= 1.065
  sin cos  p
  atan     p, at most pi
  sqrt     √a - √(a - p) = √a x / (1 + √(1 - x)) <= √a x / (2 - x) <= √a x (1 + x) / 2 for x <= 1,
           √a x = p / √a: of an exact root nothing else would cover an x that underflows
  rsqrt    (1 - x)^(-1/2) - 1 <= x/2 + x² for x <= 1/2: 3/8 x² and then at most 5/8 x³
"""

import math
from typing import Any

from refkernels.arithmetic.eft import fma, two_prod
from refkernels.arithmetic.vectors import select
from refkernels.contexts.ball_rules import ETA, outward, rule
from refkernels.kernels.elementary.erf import erf_lower, erf_upper
from refkernels.kernels.elementary.erf_tail import fast_tail
from refkernels.kernels.elementary.exponential import (
    EXP_FAST_ERROR,
    EXPM1_FAST_ERROR,
    expm1_fast,
    expm1_reduced,
    power_of_two,
    reduce_fast,
)
from refkernels.kernels.elementary.logarithm import (
    LOG_FAST_ERROR,
    log1p_fast,
    log1p_reduced,
    split_fast,
)
from refkernels.kernels.elementary.tables import LN2_HIGH
from refkernels.kernels.trigonometric.inverse import arctangent
from refkernels.kernels.trigonometric.values import COS, SIN
from refkernels.kernels.trigonometric.values import value as sine_or_cosine

_MAGIC = 1.5 * 2.0**52
_UP = 1.0 + 2.0**-40  # exceeds the few roundings of a spread
_RSQRT_ERROR, _TANH_ERROR, _ERF_ERROR, _ERFC_ERROR = 2.0**-51, 2.0**-49, 2.0**-49, 2.0**-46
_TWO_OVER_ROOT_PI = 1.1283791670955128  # rounded up
_NORMAL, _LIFT = 2.0**-1022, 2.0**54
_FAR_TAIL = 2.0**-211
_WIDEST = 0.0625  # radius of a ball whose exponential is taken here


@rule
def _clamp(x: Any, low: Any, high: Any) -> Any:
    x = select(x > high, high, x)
    return select(x < low, low, x)


@rule
def _where_known(known: Any, radius: Any) -> Any:
    return select(known, outward(radius), math.inf)


@rule
def _relative(error: Any, value: Any, a: Any) -> Any:
    """The error of a value that may have underflowed; f(0) is exact."""
    return select(a == 0.0, 0.0, error * abs(value) + ETA)


@rule
def _exponential(a: Any) -> Any:
    t, r = reduce_fast(_clamp(a, -1400.0, 1400.0))
    n = t - _MAGIC
    half = fma(n, 0.5, _MAGIC)
    other_half = (n - (half - _MAGIC)) + _MAGIC
    return ((1.0 + expm1_reduced(r)) * power_of_two(half)) * power_of_two(other_half)


@rule
def exp(a: Any, p: Any) -> Any:
    value = _exponential(a)
    error = _relative(EXP_FAST_ERROR, value, a)
    known = abs(a) < math.inf
    if p is None:
        return value, _where_known(known, error)
    spread = (value + error) * (p * (1.0 + p)) * _UP
    far = a + p < -750.0
    return value, _where_known(known & ((p <= _WIDEST) | far), select(far, ETA, error + spread))


@rule
def expm1(a: Any, p: Any) -> Any:
    value = select(a > 600.0, _exponential(a), expm1_fast(_clamp(a, -600.0, 600.0)))
    error = _relative(EXPM1_FAST_ERROR, value, a)
    known = abs(a) < math.inf
    if p is None:
        return value, _where_known(known, select(a < -750.0, ETA, error))
    spread = (abs(value) + error + 1.0) * (p * (1.0 + p)) * _UP
    far = a + p < -750.0
    return value, _where_known(known & ((p <= _WIDEST) | far), select(far, ETA, error + spread))


@rule
def log(a: Any, p: Any) -> Any:
    low = a < _NORMAL
    e, f, _ = split_fast(a * select(low, _LIFT, 1.0))
    value = fma(e - select(low, 54.0, 0.0), LN2_HIGH, log1p_reduced(f))
    error = LOG_FAST_ERROR * abs(value)
    known = (a > 0.0) & (a < math.inf)
    if p is None:
        return value, _where_known(known, error)
    x = p / a * _UP
    return value, _where_known(known & (x <= 0.5), error + x * (1.0 + 2.0 * x) * _UP)


@rule
def log1p(a: Any, p: Any) -> Any:
    value = log1p_fast(a)
    error = _relative(LOG_FAST_ERROR, value, a)
    known = (a > -1.0) & (a < math.inf)
    if p is None:
        return value, _where_known(known, error)
    x = p / (1.0 + a) * _UP
    return value, _where_known(known & (x <= 0.5), error + x * (1.0 + 2.0 * x) * _UP)


@rule
def tanh(a: Any, p: Any) -> Any:
    m = expm1_fast(_clamp(2.0 * abs(a), 0.0, 150.0))
    size = m / (m + 2.0)
    value = select(a < 0.0, -size, size)
    error = _relative(_TANH_ERROR, value, a)
    known = abs(a) < math.inf
    if p is None:
        return value, _where_known(known, error)
    least = _clamp(size - (2.0 * _TANH_ERROR + p * _UP), 0.0, 1.0)
    spread = p * ((1.0 - least) * (1.0 + least)) * _UP
    return value, _where_known(known & (p < math.inf), error + select(spread < 2.0, spread, 2.0))


@rule
def _bell(p: Any) -> Any:
    spread = p * _TWO_OVER_ROOT_PI * _UP
    return select(spread < 2.0, spread, 2.0)


@rule
def erf(a: Any, p: Any) -> Any:
    value = select(abs(a) < 1.0, erf_lower(a), erf_upper(a))
    error = _relative(_ERF_ERROR, value, a)
    known = abs(a) < math.inf
    if p is None:
        return value, _where_known(known, error)
    return value, _where_known(known & (p < math.inf), error + _bell(p))


@rule
def erfc(a: Any, p: Any) -> Any:
    size = _clamp(abs(a), 0.0, 12.0)
    square, square_error = two_prod(size, size)
    tail = fast_tail(square, size)
    tail = select(a == 0.0, 1.0, fma(-square_error, tail, tail))
    tail = select(a > 12.0, 0.0, tail)
    value = select(a >= 0.0, tail, 2.0 - tail)
    error = select(a == 0.0, 0.0, fma(_ERFC_ERROR, value, select(a > 12.0, _FAR_TAIL, 0.0)))
    known = abs(a) < math.inf
    if p is None:
        return value, _where_known(known, error)
    near = p * 1.07 * (2.0 * size + 1.41422) * (value + error)
    near = select((a >= 0.0) & (p <= 0.03125) & (a * p <= 0.03125), near, 2.0)
    spread = _bell(p)
    return value, _where_known(known & (p < math.inf), error + select(near < spread, near, spread))


@rule
def sqrt(a: Any, p: Any) -> Any:
    root = math.sqrt(a)
    exact = (a == 0.0) | ((a > 2.0**-900) & (fma(root, root, -a) == 0.0))
    error = select(exact, 0.0, root * 2.0**-53)
    known = (a >= 0.0) & (a < math.inf)
    if p is None:
        return root, _where_known(known, error)
    x = select(p == 0.0, 0.0, p / a * _UP)
    spread = select(p == 0.0, 0.0, p / root * _UP * ((1.0 + x) * 0.5) + ETA)
    return root, _where_known(known & (x <= 1.0), error + spread)


@rule
def rsqrt(a: Any, p: Any) -> Any:
    value = 1.0 / math.sqrt(a)
    error = _RSQRT_ERROR * value
    known = (a > 0.0) & (a < math.inf)
    if p is None:
        return value, _where_known(known, error)
    x = p / a * _UP
    return value, _where_known(known & (x <= 0.5), error + value * (x * (0.5 + x)) * _UP)


@rule
def _turned(code: int, a: Any, p: Any) -> Any:
    if not abs(a) < math.inf:
        return a, math.inf
    value, error = _unscaled(a, *sine_or_cosine(code, a))
    if p is None:
        return value, _where_known(True, error)
    return value, _where_known(p < math.inf, error + (p if p < 2.0 else 2.0))


@rule
def _unscaled(a: Any, high: Any, low: Any, radius: Any, scale: Any) -> Any:
    """A value and its error. The sine and arctangent of |a| < 2^-250, a to |a|^3, have
    a scale; f(0) is exact."""
    scaled = scale != 0
    value = a if scaled else high
    error = abs(a) * 2.0**-100 if scaled else abs(low) + radius
    return value, error + ETA if a != 0.0 else 0.0


@rule
def sin(a: Any, p: Any) -> Any:
    return _turned(SIN, a, p)


@rule
def cos(a: Any, p: Any) -> Any:
    return _turned(COS, a, p)


@rule
def atan(a: Any, p: Any) -> Any:
    if not abs(a) < math.inf:
        return a, math.inf
    value, error = _unscaled(a, *arctangent(a))
    if p is None:
        return value, _where_known(True, error)
    return value, _where_known(p < math.inf, error + (p if p < 3.1416 else 3.1416))
