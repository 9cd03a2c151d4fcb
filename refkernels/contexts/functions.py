"""Functions of a ball: f(a) with its kernel's proven error, and f's variation over a ± p.

    exp, expm1   e^a (e^p - 1), at most e^(a + p)      <= e^a p (1 + p) for p <= 1
    log, log1p   -log(1 - p/t) <= (p/t) / (1 - p/t)    t = a or 1 + a, for p < t
    tanh         p sup 1/cosh² <= p 4 e^(-2 m)         m = max(|a| - p, 0); at most p, 2
    erf, erfc    p sup |slope| <= p (2/√pi) e^(-m²); at most 2
    sin, cos     p, at most 2
    atan         p sup 1/(1 + x²) <= p / (1 + m²), at most pi
    sqrt         p / (√a + √(a - p)) = √a - √(a - p), the larger side    for a - p >= 0
    rsqrt        (p / 2) (a - p)^(-3/2)                for a - p > 0

Beyond these conditions the spread is infinite. The values come from the double-double tiers of the
elementary oracles, whose errors are proven; no C library's is assumed. `ball` asks the float64
kernels of `ball_functions` first, which have spreads of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.blocks import read_only
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.contexts import loading
from refkernels.contexts.ball_rules import FACTOR, LOST

if TYPE_CHECKING:
    from refkernels.kernels.real_function import RealFunction

Doubles = npt.NDArray[np.float64]
_MORE = 1.0 + 2.0**-38  # covers the roundings of y in e^-y, y <= 2^10, and of p's terms
_LESS = 1.0 - 2.0**-50
_ETA = 2.0**-1074
_TWO_OVER_ROOT_PI = 1.1283791670955128  # rounded up


def record(name: str) -> RealFunction:
    """The function of that name. Its kernels are imported when a value is needed: most questions
    about a formula, such as what an element depends on, need none."""
    from refkernels.kernels.functions import FUNCTIONS

    if name not in FUNCTIONS:
        raise ValueError(f"There is no function {name!r} in a formula.")
    return FUNCTIONS[name]


def allowance(name: str) -> float:
    """The library's limit of a function over that of most functions, at least 1."""
    from refkernels.kernels.real_function import LIMIT

    return max((record(name).limit or LIMIT) / LIMIT, 1.0)


def _values(name: str, a: Doubles) -> Enclosure:
    """f(a) for exact a."""
    from refkernels.kernels import answers

    return answers.values(record(name), a)


def rounded(name: str, a: npt.NDArray[Any], format: Format) -> npt.NDArray[Any]:
    """f(a) for exact a, rounded once to the format."""
    from refkernels.kernels import answers

    return answers.rounded(record(name), a, format)


def double_double(name: str, a: Doubles) -> tuple[Doubles, tuple[Doubles, Doubles], Any]:
    """f(a) for exact a: head, (mid, radius) of the tail, and where these are valid: not where the
    oracle gives f(a) a scale of its own, beyond float64's range."""
    enclosure = _values(name, np.asarray(a, np.float64))
    plain = enclosure.scale == 0
    return enclosure.hi, (np.asarray(enclosure.lo), enclosure.radius), plain


def value(name: str, a: Doubles) -> tuple[Doubles, Doubles]:
    """f(a) for exact a: mid, and how far it may be off."""
    enclosure = _values(name, np.asarray(a, np.float64))
    scale = np.clip(enclosure.scale, -4000, 4000).astype(np.int32)
    with np.errstate(all="ignore"):
        mid = np.ldexp(enclosure.hi, scale)
        spread = np.ldexp(np.abs(enclosure.lo) + enclosure.radius, scale)
    exact = (enclosure.lo == 0.0) & (enclosure.radius == 0.0) & (enclosure.scale == 0)
    return mid, np.where(exact, 0.0, spread + _ETA)


def ball(name: str, a: Doubles, p: Doubles) -> tuple[Doubles, Doubles]:
    """mid and radius of f over a ± p: by the float64 kernels that generated kernels call, and
    where these cannot decide, by the double-double tiers."""
    mid, radius = _quick(name, a, p)
    undecided = np.isinf(radius) & np.isfinite(a) & np.isfinite(p)
    if undecided.any():
        mid[undecided], spread = _sharp(name, a[undecided], np.broadcast_to(p, a.shape)[undecided])
        radius[undecided] = outward(spread)
    return mid, radius


def _quick(name: str, a: Doubles, p: Doubles) -> tuple[Doubles, Doubles]:
    """`ball_functions` for every element."""
    mid, radius = np.empty(a.shape), np.empty(a.shape)
    fill = loading.kernel(f"{name} of arrays", _FILL.format(name))
    columns = (np.ascontiguousarray(np.broadcast_to(part, a.shape)).reshape(-1) for part in (a, p))
    fill(*map(read_only, columns), mid.reshape(-1), radius.reshape(-1))
    return mid, radius


_FILL = """def kernel(a, p, mid, radius):
    full_width()
    distinct()
    for i in range(a.size):
        mid[i], radius[i] = functions.{}(a[i], p[i])
"""


def _sharp(name: str, a: Doubles, p: Doubles) -> tuple[Doubles, Doubles]:
    """The same from the double-double tiers, before the caller rounds the spread outward."""
    with np.errstate(all="ignore"):
        if name == "sqrt":
            mid = np.sqrt(a)  # IEEE 754: correctly rounded
            error = mid * 2.0**-53
        else:
            mid, error = value(name, a)
        if not np.any(p):
            return mid, error
        error = error + spread(name, a, np.zeros(()), p, np.abs(mid) + error)
        wide = (p > 2.0**-4) & np.isfinite(p)
        return _by_ends(a, p, mid, error, wide) if name == "exp" and np.any(wide) else (mid, error)


def _by_ends(a: Doubles, p: Doubles, mid: Doubles, error: Doubles, wide: Any) -> tuple[Any, Any]:
    """Around the middle of e^(a ± p): unlike a ball around e^a it has an inverse, for p <= 16."""
    (low, low_error), (high, high_error) = (
        value("exp", np.nextafter(np.where(wide, end, 0.0), away))
        for end, away in ((a - p, -np.inf), (a + p, np.inf))
    )
    low, high = np.maximum(low - low_error, 0.0) * _LESS, (high + high_error) / _LESS
    centre = low / 2 + high / 2
    reach = np.maximum(high - centre, centre - low) / _LESS
    return np.where(wide, centre, mid), np.where(wide, reach, error)


def _decay(y: Doubles) -> Doubles:
    """At least e^-y for y >= 0."""
    mid, error = value("exp", -y)
    return mid + error


def outward(radius: Any) -> Any:
    """At least the exact radius of these few operations; 0 stays 0, and NaN becomes infinite."""
    wide = np.asarray(radius * FACTOR + LOST)
    wide[radius <= 0.0] = 0.0
    if np.isnan(wide.sum()):  # of numbers >= 0, so only where one is NaN
        wide[np.isnan(wide)] = np.inf
    return wide


def spread(name: str, a: Doubles, rho: Doubles, p: Doubles, size: Doubles) -> Doubles:
    """sup |f(x + d) - f(x)| over |x - a| <= rho and |d| <= p, where size >= sup |f(x)|: at the x
    where f is steepest. 0 where p is 0."""
    low = np.where(rho > 0.0, np.nextafter(a - rho, -np.inf), a)
    inner = (np.abs(a) - np.where(rho > 0.0, (rho + p) / _LESS, p)) * _LESS
    wide = _SPREADS[name](low, p, size, np.maximum(inner, 0.0))
    wide = np.where(np.isnan(wide), np.inf, wide)
    if name in ("exp", "expm1") and np.any(p > 1.0):  # neither e^x nor e^(x + d) exceeds that
        mid, error = value("exp", np.nextafter((a + (rho + p) / _LESS), np.inf))
        wide = np.minimum(wide, np.where(np.isfinite(mid), mid + error, np.inf))
    wide = np.where(p < np.inf, wide, np.inf)  # nothing is known of an x that may not be a number
    return np.where(p > 0.0, wide * _MORE + _ETA, 0.0)


def _exponential(p: Doubles, size: Doubles) -> Doubles:
    growth = p * (1.0 + p)
    if np.any(p > 1.0):
        mid, error = value("expm1", np.minimum(p, 700.0))
        growth = np.where(p <= 1.0, growth, np.where(p <= 700.0, mid + error, np.inf))
    return size * growth


def _logarithm(low: Doubles, p: Doubles) -> Doubles:
    ratio = p / (low * _LESS)
    return np.where((low > 0.0) & (ratio < 1.0 - 2.0**-20), ratio / (1.0 - ratio), np.inf)


def _below(low: Doubles, p: Doubles) -> Doubles:
    return np.nextafter(low - p, -np.inf)


def _bell(p: Doubles, inner: Doubles) -> Doubles:
    return np.minimum(p * (_TWO_OVER_ROOT_PI * _decay(np.square(inner))), 2.0)


# From the lowest x, p, the size of f and the least |x| or |x + d|.
_SPREADS: dict[str, Any] = {
    "exp": lambda low, p, size, inner: _exponential(p, size),
    "expm1": lambda low, p, size, inner: _exponential(p, size + 1.0),
    "log": lambda low, p, size, inner: _logarithm(low, p),
    "log1p": lambda low, p, size, inner: _logarithm((1.0 + low) * _LESS, p),
    "tanh": lambda low, p, size, inner: np.minimum(
        p * np.minimum(1.0, 4.0 * _decay(2.0 * inner)), 2.0
    ),
    "erf": lambda low, p, size, inner: _bell(p, inner),
    "erfc": lambda low, p, size, inner: _bell(p, inner),
    "sin": lambda low, p, size, inner: np.minimum(p, 2.0),
    "cos": lambda low, p, size, inner: np.minimum(p, 2.0),
    "atan": lambda low, p, size, inner: np.minimum(p / ((1.0 + np.square(inner)) * _LESS), 3.1416),
    "sqrt": lambda low, p, size, inner: np.where(
        low - p >= 0.0, p / (np.sqrt(low) + np.sqrt(np.maximum(_below(low, p), 0.0))), np.inf
    ),
    "rsqrt": lambda low, p, size, inner: np.where(
        _below(low, p) > 0.0,
        (p / _below(low, p) / 2.0 + _ETA) / np.sqrt(_below(low, p)),  # whatever underflows
        np.inf,
    ),
}
