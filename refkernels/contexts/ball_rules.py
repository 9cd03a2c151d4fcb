"""The rules of `Ball` for one element: what generated kernels are made of.

A rule takes (mid, radius) of each operand and gives the result's; a radius of None is that of an
exact number, and nothing is compiled for it. mid is the same expression as in `ball`, so it has the
same bits; radius has the same proof, and only its roundings differ: `outward` covers them here as
there.

Special values. `ball` puts (0, inf) where an element is not finite. Here the element stays, and a
pair whose mid or radius is not finite says nothing: `settled` puts (0, inf) at the end. Every rule
preserves this: sums and products of an operand that is not finite are not finite, and a rule that
divides by an operand, compares it or takes a function of it tests it. A NaN is not a radius, but
`outward` lets it pass, since it tests for > 0.

A subnormal is added, never an operand of an fma: there Intel's processors take 20 times as long.
U |mid| is exact unless it underflows, and then ETA exceeds what it loses.

  `ends`, `upper`   m + r <= e + 2 u |e| + η for e = fl(m + r): the next number above e at least
  `fold`            in halves, so that a term takes part in h additions at most: error h u Σ|a|
"""

import math
from typing import Any

from refkernels.arithmetic.eft import fma
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import select

U = 2.0**-53
ETA = 2.0**-1074  # the smallest subnormal: any one underflow loses less
FACTOR = 1.0 + 2.0**-47
LOST = 2.0**-1068
SPAN = 1024
"""Terms that a sum folds at a time; then it folds their sums."""
_MORE, _LESS = 1.0 + 2.0**-50, 1.0 - 2.0**-50
_LEAST_INVERSE = 2.0**-1000

rule = inner(forceinline=True)
"""Only kernels call it, and a loop with a call in it would not vectorise."""


@rule
def outward(radius: Any) -> Any:
    """At least the exact radius of these few operations; 0 stays 0 and NaN stays NaN."""
    return radius * FACTOR + select(radius > 0.0, LOST, 0.0)


@rule
def settled(mid: Any, radius: Any) -> Any:
    """The pair as `BallValue` has it."""
    known = (abs(mid) < math.inf) & (_or_zero(radius) < math.inf)
    return select(known, mid, 0.0), select(known, _or_zero(radius), math.inf)


@rule
def _or_zero(radius: Any) -> Any:
    return 0.0 if radius is None else radius


@rule
def _exact_zero(mid: Any, radius: Any) -> Any:
    return mid == 0.0 if radius is None else (mid == 0.0) & (radius == 0.0)


@rule
def _defined(radius: Any) -> Any:
    """0 times what is not defined is not defined."""
    return _or_zero(radius) < math.inf


@rule
def add(a: Any, p: Any, b: Any, q: Any) -> Any:
    mid = a + b
    lost = U * abs(mid)
    if p is not None:
        lost = p + lost
    if q is not None:
        lost = q + lost
    return mid, outward(lost)


@rule
def multiply(a: Any, p: Any, b: Any, q: Any) -> Any:
    mid = a * b
    lost = U * abs(mid) + ETA
    if p is not None:
        lost = fma(abs(b), p, lost)
    if q is not None:
        lost = fma(abs(a) if p is None else abs(a) + p, q, lost)
    zero = (_exact_zero(a, p) & _defined(q)) | (_exact_zero(b, q) & _defined(p))
    return mid, select(zero, 0.0, outward(lost))


@rule
def divide(a: Any, p: Any, b: Any, q: Any) -> Any:
    """1 / least is rounded up; a divisor that is constant in a row is inverted once."""
    mid = a / b
    lost = U * abs(mid) + ETA
    least = abs(b)
    if q is not None:
        least = (least - q) * _LESS - select(q > 0.0, ETA, 0.0)
        above = (abs(mid) * _MORE + ETA) * q + select(q > 0.0, ETA, 0.0)
        lost = fma(above + _or_zero(p), _inverse(least), lost)
    elif p is not None:
        lost = fma(p, _inverse(least), lost)
    known = (least > 0.0) & (abs(b) < math.inf)
    return mid, select(known, select(_exact_zero(a, p), 0.0, outward(lost)), math.inf)


@rule
def _inverse(least: Any) -> Any:
    inverse = _MORE / least
    return select(inverse > _LEAST_INVERSE, inverse, _LEAST_INVERSE)


@rule
def square(a: Any, p: Any) -> Any:
    mid, radius = multiply(a, p, a, p)
    if p is None:
        return mid, radius
    half = ((abs(a) + p) * (abs(a) + p) * _MORE + LOST) * 0.5
    straddles = (p >= abs(a)) & (p > 0.0)
    return select(straddles, half, mid), select(straddles, half, radius)


@rule
def ends(mid: Any, radius: Any) -> Any:
    """At most mid - radius and at least mid + radius."""
    known = abs(mid) < math.inf
    if radius is None:
        return select(known, mid, -math.inf), select(known, mid, math.inf)
    known &= radius < math.inf
    low, high = mid - radius, mid + radius
    low = low - select(radius > 0.0, abs(low) * (2.0 * U) + ETA, 0.0)
    high = high + select(radius > 0.0, abs(high) * (2.0 * U) + ETA, 0.0)
    return select(known, low, -math.inf), select(known, high, math.inf)


@rule
def larger(a: Any, b: Any) -> Any:
    """a where a > b, else b."""
    return select(a > b, a, b)


@rule
def between(low: Any, high: Any) -> Any:
    """The ball that holds [low, high]."""
    exact = low == high
    mid = select(exact, low, low * 0.5 + high * 0.5)
    return mid, select(exact, 0.0, outward(larger(high - mid, mid - low) + ETA))


@rule
def maximum(a: Any, p: Any, b: Any, q: Any) -> Any:
    a_low, a_high = ends(a, p)
    b_low, b_high = ends(b, q)
    return between(larger(a_low, b_low), larger(a_high, b_high))


@rule
def less(a: Any, p: Any, b: Any, q: Any) -> Any:
    """(certainly a < b, certainly not)."""
    a_low, a_high = ends(a, p)
    b_low, b_high = ends(b, q)
    return a_high < b_low, a_low >= b_high


@rule
def choose(yes: Any, no: Any, a: Any, p: Any, b: Any, q: Any) -> Any:
    """a where certainly yes, b where certainly no, the union where neither."""
    a_low, a_high = ends(a, p)
    b_low, b_high = ends(b, q)
    mid, radius = between(-larger(-a_low, -b_low), larger(a_high, b_high))
    mid, radius = select(no, b, mid), select(no, _or_zero(q), radius)
    return select(yes, a, mid), select(yes, _or_zero(p), radius)


@rule
def finite(mid: Any, radius: Any) -> Any:
    """mid as `BallValue` has it."""
    return select((abs(mid) < math.inf) & (_or_zero(radius) < math.inf), mid, 0.0)


@njit
def height(n: int) -> int:
    """The most additions that a term of a folded sum of n terms takes part in."""
    spans = (n + SPAN - 1) // SPAN
    return _halvings(min(n, SPAN)) + _halvings(spans)


@inner
def _halvings(n: int) -> int:
    steps = 0
    while n > 1:
        n = (n + 1) // 2
        steps += 1
    return steps


@rule
def term(mid: Any, radius: Any, growth: Any) -> Any:
    """A term's share in the radius of its sum, growth = h u; ETA is for an underflow."""
    size = abs(mid)
    share = fma(growth, size, _or_zero(radius))
    return share + select(size < ETA, size, ETA)


@rule
def total(mid: Any, terms: Any) -> Any:
    """A sum from the folded mids and the folded terms of its radius. 1 + 2^-40 covers the roundings
    of that fold, and (1 + u)^h - 1 <= h u (1 + h u): both are below 2^-45 relatively."""
    return mid, outward(terms * (1.0 + 2.0**-40))


@inner
def fold(terms: Any) -> Any:
    """The sum of some numbers, in halves, which are overwritten; 0 of none."""
    n = terms.size
    while n > 1:
        half = (n + 1) // 2
        low, high = terms[:half], terms[half:n]
        for j in range(high.size):
            low[j] += high[j]
        n = half
    return terms[0] if terms.size else 0.0


@inner
def fold_largest(terms: Any) -> Any:
    """The largest of some numbers, none of them NaN, which are overwritten."""
    n = terms.size
    while n > 1:
        half = (n + 1) // 2
        low, high = terms[:half], terms[half:n]
        for j in range(high.size):
            low[j] = larger(low[j], high[j])
        n = half
    return terms[0]
