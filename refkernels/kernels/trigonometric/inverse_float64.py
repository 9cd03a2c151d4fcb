"""The float64 tier of asin, acos and atan for float32: branch-free, so that LLVM vectorises it.

    |x| <= 1/2:  asin x = s + s u p(u), s = |x|, u = s^2;       acos x = pi/2 - asin x
    |x| >  1/2:  u = (1 - |x|)/2 is exact, s = sqrt(u), r = s + s u p(u) = asin s:
                 asin |x| = pi/2 - 2 r,  acos x = 2 r or pi - 2 r
    atan |x| = t + t u q(u) for t = |x| <= 1, pi/2 + (the same of t = -1/|x|) beyond; u = t^2

Relative errors in units of U = 2^-53; pi/2 in one double is wrong by 0.55 U, pi by 1.1 U.
  asin s     s 1 (root), FMA 1, p 0.05 x 5, polynomial 0.02                              2.3
  asin x     (2.3 x 1.05 + 0.55) / 0.52 + 1                                              6.7
  acos x     from pi/2 (0.55 + 0.52 x 1.3) / 1.05 + 1; from pi less; 2 r 2.3             2.3
  q          Horner's sums of alternating terms: 0.8 absolute, 3.8 of q; t u 1, u 1
  atan x     t 1, q 0.27 x 5.8, FMA 1, polynomial 0.9; pi/2: 0.7 + 1                     6.2
The polynomials' errors are proven by tools/polynomials.py. NaN for |x| > 1 is the square root's.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.fma import fma
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.trigonometric import tables

ERROR = 2.0**-50
_PI, _PIO2 = tables.PI_HIGH, tables.PIO2_HIGH
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9, _S10, _S11, _S12 = tables.ASIN
_T0, _T1, _T2, _T3, _T4, _T5, _T6, _T7, _T8, _T9 = tables.ATAN[:10]
_T10, _T11, _T12, _T13, _T14, _T15, _T16, _T17, _T18, _T19 = tables.ATAN[10:]
_SIGN = np.uint64(1 << 63)


@njit(inline="always")
def _signed(size: Any, x: Any) -> Any:
    """size with the sign of x, for size >= +0."""
    sign = np.float64(x).view(np.uint64) & _SIGN
    return np.uint64(np.float64(size).view(np.uint64) | sign).view(np.float64)


@njit(inline="always")
def _asin_small(s: Any, u: Any) -> Any:
    """asin s for 0 <= s <= 1/2 and u = s^2."""
    p = fma(fma(fma(fma(_S12, u, _S11), u, _S10), u, _S9), u, _S8)
    p = fma(fma(fma(fma(p, u, _S7), u, _S6), u, _S5), u, _S4)
    p = fma(fma(fma(fma(p, u, _S3), u, _S2), u, _S1), u, _S0)
    return fma(s * u, p, s)


@njit(inline="always")
def _atan_small(t: Any) -> Any:
    """atan t for |t| <= 1."""
    u = t * t
    p = fma(fma(fma(fma(_T19, u, _T18), u, _T17), u, _T16), u, _T15)
    p = fma(fma(fma(fma(fma(p, u, _T14), u, _T13), u, _T12), u, _T11), u, _T10)
    p = fma(fma(fma(fma(fma(p, u, _T9), u, _T8), u, _T7), u, _T6), u, _T5)
    p = fma(fma(fma(fma(fma(p, u, _T4), u, _T3), u, _T2), u, _T1), u, _T0)
    return fma(t * u, p, t)


@njit(nogil=True)
def asin_kernel(x: Any, hi: Any) -> None:
    """asin of float32, within ERROR."""
    full_width()
    for i in range(x.size):
        wide = np.float64(x[i])
        size = abs(wide)
        small = size <= 0.5
        u = size * size if small else 0.5 - 0.5 * size
        r = _asin_small(size if small else math.sqrt(u), u)
        hi[i] = _signed(r if small else fma(-2.0, r, _PIO2), wide)


@njit(nogil=True)
def acos_kernel(x: Any, hi: Any) -> None:
    """acos of float32, within ERROR."""
    full_width()
    for i in range(x.size):
        wide = np.float64(x[i])
        size = abs(wide)
        small = size <= 0.5
        u = size * size if small else 0.5 - 0.5 * size
        r = _asin_small(size if small else math.sqrt(u), u)
        beyond = r + r if wide > 0.0 else fma(-2.0, r, _PI)
        hi[i] = _PIO2 - _signed(r, wide) if small else beyond


@njit(nogil=True)
def atan_kernel(x: Any, hi: Any) -> None:
    """atan of float32, within ERROR."""
    full_width()
    for i in range(x.size):
        wide = np.float64(x[i])
        size = abs(wide)
        large = size > 1.0
        top = -1.0 if large else size
        r = _atan_small(top / (size if large else 1.0))
        hi[i] = _signed(_PIO2 + r if large else r, wide)


FAST = {
    "asin": Fast(asin_kernel, ERROR),
    "acos": Fast(acos_kernel, ERROR),
    "atan": Fast(atan_kernel, ERROR),
}
