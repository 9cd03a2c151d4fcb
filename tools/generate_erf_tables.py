"""Writes refkernels/kernels/elementary/erf_tables.json: polynomials for erf and erfcx, from Arb.

    python tools/generate_erf_tables.py

erfcx(w) = exp(w^2) erfc(w), the smooth factor of every tail.

Tables, for double-doubles. About each node the Taylor series (Arb balls, TERMS terms, the remainder
by Cauchy's estimate) is written in Chebyshev polynomials, cut at the wanted degree and rounded.
The difference between the rounded polynomial and the series is then summed in Chebyshev polynomials
too: this proves the error over the whole interval, without sampling. The rounding errors of
Horner's rule are bounded step by step.

Single polynomials, for one float64 without a table: erfcx(w) = p(u) / (w + shift) with
u = A - B / (w + shift) in [-1, 1], p interpolated in Chebyshev points. The same difference of
series proves them, interval by interval.

The file keeps the proven bounds. Source of the economised series: Lanczos (1938),
doi:10.1002/sapm1938171123; of the variable u: Shepherd and Laframboise (1981),
doi:10.1090/S0025-5718-1981-0595058-X.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import comb, factorial, log2
from typing import Any

import flint
from flint import arb, arb_series
from table_file import PACKAGE, Table, write

TARGET = PACKAGE / "kernels" / "elementary" / "erf_tables.json"
PRECISION = 600
TERMS = 48
U = Fraction(1, 2**53)

ERFCX = {"rows": 97, "degree": 17, "pairs": 11}  # nodes: `node`, to 32
SERIES = {"degree": 15, "pairs": 12}  # erf(x)/x in s = x^2 <= 1/4
# name: (shift, lowest w, highest w, degree) of erfcx; (highest x^2, degree) of erf(x)/x
SMOOTH = {
    "FAST_TAIL": (4.0, 0.0, 12.125, 18),  # to 2^-200
    "FAST_UPPER": (3.5, 1.0, 6.0, 14),  # to 1 - 2^-54
}
EVEN = {"FAST_ERF": (1.0, 11)}
POINTS = 64

ABOUT = (
    f"Written by tools/generate_erf_tables.py (Arb, {PRECISION} bits). Polynomials, lowest degree "
    "first, high part before low; an ERROR is proven: approximation, rounded coefficients and "
    "Horner's rule together, relative to the function, for an exact argument."
)


def exact(value: Fraction | float | int) -> Any:
    value = Fraction(value)
    return arb(value.numerator) / value.denominator


def nearest(ball: Any) -> float:
    """The ball's midpoint rounded to float64, to nearest."""
    mantissa, exponent = ball.mid().man_exp()
    return float(Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def upper(ball: Any) -> Fraction:
    """A rational at or above the ball."""
    mantissa, exponent = ball.upper().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def lower(ball: Any) -> Fraction:
    return -upper(-ball)


def as_double_up(value: Fraction) -> float:
    # the slack also covers products of two errors
    return float(value * (1 + Fraction(1, 2**30)))


def constant(*coefficients: Any) -> Any:
    return arb_series(list(coefficients), TERMS)


def erfcx_series(node: Fraction) -> list[Any]:
    """Taylor coefficients of erfcx about the node."""
    w = constant(exact(node), 1)
    return [((w * w).exp() * w.erfc())[n] for n in range(TERMS)]


def even_series() -> list[Any]:
    """erf(x)/x = sum of these times x^2n."""
    scale = 2 / arb.pi().sqrt()
    return [scale * (-1) ** n / (arb(n).fac() * (2 * n + 1)) for n in range(TERMS)]


def to_chebyshev(monomials: list[Any]) -> list[Any]:
    """s^k = 2^(1-k) sum_j C(k, j) T_(k-2j), half of it for T_0."""
    chebyshev = [arb(0)] * len(monomials)
    for k, coefficient in enumerate(monomials):
        for j in range(k // 2 + 1):
            weight = Fraction(comb(k, j) * 2, 2**k)
            index = k - 2 * j
            chebyshev[index] += coefficient * exact(weight / 2 if index == 0 else weight)
    return chebyshev


def to_monomials(chebyshev: list[Any]) -> list[Any]:
    monomials = [arb(0)] * len(chebyshev)
    previous, last = [1], [0, 1]
    for n, coefficient in enumerate(chebyshev):
        if n > 1:
            doubled = [0, *(2 * c for c in last)]
            previous, last = (
                last,
                [c - (previous[i] if i < len(previous) else 0) for i, c in enumerate(doubled)],
            )
        basis = previous if n == 0 else last
        for i, c in enumerate(basis):
            monomials[i] += coefficient * c
    return monomials


def rounded(ball: Any, parts: int) -> list[float]:
    values = []
    for _ in range(parts):
        values.append(nearest(ball))
        ball -= exact(values[-1])
    return values


def economised(
    series: list[Any], r: Fraction, degree: int, pairs: int
) -> tuple[list[list[float]], Fraction]:
    """Coefficients in t, the first `pairs` as pairs, and a bound on |p - series| over |t| <= r."""
    scaled = [c * exact(r) ** k for k, c in enumerate(series)]
    cut = to_monomials(to_chebyshev(scaled)[: degree + 1])
    coefficients = [rounded(c / exact(r) ** k, 2 if k < pairs else 1) for k, c in enumerate(cut)]
    difference = list(scaled)
    for k, parts in enumerate(coefficients):
        difference[k] -= sum((exact(part) for part in parts), arb(0)) * exact(r) ** k
    return coefficients, sum((upper(abs(c)) for c in to_chebyshev(difference)), Fraction(0))


def horner_error(coefficients: list[list[float]], r: Fraction) -> Fraction:
    """A bound on the rounding errors of Horner's rule for |t| <= r: fl(p t + c) by one FMA while
    coefficients are single (u of the result, and u of p t for the low part of t that is left out),
    dd_mul and dd_add (5 u^2 of the product, 3.0001 u^2 of the sum) from there on."""
    size = error = Fraction(0)  # of the partial sum
    for parts in reversed(coefficients):
        product, carried = size * r, error * r
        size = product + abs(sum(map(Fraction, parts)))
        if len(parts) == 1:
            error = carried + U * (size + product)
        else:
            error = carried + 5 * U**2 * product + Fraction(30001, 10000) * U**2 * size
        size += error
    return error


def node(row: int) -> tuple[Fraction, Fraction]:
    """Node of a row of ERFCX and the largest |t| about it: 16 steps to each octave, from 2 on."""
    if row < 32:
        return Fraction(row, 16), Fraction(1, 32)
    octave, step = divmod(row - 32, 16)
    return Fraction(2**octave * (16 + step), 8), Fraction(2**octave, 16)


def erfcx_row(
    middle: Fraction, r: Fraction, degree: int, pairs: int
) -> tuple[list[list[float]], Fraction]:
    """One row and its relative error. The remainder of the series: |erfcx| <= 7 in the unit disc
    about any middle >= 0 (erfcx(z) = 2 exp(z^2) - erfcx(-z), |erfcx| <= 1 where Re z >= 0), and
    <= 1 in the disc of radius `middle`."""
    radius, largest = (Fraction(1), 7) if middle < 1 else (middle, 1)
    ratio = r / radius
    remainder = largest * ratio**TERMS / (1 - ratio)
    coefficients, approximation = economised(erfcx_series(middle), r, degree, pairs)
    w = exact(middle + r)
    least = lower((w * w).exp() * w.erfc())
    return coefficients, (approximation + remainder + horner_error(coefficients, r)) / least


def even_polynomial(top: Fraction, degree: int, pairs: int) -> tuple[list[list[float]], Fraction]:
    """Coefficients of erf(x)/x in s = x^2 over [0, top], and their error relative to the least
    value, without rounding errors. The alternating series leaves out less than its next term. The
    polynomial, economised about the middle, is moved to 0 before it is rounded."""
    r = middle = top / 2
    scaled = [c * exact(r) ** k for k, c in enumerate(moved(even_series(), middle))]
    cut = to_monomials(to_chebyshev(scaled)[: degree + 1])
    at_zero = moved([c / exact(r) ** k for k, c in enumerate(cut)], -middle)
    coefficients = [rounded(c, 2 if k < pairs else 1) for k, c in enumerate(at_zero)]
    known = [sum((exact(part) for part in parts), arb(0)) for parts in coefficients]
    difference = list(scaled)
    for k, c in enumerate(moved(known, middle)):
        difference[k] -= c * exact(r) ** k
    error = sum((upper(abs(c)) for c in to_chebyshev(difference)), Fraction(0))
    remainder = 2 * top**TERMS / factorial(TERMS)
    return coefficients, (error + remainder) / least_even(top)


def least_even(top: Fraction) -> Fraction:
    x = exact(top).sqrt()
    return lower(x.erf() / x)


def smooth_polynomial(
    shift: Fraction, low: Fraction, high: Fraction, degree: int
) -> tuple[list[list[float]], Fraction, Fraction]:
    """A, B and the coefficients of p; the error of p(u) / (w + shift) relative to erfcx; and how
    many times the rounding unit Horner's rule and the roundings of u add to that."""
    ends = 1 / (low + shift), 1 / (high + shift)
    b = 2 / (ends[0] - ends[1])
    [scale], [offset] = rounded(exact(b), 1), rounded(exact(b * ends[0] - 1), 1)
    a_exact, b_exact = Fraction(offset), Fraction(scale)
    pi = arb.pi()
    samples = []
    for k in range(POINTS):
        u = (pi * (2 * k + 1) / (2 * POINTS)).cos()
        w = exact(b_exact) / (exact(a_exact) - u) - exact(shift)
        samples.append((w * w).exp() * w.erfc() * (w + exact(shift)))
    chebyshev = []
    for j in range(degree + 1):
        terms = (samples[k] * (pi * j * (2 * k + 1) / (2 * POINTS)).cos() for k in range(POINTS))
        chebyshev.append(sum(terms, arb(0)) * (2 if j else 1) / POINTS)
    coefficients = [rounded(c, 1) for c in to_monomials(chebyshev)]
    flat = [Fraction(c[0]) for c in coefficients]
    error = units = Fraction(0)
    steps = 8 * int(high - low + 1)
    for k in range(steps):
        r = (high - low) / (2 * steps)
        middle = low + (2 * k + 1) * r
        error = max(error, smooth_error(flat, a_exact, b_exact, shift, middle, r))
        units = max(units, smooth_units(flat, a_exact, b_exact, shift, middle, r))
    return [[offset], [scale], *coefficients], error, units


def smooth_error(
    p: list[Fraction], a: Fraction, b: Fraction, shift: Fraction, middle: Fraction, r: Fraction
) -> Fraction:
    """|p(u)/(w + shift) - erfcx(w)| / erfcx(w) for |w - middle| <= r. The remainder is bounded by
    Cauchy in the unit disc, where 1/(w + shift) <= 1/(middle + shift - 1), which bounds |u| too."""
    inverse = 1 / constant(exact(middle + shift), 1)
    u = exact(a) - exact(b) * inverse
    value = constant(exact(p[-1]))
    for c in reversed(p[:-1]):
        value = value * u + exact(c)
    value = value * inverse
    known = erfcx_series(middle)
    scaled = [(value[n] - known[n]) * exact(r) ** n for n in range(TERMS)]
    size = 1 / (middle + shift - 1)
    reach = a + b * size
    largest = size * sum(abs(c) * reach**n for n, c in enumerate(p)) + 7
    remainder = largest * r**TERMS / (1 - r)
    total = sum((upper(abs(c)) for c in to_chebyshev(scaled)), Fraction(0)) + remainder
    w = exact(middle + r)
    return total / lower((w * w).exp() * w.erfc())


def smooth_units(
    p: list[Fraction], a: Fraction, b: Fraction, shift: Fraction, middle: Fraction, r: Fraction
) -> Fraction:
    """In units of the rounding unit, relative to p. u = fl(A - B fl(1 / fl(w + shift))) is off by
    5 B / (w + shift) + |u| (1.5 of w, the sum, the quotient, the product with B where there is no
    FMA), which counts with |p'| <= sum n |c_n| |u|^(n-1). The terms of p pass through at most n
    products, n roundings of powers of u and 5 sums (Estrin's scheme, below degree 32; in Horner's
    2 n in all, Higham 2002, section 5.1): (2 n + 6) |c_n u^n|. The quotient p / (w + shift): 1.5 of
    w, the sum, the quotient, the product: below 5."""
    ratios = [b / (middle + side * r + shift) for side in (-1, 1)]
    reach = max(abs(a - ratio) for ratio in ratios)
    slope = sum(n * abs(c) * reach ** (n - 1) for n, c in enumerate(p) if n)
    sums = sum((2 * n + 6) * abs(c) * reach**n for n, c in enumerate(p))
    w_low, w_high = exact(middle - r), exact(middle + r)
    least = lower((w_high * w_high).exp() * w_high.erfc() * (w_low + exact(shift)))
    return (slope * (5 * max(ratios) + reach) + sums) / least + 5


def moved(series: list[Any], middle: Fraction) -> list[Any]:
    """Taylor coefficients about the middle of the polynomial with these about 0."""
    m, length = exact(middle), len(series)
    return [
        sum((series[n] * comb(n, k) * m ** (n - k) for n in range(k, length)), arb(0))
        for k in range(length)
    ]


def table(name: str, rows: list[list[list[float]]], about: str) -> Table:
    return Table(name, about, [[part for parts in row for part in parts] for row in rows])


def constants() -> list[Table]:
    pi = arb.pi()
    cubic = (2 / pi).sqrt() * exact(Fraction(44715, 10**6))
    named: dict[str, tuple[str, Any]] = {
        "TWO_OVER_SQRT_PI": ("2 / sqrt(pi)", 2 / pi.sqrt()),
        "ONE_OVER_SQRT_PI": ("1 / sqrt(pi)", 1 / pi.sqrt()),
        "SQRT_HALF": ("sqrt(1/2)", exact(Fraction(1, 2)).sqrt()),
        "DENSITY": ("1 / sqrt(2 pi)", 1 / (2 * pi).sqrt()),
        "TANH_LINEAR": ("2 sqrt(2 / pi)", 2 * (2 / pi).sqrt()),
        "TANH_CUBIC": ("2 sqrt(2 / pi) 0.044715", 2 * cubic),
        "TANH_CUBIC_SLOPE": ("6 sqrt(2 / pi) 0.044715", 6 * cubic),
    }
    return [Table(name, about, [rounded(value, 2)]) for name, (about, value) in named.items()]


def bound(name: str, error: Fraction) -> Table:
    value = as_double_up(error)
    return Table(f"{name}_ERROR", f"2^{log2(value):.2f}", [[value]])


def build(rows: list[tuple[list[list[float]], Fraction]]) -> tuple[list[Any], Fraction]:
    return [row for row, _ in rows], max(error for _, error in rows)


def smooth_tables() -> Iterator[Table]:
    for name, (shift, low, high, degree) in SMOOTH.items():
        window = tuple(map(Fraction, (shift, low, high)))
        row, error, units = smooth_polynomial(*window, degree)
        about = f"A, B and p: erfcx(w) = p(u)/(w + {shift}), u = A - B/(w + {shift}), "
        yield table(name, [row], about + f"{low:g} <= w <= {high:g}.")
        yield Table(f"{name}_SHIFT", "What is added to w.", [[float(shift)]])
        yield bound(name, error + units * U)


def even_tables() -> Iterator[Table]:
    for name, (top, degree) in EVEN.items():
        row, error = even_polynomial(Fraction(top), degree, 0)
        terms = sum(
            (2 * n + 7) * abs(Fraction(c[0])) * Fraction(top) ** n for n, c in enumerate(row)
        )
        units = terms / least_even(Fraction(top))
        yield table(name, [row], f"erf(x)/x in x^2 <= {top}.")
        yield bound(name, error + units * U)


def double_double_tables() -> Iterator[Table]:
    rows, error = build(
        [erfcx_row(*node(k), ERFCX["degree"], ERFCX["pairs"]) for k in range(ERFCX["rows"])]
    )
    pairs = "the first {pairs} coefficients as high and low part."
    about = "erfcx(w) about k/16 up to 2, then 16 nodes an octave up to 32; "
    yield table("ERFCX", rows, about + pairs.format(**ERFCX))
    yield bound("ERFCX", error)
    top = Fraction(1, 4)
    row, error = even_polynomial(top, SERIES["degree"], SERIES["pairs"])
    yield table("ERF_SERIES", [row], f"erf(x)/x in x^2 <= {top}; " + pairs.format(**SERIES))
    yield bound("ERF_SERIES", error + horner_error(row, top) / least_even(top))


if __name__ == "__main__":
    flint.ctx.prec = PRECISION
    flint.ctx.cap = TERMS
    write(TARGET, ABOUT, [*constants(), *smooth_tables(), *even_tables(), *double_double_tables()])
