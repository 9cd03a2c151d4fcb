"""The float64 tier of sin, cos and tan for float32: branch-free, so that LLVM vectorises it.

x 2/pi = 4 n + q + f with |f| <= 1/2 + 2^-26, f in quadrants. QUADRANTS holds, per exponent of x,
2/pi without the bits that only add whole turns, in three chunks c1, c2, c3 that start at 2^1, 2^-28
and 2^-57 after scaling by x's unit in the last place. In those units (x an integer below 2^24):
  x c1 < 2^26 and x c2 < 2^-3 are exact (24 + 29 bits), multiples of 2^-27 and 2^-56;
  N = rint(x c1 + x c2), of which two bits are q;  x c1 - N is exact, a multiple of 2^-27 below 1;
  s = (x c1 - N) + x c2 is exact where |s| < 2^-3 (53 bits above 2^-56);
  x c3 < 2^-32 is in error by 2^-84: c3 and the product are rounded.
f = s + x c3. Below 2^-1 there is nothing to reduce: f = x fl(2/pi).
No float32 comes nearer to a multiple of pi/2 than 2^-29.9 quadrants (tests/trig_ref checks that by
continued fractions), so 2^-84 is at most 0.5 U of f, U = 2^-53.

Relative errors in U:
  f          two roundings, or one and 0.5                                                  2.0
  sin        f, final FMA 1, the inner ones 0.2, f^2 0.1, product 1, polynomial 0.41        4.7
  cos        0.79 x 2.0, final FMA 1, f^2 and inner FMAs 0.41 x 2.4, polynomial 2.7         6.3
  tan        4.7 + 6.3 + 1                                                                 12.0
Sources: Payne and Hanek (1983), doi:10.1145/1057600.1057602; the polynomials' errors are proven by
tools/polynomials.py.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.fma import fma
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.trigonometric.gather import WIDTH, exponent, look_up
from refkernels.kernels.trigonometric.tables import COSINE, QUADRANTS, SINE
from refkernels.kernels.trigonometric.values import COS, SIN, TAN

ERROR = 2.0**-50
TAN_ERROR = 2.0**-49
NEAREST = 2.0**-29.9  # quadrants from a float32 to a multiple of pi/2

_ROWS = np.ascontiguousarray(np.hstack([QUADRANTS, np.zeros((256, 1))]))
ROUNDER = 1.5 * 2.0**52  # adding it rounds to an integer, whose last bits are the sum's
_S0, _S1, _S2, _S3, _S4, _S5, _S6 = SINE
_C0, _C1, _C2, _C3, _C4, _C5 = COSINE
_ONE, _TWO = np.uint64(1), np.uint64(2)
_62 = np.uint64(62)


@njit(inline="always")
def sine_cosine(f: Any) -> Any:
    """sin(pi/2 f) and cos(pi/2 f) for |f| <= 1/2 + 2^-17; exact at 0."""
    u = f * f
    s = fma(fma(fma(fma(fma(fma(_S6, u, _S5), u, _S4), u, _S3), u, _S2), u, _S1), u, _S0)
    c = fma(fma(fma(fma(fma(_C5, u, _C4), u, _C3), u, _C2), u, _C1), u, _C0)
    return f * s, fma(u, c, 1.0)


@njit(inline="always")
def turned(code: int, quadrant: Any, s: Any, c: Any) -> Any:
    """sin or cos of the angle in that quadrant (its last two bits), from those of the remainder."""
    if code == COS:  # cos is sin a quadrant later
        quadrant = quadrant + _ONE
    y = c if (quadrant & _ONE) != np.uint64(0) else s
    sign = (quadrant & _TWO) << _62
    return np.uint64(np.float64(y).view(np.uint64) ^ sign).view(np.float64)


@njit(inline="always")
def _value(code: int, x: Any, c1: Any, c2: Any, c3: Any) -> Any:
    first, second = x * c1, x * c2
    shifted = (first + second) + ROUNDER
    quadrant = np.float64(shifted).view(np.uint64)
    f = ((first - (shifted - ROUNDER)) + second) + x * c3
    s, c = sine_cosine(f)
    if code == TAN:
        swapped = (quadrant & _ONE) != np.uint64(0)
        y = (-c if swapped else s) / (s if swapped else c)
    else:
        y = turned(code, quadrant, s, c)
    return y


@njit(inline="always")
def _fill(code: int, x: Any, hi: Any) -> None:
    """Blocks with one exponent, as a sweep has them, need no look-up.

    Zeros, whose sign the loop loses, are counted and written afterwards. A loop with such a sum
    makes LLVM work on several vectors at a time, so that one hides the latency of another.
    """
    full_width()
    columns = np.empty((3, WIDTH))
    words = x.view(np.uint32)
    for start in range(0, x.size, WIDTH):
        stop = min(start + WIDTH, x.size)
        part, bits, out = x[start:stop], words[start:stop], hi[start:stop]
        different, zeros = np.uint32(0), 0
        for j in range(bits.size):
            different = np.uint32(different | (bits[j] ^ bits[0]))
        if different & np.uint32(0x7F800000) == np.uint32(0):
            row = exponent(bits[0])
            c1, c2, c3 = _ROWS[row, 0], _ROWS[row, 1], _ROWS[row, 2]
            for j in range(part.size):
                out[j] = _value(code, np.float64(part[j]), c1, c2, c3)
                zeros += part[j] == 0.0
        else:
            look_up(_ROWS, bits, columns)
            for j in range(part.size):
                c1, c2, c3 = columns[0, j], columns[1, j], columns[2, j]
                out[j] = _value(code, np.float64(part[j]), c1, c2, c3)
                zeros += part[j] == 0.0
        if zeros:
            for j in range(part.size):
                if part[j] == 0.0:
                    out[j] = 1.0 if code == COS else np.float64(part[j])


@njit(nogil=True)
def sin_kernel(x: Any, hi: Any) -> None:
    """sin x of float32, within ERROR."""
    _fill(SIN, x, hi)


@njit(nogil=True)
def cos_kernel(x: Any, hi: Any) -> None:
    """cos x of float32, within ERROR."""
    _fill(COS, x, hi)


@njit(nogil=True)
def tan_kernel(x: Any, hi: Any) -> None:
    """tan x of float32, within TAN_ERROR."""
    _fill(TAN, x, hi)


FAST = {
    "sin": Fast(sin_kernel, ERROR),
    "cos": Fast(cos_kernel, ERROR),
    "tan": Fast(tan_kernel, TAN_ERROR),
}
