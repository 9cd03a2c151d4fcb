"""The rules of `Ball` for one element: what generated kernels are made of.

A rule takes (mid, radius) of each operand and gives the result's; a radius of None is that of an
exact number, and what it would cost is not compiled. mid is the same expression as in `ball`, so it
has the same bits; radius has the same proof, of which only the roundings differ: `outward` covers
them here as there.

Special values. `ball` puts (0, inf) where an element is not finite. Here it stays what it is, and a
pair says nothing where its mid or its radius is not finite: `settled` puts (0, inf) at the end.
That holds because every rule keeps it: sums and products of what is not finite are not finite, and
where a rule divides by an operand, compares it or takes a function of it, it asks. A NaN is no
radius: `outward` lets it pass, since it tests for > 0.

  `ends`, `upper`   m + r <= e + 2 u |e| + η for e = fl(m + r): the next number above e at least
  `fold`            in halves, so that a term takes part in h additions at most: error h u Σ|a|
"""

import math
from typing import Any

from refkernels.arithmetic.eft import fma
from refkernels.arithmetic.jit import njit

U = 2.0**-53
ETA = 2.0**-1074  # the smallest subnormal, more than any one underflow loses
FACTOR = 1.0 + 2.0**-47
LOST = 2.0**-1068
SPAN = 1024
"""Terms that a sum folds at a time; then it folds their sums."""
_MORE, _LESS = 1.0 + 2.0**-50, 1.0 - 2.0**-50
_LEAST_INVERSE = 2.0**-1000


@njit
def outward(radius: Any) -> Any:
    """At least the radius that these few operations meant; 0 stays 0 and NaN stays NaN."""
    return fma(radius, FACTOR, LOST if radius > 0.0 else 0.0)


@njit
def settled(mid: Any, radius: Any) -> Any:
    """The pair as `BallValue` has it."""
    radius = 0.0 if radius is None else radius
    known = (abs(mid) < math.inf) & (radius < math.inf)
    return (mid if known else 0.0), (radius if known else math.inf)


@njit
def _or_zero(radius: Any) -> Any:
    return 0.0 if radius is None else radius


@njit
def _exact_zero(mid: Any, radius: Any) -> Any:
    return mid == 0.0 if radius is None else (mid == 0.0) & (radius == 0.0)


@njit
def add(a: Any, p: Any, b: Any, q: Any) -> Any:
    mid = a + b
    lost = U * abs(mid)
    if p is not None:
        lost = p + lost
    if q is not None:
        lost = q + lost
    return mid, outward(lost)


@njit
def multiply(a: Any, p: Any, b: Any, q: Any) -> Any:
    mid = a * b
    lost = fma(U, abs(mid), ETA)
    if p is not None:
        lost = fma(abs(b), p, lost)
    if q is not None:
        lost = fma(abs(a) if p is None else abs(a) + p, q, lost)
    exact = _exact_zero(a, p) | _exact_zero(b, q)
    return mid, 0.0 if exact else outward(lost)


@njit
def divide(a: Any, p: Any, b: Any, q: Any) -> Any:
    """1 / least is rounded up; a divisor that is a row's or a number is inverted once."""
    mid = a / b
    lost = fma(U, abs(mid), ETA)
    least = abs(b)
    if q is not None:
        least = (least - q) * _LESS - (ETA if q > 0.0 else 0.0)
    if p is not None or q is not None:
        inverse = _MORE / least
        inverse = inverse if inverse > _LEAST_INVERSE else _LEAST_INVERSE
        above = _or_zero(p)
        if q is not None:
            above = fma(fma(abs(mid), _MORE, ETA), q, above) + (ETA if q > 0.0 else 0.0)
        lost = fma(above, inverse, lost)
    known = (least > 0.0) & (abs(b) < math.inf)
    radius = 0.0 if _exact_zero(a, p) else outward(lost)
    return mid, radius if known else math.inf


@njit
def square(a: Any, p: Any) -> Any:
    mid, radius = multiply(a, p, a, p)
    if p is None:
        return mid, radius
    half = ((abs(a) + p) * (abs(a) + p) * _MORE + LOST) * 0.5
    straddles = (p >= abs(a)) & (p > 0.0)
    return (half if straddles else mid), (half if straddles else radius)


@njit
def ends(mid: Any, radius: Any) -> Any:
    """At most mid - radius and at least mid + radius."""
    known = abs(mid) < math.inf
    if radius is None:
        return (mid if known else -math.inf), (mid if known else math.inf)
    low, high = mid - radius, mid + radius
    wide = radius > 0.0
    low = low - (abs(low) * (2.0 * U) + ETA) if wide else low
    high = high + (abs(high) * (2.0 * U) + ETA) if wide else high
    known &= radius < math.inf
    return (low if known else -math.inf), (high if known else math.inf)


@njit
def between(low: Any, high: Any) -> Any:
    """The ball that holds [low, high]."""
    exact = low == high
    mid = low if exact else low * 0.5 + high * 0.5
    above, below = high - mid, mid - low
    spread = above if above > below else below
    return mid, 0.0 if exact else outward(spread + ETA)


@njit
def maximum(a: Any, p: Any, b: Any, q: Any) -> Any:
    a_low, a_high = ends(a, p)
    b_low, b_high = ends(b, q)
    low = a_low if a_low > b_low else b_low
    return between(low, a_high if a_high > b_high else b_high)


@njit
def less(a: Any, p: Any, b: Any, q: Any) -> Any:
    """(certainly a < b, certainly not)."""
    a_low, a_high = ends(a, p)
    b_low, b_high = ends(b, q)
    return a_high < b_low, a_low >= b_high


@njit
def choose(yes: Any, no: Any, a: Any, p: Any, b: Any, q: Any) -> Any:
    """a where certainly yes, b where certainly no, the union where neither."""
    a_low, a_high = ends(a, p)
    b_low, b_high = ends(b, q)
    low = a_low if a_low < b_low else b_low
    mid, radius = between(low, a_high if a_high > b_high else b_high)
    mid, radius = (b, _or_zero(q)) if no else (mid, radius)
    return (a, _or_zero(p)) if yes else (mid, radius)


@njit
def finite(mid: Any, radius: Any) -> Any:
    """mid as `BallValue` has it."""
    known = abs(mid) < math.inf
    if radius is not None:
        known &= radius < math.inf
    return mid if known else 0.0


@njit
def height(n: int) -> int:
    """The additions that a term of a folded sum of n takes part in at most."""
    spans = (n + SPAN - 1) // SPAN
    return _halvings(min(n, SPAN)) + _halvings(spans)


@njit
def _halvings(n: int) -> int:
    steps = 0
    while n > 1:
        n = (n + 1) // 2
        steps += 1
    return steps


@njit
def term(mid: Any, radius: Any, growth: Any) -> Any:
    """What a term adds to the radius of a sum of it, growth = h u; the last is for an underflow."""
    size = abs(mid)
    own = fma(growth, size, _or_zero(radius))
    return own + (size if size < ETA else ETA)


@njit
def total(mid: Any, terms: Any) -> Any:
    """A sum from the folded mids and terms of its radius: the roundings of their fold, and
    (1 + u)^h - 1 <= h u (1 + h u), are below 2^-45 of it."""
    return mid, outward(terms * (1.0 + 2.0**-40))


@njit
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


@njit
def fold_largest(terms: Any) -> Any:
    """The largest of some numbers, none of them NaN, which are overwritten."""
    n = terms.size
    while n > 1:
        half = (n + 1) // 2
        low, high = terms[:half], terms[half:n]
        for j in range(high.size):
            low[j] = low[j] if low[j] > high[j] else high[j]
        n = half
    return terms[0]
