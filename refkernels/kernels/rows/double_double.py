"""The second tier: LayerNorm in double-double, with a proven radius for every element.

Notation: u = 2^-53; primes mark computed quantities; each bound "e_z" is on |z' - z| (absolute)
or, where marked, relative to z'. The factor SLACK = 1.01 on first-order bounds below 2^-30 covers
second-order terms and the rounding of the bounds themselves.

Mean. two_sum is exact, so sum x = s + c + sum(e2) exactly, where s collects x, c the errors e1 of
s, and e2 are the errors of c. With A = sum|x|: |e1| <= u A each, |e2| <= u (n u A) each, and their
plain sum t has an error <= n u (n^2 u^2 A) = n^3 u^3 A. s + c + t is rounded to a double-double
(<= 1.01 u^2 |sum|, and u |t| <= n^2 u^3 A) and divided by n (3u^2):
    delta = 1.01 (4.1 u^2 |m'| + 2.1 n^2 u^3 A),   |m' - m| <= delta.
Variance. d' = fl(x - m') has a relative error <= 2u^2 against x - m'. All terms of
q = sum d'^2 are >= 0, so n additions (3.0001 u^2), the squares (2 * 2 + 5 u^2) and the division by
n (3u^2) are relative to q. And sum (x - m')^2 = n v + n (m' - m)^2, because deviations from m sum
to zero: the mean's error enters only squared. V = v + eps (2u^2):
    e_V = 1.01 ( (3.001 n + 15) u^2 v' / V' + delta^2 / V' + 2.1 u^2 )          relative
rstd. Square root (25/8 u^2), division (9.9 u^2), and half of e_V:
    e_r = 0.51 e_V + 14 u^2                                                     relative
y = d r g + b. |(x - m') - d| <= delta, and 2 + 5 + 2 u^2 for d', two products:
    e_y = 1.01 ( |g| delta r' + |p'| (e_r + 10 u^2) ) + 2.1 u^2 |y'|,   p' = d' r' g.
dx = r (t - a - d B / (n V)), t = dy g, a = mean t, B = sum t d: t is exact (two_prod);
    e_a = 3.001 n u^2 mean|t| + 3.1 u^2 |a'|
    e_B = delta sum|t| + (3.001 n + 8) u^2 sum|t d'|
    beta = B / (n V):  e_beta = 1.01 e_B / (n V') + |beta'| (e_V + 14 u^2)
    e_z = e_a + 7 u^2 |d' beta'| + |beta'| delta + (|d'| + delta) e_beta + 3.001 u^2 (|t-a| + |z'|)
    e_dx = 1.01 ( r' e_z + |dx'| (e_r + 5 u^2) )
dweight = sum over rows, in order, of dy d r:
    e_dweight = 1.01 ( sum |dy| delta r' + |p'| (e_r + 10 u^2)  +  3.001 R u^2 sum|p'| ).

Range. Where every nonzero weight, bias and dy, each row's max|x|, and eps (unless 0) lie in
[2^-200, 2^200] (which all float32 values do), no intermediate overflows, and every underflow,
at most 2^-1074 amplified by at most 2^200 r' <= 2^465, lies far below the radii, because
delta >= 2^-160 max|x| / n >= 2^-400 where the row is not constant. Rows outside are marked
NEEDS_EXACT; nothing is computed for them here.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import (
    dd_add,
    dd_add_double,
    dd_div,
    dd_div_double,
    dd_mul,
    dd_mul_double,
    dd_sqrt,
)
from refkernels.arithmetic.eft import two_prod, two_sum
from refkernels.arithmetic.jit import inner, njit

UU = 2.0**-106
SLACK = 1.01
SMALLEST = 2.0**-200
LARGEST = 2.0**200
REGULAR, CONSTANT, NEEDS_EXACT, NOT_FINITE = 0, 1, 2, 3
COLUMNS = 64  # columns of parameter gradients that a thread takes at a time

STATISTICS = np.dtype(
    [
        ("state", np.int64),
        ("mean_hi", np.float64),
        ("mean_lo", np.float64),
        ("delta", np.float64),
        ("v_hi", np.float64),
        ("v_lo", np.float64),
        ("v_error", np.float64),
        ("r_hi", np.float64),
        ("r_lo", np.float64),
        ("r_error", np.float64),
    ]
)


@inner
def _in_range(value: float) -> bool:
    """Whether a value is zero, or of a magnitude that the range argument allows."""
    return value == 0.0 or (SMALLEST <= abs(value) <= LARGEST)


@inner
def compensated_sum(values: Any) -> Any:
    """sum(values) as (hi, lo), sum|values|, and whether hi + lo is the exact sum."""
    s, c, tail, size = 0.0, 0.0, 0.0, 0.0
    exact = True
    for value in values:
        s, first = two_sum(s, value)
        c, second = two_sum(c, first)
        tail += second
        size += abs(value)
        exact &= second == 0.0
    high, low = two_sum(s, c)
    if not exact:
        high, low = two_sum(high, low + tail)
    return high, low, size, exact


@inner
def _row_kind(row: Any, eps: float) -> Any:
    """(state, max|x|, the mean where it is NaN or infinite)."""
    largest, constant = 0.0, True
    nan, plus, minus = False, False, False
    for value in row:
        largest = max(largest, abs(value))
        constant &= value == row[0]
        nan |= math.isnan(value)
        plus |= value == math.inf
        minus |= value == -math.inf
    if nan or plus or minus:
        undefined = nan or (plus and minus)
        return NOT_FINITE, largest, math.nan if undefined else (math.inf if plus else -math.inf)
    if not _in_range(eps) or (not constant and not _in_range(largest)):
        return NEEDS_EXACT, largest, math.nan
    return (CONSTANT if constant else REGULAR), largest, 0.0


@inner
def _fill_statistics(row: Any, eps: float, out: Any) -> None:
    n = row.size
    state, _, special = _row_kind(row, eps)
    out.state = state
    mh, ml, delta = row[0], 0.0, 0.0
    vh, vl, v_error = eps, 0.0, 0.0
    if state >= NEEDS_EXACT:
        mh, vh = special, math.nan
    if state == REGULAR:
        sh, sl, size, _ = compensated_sum(row)
        mh, ml = dd_div_double(sh, sl, float(n))
        delta = SLACK * (4.1 * UU * abs(mh) + 2.1 * float(n) ** 2 * UU * 2.0**-53 * size)
        qh, ql = 0.0, 0.0
        for value in row:
            dh, dl = dd_add_double(-mh, -ml, value)
            ph, pl = dd_mul(dh, dl, dh, dl)
            qh, ql = dd_add(qh, ql, ph, pl)
        qh, ql = dd_div_double(qh, ql, float(n))
        vh, vl = dd_add_double(qh, ql, eps)
        v_error = SLACK * ((3.001 * n + 15.0) * UU * (qh / vh) + delta * delta / vh + 2.1 * UU)
        if not (2.0**-560 < vh < 2.0**560 and v_error < 2.0**-30):
            out.state = NEEDS_EXACT
    out.mean_hi, out.mean_lo, out.delta = mh, ml, delta
    out.v_hi, out.v_lo, out.v_error = vh, vl, v_error
    if vh > 0.0:
        wh, wl = dd_sqrt(vh, vl)
        out.r_hi, out.r_lo = dd_div(1.0, 0.0, wh, wl)
        out.r_error = 0.51 * v_error + 14.0 * UU
    else:
        out.r_hi, out.r_lo, out.r_error = (math.inf if vh == 0.0 else math.nan), 0.0, 0.0


@njit(nogil=True)
def row_statistics(first: int, last: int, x: Any, eps: float, out: Any) -> None:
    """Mean, V = variance + eps and rstd of rows first to last, with their errors, into `out`."""
    for i in range(first, last):
        _fill_statistics(x[i], eps, out[i])


@inner
def _scaled_deviation(value: float, row: Any, factor: float) -> Any:
    """factor * (value - mean) * rstd as (hi, lo, radius)."""
    dh, dl = dd_add_double(-row.mean_hi, -row.mean_lo, value)
    ph, pl = dd_mul(dh, dl, row.r_hi, row.r_lo)
    ph, pl = dd_mul_double(ph, pl, factor)
    from_mean = abs(factor) * row.delta * row.r_hi
    return ph, pl, SLACK * (from_mean + abs(ph) * (row.r_error + 10.0 * UU))


@njit(nogil=True)
def normalised(
    first: int, last: int, x: Any, weight: Any, bias: Any, rows: Any, parts: Any
) -> None:
    """y of every REGULAR or CONSTANT row from first to last; parts: hi, lo, radius."""
    hi, lo, radius = parts
    for i in range(first, last):
        row = rows[i]
        if row.state > CONSTANT:
            continue
        for j in range(x.shape[1]):
            ph, pl, error = 0.0, 0.0, 0.0
            if row.state == REGULAR and weight[j] != 0.0:
                ph, pl, error = _scaled_deviation(x[i, j], row, weight[j])
            if bias[j] != 0.0:
                ph, pl = dd_add_double(ph, pl, bias[j])
                error += 2.1 * UU * abs(ph) if error > 0.0 else 0.0
            hi[i, j], lo[i, j], radius[i, j] = ph, pl, error


@inner
def _projections(x: Any, dy: Any, weight: Any, row: Any) -> Any:
    """a and beta as pairs, each with its error, and whether dx is 0 because t is constant."""
    n = float(x.size)
    ah, al, bh, bl, size, moment = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    first = two_prod(dy[0], weight[0])
    constant = True
    for j in range(x.size):
        th, tl = two_prod(dy[j], weight[j])
        constant &= th == first[0] and tl == first[1]
        ah, al = dd_add(ah, al, th, tl)
        size += abs(th)
        dh, dl = dd_add_double(-row.mean_hi, -row.mean_lo, x[j])
        ph, pl = dd_mul(th, tl, dh, dl)
        bh, bl = dd_add(bh, bl, ph, pl)
        moment += abs(ph)
    a_error = 3.001 * UU * size
    b_error = row.delta * size + (3.001 * n + 8.0) * UU * moment
    ah, al = dd_div_double(ah, al, n)
    a_error += 3.1 * UU * abs(ah)
    bh, bl = dd_div_double(bh, bl, n)
    bh, bl = dd_div(bh, bl, row.v_hi, row.v_lo)
    b_error = SLACK * b_error / (n * row.v_hi) + abs(bh) * (row.v_error + 14.0 * UU)
    return ah, al, a_error, bh, bl, b_error, constant


@njit(nogil=True)
def input_gradient(
    first: int, last: int, x: Any, dy: Any, weight: Any, rows: Any, parts: Any
) -> None:
    """dx of every REGULAR or CONSTANT row from first to last; parts: hi, lo, radius. A constant
    t = dy * weight gives 0 exactly, because then a = t, and B = t * sum(d) = 0."""
    hi, lo, radius = parts
    for i in range(first, last):
        row = rows[i]
        if row.state > CONSTANT:
            continue
        ah, al, a_error, bh, bl, b_error, constant = _projections(x[i], dy[i], weight, row)
        for j in range(x.shape[1]):
            if constant:
                hi[i, j], lo[i, j], radius[i, j] = 0.0, 0.0, 0.0
                continue
            th, tl = two_prod(dy[i, j], weight[j])
            ch, cl = dd_add(th, tl, -ah, -al)
            dh, dl = dd_add_double(-row.mean_hi, -row.mean_lo, x[i, j])
            ph, pl = dd_mul(dh, dl, bh, bl)
            zh, zl = dd_add(ch, cl, -ph, -pl)
            error = a_error + 7.0 * UU * abs(ph) + abs(bh) * row.delta
            error += (abs(dh) + row.delta) * b_error + 3.001 * UU * (abs(ch) + abs(zh))
            zh, zl = dd_mul(zh, zl, row.r_hi, row.r_lo)
            error = row.r_hi * error + abs(zh) * (row.r_error + 5.0 * UU)
            hi[i, j], lo[i, j], radius[i, j] = zh, zl, SLACK * error


@njit(nogil=True)
def parameter_gradients(
    start: int, stop: int, x: Any, dy: Any, rows: Any, weight_out: Any, bias_out: Any
) -> None:
    """dweight and dbias in the columns from start to stop as (3, n): hi, lo, radius. Each column is
    summed over the rows in order, so nothing depends on the number of threads. NOT_FINITE and
    NEEDS_EXACT rows are left out of dweight: the caller must not use it then."""
    height = x.shape[0]
    total = np.zeros((4, stop - start))
    for i in range(height):
        row = rows[i]
        if row.state == REGULAR:
            for j in range(start, stop):
                ph, pl, error = _scaled_deviation(x[i, j], row, dy[i, j])
                k = j - start
                total[0, k], total[1, k] = dd_add(total[0, k], total[1, k], ph, pl)
                total[2, k] += error
                total[3, k] += abs(ph)
    for j in range(start, stop):
        k = j - start
        weight_out[0, j], weight_out[1, j] = total[0, k], total[1, k]
        weight_out[2, j] = SLACK * (total[2, k] + 3.001 * height * UU * total[3, k])
        sh, sl, size, exact = compensated_sum(dy[:, j])
        bias_out[0, j], bias_out[1, j] = sh, sl
        if not exact:
            cubed = float(height) ** 3 * UU * 2.0**-53
            bias_out[2, j] = SLACK * (1.1 * UU * abs(sh) + 2.1 * cubed * size)
