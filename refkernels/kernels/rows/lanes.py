"""Compensated sums in lanes: the sums of the float64 tier, in an order that vectorises.

Element j of a row goes to lane j mod LANES. A lane holds s, the running sum, and c, the plain sum
of the errors that two_sum reports; then lanes are added in halves, the same way. Nothing depends
on threads, and no fastmath is needed: neighbouring lanes are neighbours in memory (`passes`).

Error. two_sum is exact, so sum w = s + (sum of all reported errors e) for terms w, A = sum|w|.
Every term takes part in at most K additions, and |e| <= u |s| <= 1.001 u (sum of |w| in s), so
sum|e| <= 1.001 K u A. c passes each e through at most 2K additions, whose rounding errors add up to
2.01 K u * 1.001 K u A. With (hi, lo) = two_sum(s, c):
    |hi + lo - sum w| <= kappa A,   kappa = 2.1 K^2 u^2     (K u < 2^-20).
For a row the bound is sharper. A lane has at most m = ceil(n / LANES) terms, a sum of |w| of A',
and errors of 1.001 u A' each: adding the k-th to c rounds off 1.01 k u^2 A' at most, all of them
m (m + 1) / 2 times 1.01 u^2 A'. The l-th of the 5 halvings adds one error more and rounds twice,
2.02 (m + l) u^2 times both lanes' A' at most. Over all lanes that is
1.01 (m^2 / 2 + 10.5 m + 30) u^2 A, so that
    kappa = 0.51 (m + 11)^2 u^2     will do for a row.
This is Sum2 of Ogita, Rump and Oishi (2005), doi:10.1137/030601818, in LANES interleaved sums.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic import vectors
from refkernels.arithmetic.fma import fma
from refkernels.arithmetic.jit import inner, njit
from refkernels.kernels.rows.passes import LANES, STRIP, PassCounts, column_pass, row_pass

U = 2.0**-53
COLUMN_TALLIES = 6
ROW_NUMBERS = 5
_SUM = (PassCounts("sum"), PassCounts("error"))


@inner
def kappa(additions: int) -> float:
    """The relative error of a compensated sum whose terms pass through that many additions at
    most."""
    return 2.1 * float(additions) ** 2 * U * U


@njit
def row_kappa(n: int) -> float:
    """The same for a row of n elements, summed in lanes."""
    return 0.51 * float((n + LANES - 1) // LANES + 11) ** 2 * U * U


@njit
def largest(values: Any) -> float:
    """The maximum of some numbers >= 0."""
    top = 0.0
    for value in values:
        top = max(top, value)
    return top


def _add(builder: Any, tallies: list[Any], at: int, term: Any) -> None:
    """Adds a term to the compensated sum s, c = tallies[at], tallies[at + 1]."""
    tallies[at], e = vectors.two_sum(builder, tallies[at], term)
    tallies[at + 1] = builder.fadd(tallies[at + 1], e)


def _mean_step(builder: Any, values: Any, numbers: Any, tallies: Any) -> None:
    """s + c of x."""
    _add(builder, tallies, 0, values[0])


def _deviation_step(builder: Any, values: Any, numbers: Any, tallies: Any) -> Any:
    """d = fl(d0 - delta); s + c of d0^2, and max|d0|."""
    c, delta = numbers
    d0 = builder.fsub(values[0], c)
    _add(builder, tallies, 0, builder.fmul(d0, d0))
    tallies[2] = vectors.larger(builder, vectors.magnitude(builder, d0), tallies[2])
    return builder.fsub(d0, delta)


def _normalise_step(builder: Any, values: Any, numbers: Any, tallies: Any) -> Any:
    """y = fma(fl(d r), g, b); max|y|."""
    d, weight, bias = values
    y = vectors.fma(builder, builder.fmul(d, numbers[0]), weight, bias)
    tallies[0] = vectors.larger(builder, vectors.magnitude(builder, y), tallies[0])
    return y


def _projection_step(builder: Any, values: Any, numbers: Any, tallies: Any) -> None:
    """s + c of t and of t d, the sum of t^2, the largest and the least t."""
    d, dy, weight = values
    t = builder.fmul(dy, weight)
    _add(builder, tallies, 0, t)
    _add(builder, tallies, 2, builder.fmul(t, d))
    tallies[4] = vectors.fma(builder, t, t, tallies[4])
    tallies[5] = vectors.larger(builder, t, tallies[5])
    tallies[6] = vectors.smaller(builder, t, tallies[6])


def _gradient_step(builder: Any, values: Any, numbers: Any, tallies: Any) -> Any:
    """dx = fl(fma(-d, beta, fl(t - a)) r); max|dx|."""
    d, dy, weight = values
    a, beta, r = numbers
    t = builder.fmul(dy, weight)
    z = vectors.fma(builder, builder.fneg(d), beta, builder.fsub(t, a))
    dx = builder.fmul(z, r)
    tallies[0] = vectors.larger(builder, vectors.magnitude(builder, dx), tallies[0])
    return dx


def _column_step(builder: Any, values: Any, numbers: Any, tallies: Any) -> None:
    """s + c of p = fl(fl(d r) dy) and of dy, the sums of |dy| and of |dy| A + |p| B."""
    x, dy = values
    c, delta, r, a, b = numbers
    d = builder.fsub(builder.fsub(x, c), delta)
    p = builder.fmul(builder.fmul(d, r), dy)
    _add(builder, tallies, 0, p)
    _add(builder, tallies, 2, dy)
    size = vectors.magnitude(builder, dy)
    tallies[4] = builder.fadd(tallies[4], size)
    error = vectors.fma(builder, vectors.magnitude(builder, p), b, tallies[5])
    tallies[5] = vectors.fma(builder, size, a, error)


_mean_pass = row_pass(_mean_step, _SUM)
_deviation_pass = row_pass(_deviation_step, (*_SUM, PassCounts("top")), writes=True)
_normalise_pass = row_pass(_normalise_step, (PassCounts("top"),), writes=True)
_extremes = PassCounts("plain"), PassCounts("top", 0), PassCounts("low", 0)
_projection_pass = row_pass(_projection_step, (*_SUM, *_SUM, *_extremes))
_gradient_pass = row_pass(_gradient_step, (PassCounts("top"),), writes=True)
_columns_pass = column_pass(_column_step, ROW_NUMBERS, COLUMN_TALLIES)


@njit
def row_mean(row: Any) -> Any:
    """The mean of a row as c + delta, c its float64. With (hi, lo) the compensated sum, the
    remainder hi - c n of a division is a float64, and only two operations round: |c + delta - mean|
    <= kappa mean|x| + 2.05 u |delta|. In a constant row of float32 every sum k x is exact while
    n < 2^29, so that c is the common value and delta 0."""
    hi, lo = _mean_pass((row,), ())
    n = np.float64(row.size)
    c = hi / n
    return c, (fma(-c, n, hi) + lo) / n


@njit
def deviation_squares(row: Any, c: float, delta: float, deviations: Any) -> Any:
    """The compensated sum of fl(d0^2), d0 = fl(x - c), as its high part, and max|d0|; d = fl(d0 -
    delta) into `deviations`."""
    hi, _, top = _deviation_pass((row, deviations), (c, delta))
    return hi, top


@njit
def projection_sums(row: Any, dy: Any, weight: Any) -> Any:
    """With t = fl(dy g), and a row of deviations d: compensated sums of t and of fl(t d), each as
    its high part, the plain sum of t^2, max|t|, and whether t varies."""
    first = np.float64(dy[0]) * weight[0]
    along_one, _, along_x, _, squares, top, low = _projection_pass((row, dy, weight), (first,))
    return along_one, along_x, squares, max(abs(top), abs(low)), top != low


@njit
def write_normalised(row: Any, weight: Any, bias: Any, r: float, hi: Any) -> float:
    """hi = fma(fl(d r), g, b) for a row of deviations d; max|hi|."""
    return _normalise_pass((row, weight, bias, hi), (r,))[0]


@njit
def write_gradient(
    row: Any, dy: Any, weight: Any, parts: tuple[float, float, float], hi: Any
) -> float:
    """hi = fl(fma(-d, beta, fl(t - a)) r) with t and d as above; max|hi|. parts: a, beta, r."""
    return _gradient_pass((row, dy, weight, hi), parts)[0]


@njit
def add_parameter_gradients(
    x: Any, dy: Any, first: int, last: int, numbers: Any, columns: Any
) -> None:
    """Column sums, over the rows first to last, of dy and of p = fl(fl(d r) dy), compensated, of
    |dy|, and of the error |dy| A + |p| B of p. numbers: c, delta, r, A and B of each row.
    `columns`: for each STRIP columns s, c of p, s, c of dy, the sum of |dy| and the error."""
    _columns_pass((x, dy), numbers, first, last, columns)


@njit
def column_place(j: int) -> int:
    """The index in `columns` of the first tally of column j; the next ones are STRIP apart."""
    return j // STRIP * STRIP * COLUMN_TALLIES + j % STRIP
