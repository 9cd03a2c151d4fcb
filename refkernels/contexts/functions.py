"""Functions of a ball: f(a) with its kernel's proven error, and how far f strays over a ± p.

    exp, expm1   e^a (e^p - 1) <= e^a p (1 + p)        for p <= 1: e^p - 1 - p <= p² there
    log, log1p   -log(1 - p/t) <= (p/t) / (1 - p/t)    t = a or 1 + a, for p < t
    tanh         p sup 1/cosh² <= p 4 e^(-2 m)         m = max(|a| - p, 0); at most p
    erf, erfc    p sup |slope| <= p (2/√pi) e^(-m²)
    sin, cos     p, at most 2
    sqrt         p / (√a + √(a - p)) >= √a - √(a - p), the larger side    for a - p >= 0
    rsqrt        (p / 2) (a - p)^(-3/2)                for a - p > 0

Beyond these conditions the spread is infinite. The values come from the double-double tiers of the
elementary oracles, whose errors are proven; no C library's is assumed.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.elementary_ref import erf_functions, functions
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Function
from refkernels.trig_ref import functions as trigonometric

Doubles = npt.NDArray[np.float64]
_MORE = 1.0 + 2.0**-38  # takes in the rounding of an argument of e^-y, y <= 2^10, and of p's terms
_ETA = 2.0**-1074
_TWO_OVER_ROOT_PI = 1.1283791670955128  # rounded up


@functools.cache
def _record(name: str) -> Function:
    rooms = (functions, erf_functions, trigonometric)
    return next(record for room in rooms for record in room.FUNCTIONS if record.name == name)


def value(name: str, a: Doubles) -> tuple[Doubles, Doubles]:
    """f(a) for exact a: mid, and how far it may be off."""
    enclosure = oracle.values(_record(name), np.asarray(a, np.float64))
    scale = np.clip(enclosure.scale, -4000, 4000).astype(np.int32)
    with np.errstate(all="ignore"):
        mid = np.ldexp(enclosure.hi, scale)
        spread = np.ldexp(np.abs(enclosure.lo) + enclosure.radius, scale)
    exact = (enclosure.lo == 0.0) & (enclosure.radius == 0.0) & (enclosure.scale == 0)
    return mid, np.where(exact, 0.0, spread + _ETA)


def ball(name: str, a: Doubles, p: Doubles) -> tuple[Doubles, Doubles]:
    """mid and spread of f over a ± p, before the caller rounds the spread outward."""
    with np.errstate(all="ignore"):
        if name == "sqrt":
            mid = np.sqrt(a)  # IEEE 754: correctly rounded
            root = mid.astype(np.float64)
            off = np.where(root * root == a, np.where(_short(root), 0.0, root), root) * 2.0**-53
        else:
            mid, off = value(name, a)
        if not np.any(p):
            return mid, off
        spread = _SPREADS[name](a, p, np.abs(mid) + off)
        return mid, off + np.where(p > 0.0, spread * _MORE, 0.0)


def _short(root: Doubles) -> Any:
    """Whether root² is exact: root has at most 26 bits and its square does not underflow."""
    split = root * (2.0**27 + 1.0)
    high = split - (split - root)
    return (high == root) & ((root == 0.0) | ((root > 2.0**-400) & (root < 2.0**400)))


def _decay(y: Doubles) -> Doubles:
    """At least e^-y for y >= 0."""
    mid, off = value("exp", -y)
    return mid + off


def _exponential(a: Doubles, p: Doubles, size: Doubles) -> Doubles:
    return np.where(p <= 1.0, size * (p * (1.0 + p)), np.inf)


def _logarithm(a: Doubles, p: Doubles) -> Doubles:
    ratio = p / (a * (1.0 - 2.0**-50))
    return np.where((a > 0.0) & (ratio < 1.0 - 2.0**-20), ratio / (1.0 - ratio), np.inf)


def _inner(a: Doubles, p: Doubles) -> Doubles:
    return np.maximum((np.abs(a) - p) * (1.0 - 2.0**-50), 0.0)


def _below(a: Doubles, p: Doubles) -> Doubles:
    return np.nextafter(a - p, -np.inf)


_SPREADS: dict[str, Any] = {
    "exp": _exponential,
    "expm1": lambda a, p, size: _exponential(a, p, size + 1.0),
    "log": lambda a, p, _: _logarithm(a, p),
    "log1p": lambda a, p, _: _logarithm((1.0 + a) * (1.0 - 2.0**-50), p),
    "tanh": lambda a, p, _: p * np.minimum(1.0, 4.0 * _decay(2.0 * _inner(a, p))),
    "erf": lambda a, p, _: p * (_TWO_OVER_ROOT_PI * _decay(_inner(a, p) ** 2)),
    "erfc": lambda a, p, _: p * (_TWO_OVER_ROOT_PI * _decay(_inner(a, p) ** 2)),
    "sin": lambda a, p, _: np.minimum(p, 2.0),
    "cos": lambda a, p, _: np.minimum(p, 2.0),
    "sqrt": lambda a, p, size: np.where(_below(a, p) >= 0.0, p / size, np.inf),
    "rsqrt": lambda a, p, _: np.where(
        _below(a, p) > 0.0, 0.5 * p / (_below(a, p) * np.sqrt(_below(a, p))), np.inf
    ),
}
