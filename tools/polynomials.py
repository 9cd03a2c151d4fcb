"""Near-minimax polynomials of the trigonometric functions, with proven errors over their intervals.

`tables()` is called by generate_trig_tables.py. A fit p(u) with rounded coefficients is compared
with the function's Taylor polynomial T about the middle of the interval, in Arb's balls: p - T is
a polynomial, which its Bernstein coefficients bound, and Cauchy's estimate bounds T - g.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flint
import mpmath
from table_file import Table, words

TERMS = 60  # of the Taylor polynomial
DEGREE = 300  # of the Bernstein form: the higher, the sharper


@dataclass(frozen=True)
class Target:
    """The function g(u), approximated by p(u) with `coefficients` coefficients on [0, end].

    |g| <= bound on the disc of radius `radius` about end / 2.
    """

    name: str
    comment: str
    g: Callable[[Any, Any], Any]  # (u, a module or series type's functions) -> g(u)
    end: str
    radius: str
    bound: int
    coefficients: int


def sine(u: Any, pi: Any, sqrt: Any, f: Any) -> Any:
    root = sqrt(u)
    return f.sin(root * (pi / 2)) / root


def cosine(u: Any, pi: Any, sqrt: Any, f: Any) -> Any:
    return (f.cos(sqrt(u) * (pi / 2)) - 1) / u


def arc_sine(u: Any, pi: Any, sqrt: Any, f: Any) -> Any:
    root = sqrt(u)
    return (f.asin(root) / root - 1) / u


def arc_tangent(u: Any, pi: Any, sqrt: Any, f: Any) -> Any:
    root = sqrt(u)
    return (f.atan(root) / root - 1) / u


# Bounds on the discs. sine: (pi/2) cosh(pi/2 sqrt(2.2)) < 9; cosine: (pi/2)^2 / 2 cosh(...) < 8.
# asin: its series in u has positive coefficients, at u = 0.93 it is (asin(.965)/.965 - 1)/.93 < 1.
# atan: integral of v^2 / (1 + u v^2) over [0, 1], Re(1 + u v^2) >= 0.1: < 4.
TARGETS = (
    Target("SINE", "sin(pi/2 f) = f p(f^2), |f| <= 1/2", sine, "0.25001", "2", 9, 7),
    Target("COSINE", "cos(pi/2 f) = 1 + f^2 p(f^2), |f| <= 1/2", cosine, "0.25001", "2", 8, 6),
    Target("ASIN", "asin(s) = s + s^3 p(s^2), |s| <= 1/2", arc_sine, "0.25", "0.8", 1, 13),
    Target("ATAN", "atan(t) = t + t^3 p(t^2), |t| <= 1", arc_tangent, "1", "1.4", 4, 20),
)


class Series:
    """The functions of a flint.arb_series, by mpmath's names."""

    sin = staticmethod(lambda s: s.sin())
    cos = staticmethod(lambda s: s.cos())
    asin = staticmethod(lambda s: s.asin())
    atan = staticmethod(lambda s: s.atan())


def fit(target: Target) -> list[float]:
    """The coefficients of the fit, constant term first, each rounded to float64."""

    def g(u: Any) -> Any:
        return target.g(mpmath.mpf(u), mpmath.pi, mpmath.sqrt, mpmath)

    with mpmath.workprec(300):
        interval = [mpmath.mpf("1e-40"), mpmath.mpf(target.end)]
        fitted = mpmath.chebyfit(g, interval, target.coefficients)
    return [float(c) for c in reversed(fitted)]


def error(target: Target, coefficients: list[float]) -> Any:
    """A proven bound on |p(u) - g(u)| for 0 <= u <= end, as a flint.arb."""
    flint.ctx.prec, flint.ctx.cap = 2000, TERMS
    half = flint.arb(target.end) / 2
    near = flint.arb_series([half, 1])
    series = target.g(near, flint.arb.pi(), lambda s: s.sqrt(), Series)
    taylor = flint.arb_poly([series[k] for k in range(TERMS - 2)])
    p = flint.arb_poly([flint.arb(c) for c in coefficients])(flint.arb_poly([half, 1]))
    difference = (p - taylor)(flint.arb_poly([-half, 2 * half]))  # in v, 0 <= v <= 1
    parts = [flint.arb(0)]
    for j in range(DEGREE + 1):
        b, weight = flint.arb(0), flint.arb(1)
        for k in range(min(j, difference.degree()) + 1):
            b += weight * difference[k]
            weight = weight * (j - k) / (DEGREE - k)
        parts.append(abs(b).upper())
    ratio = half / flint.arb(target.radius)
    remainder = target.bound * ratio ** (TERMS - 2) / (1 - ratio)
    return max(parts) + remainder


def tables() -> list[Table]:
    """The fits, constant term first."""
    fits = []
    for target in TARGETS:
        coefficients = fit(target)
        bound = mpmath.log(mpmath.mpf(float(error(target, coefficients).upper())), 2)
        proven = f"|p - exact| <= 2^{float(mpmath.ceil(10 * bound) / 10):.1f}"
        fits.append(Table(target.name, f"{target.comment}; {proven}", [[c] for c in coefficients]))
    return fits


if __name__ == "__main__":
    for table in tables():
        print(table.name, table.about, *(words(row) for row in table.rows), sep="\n")
