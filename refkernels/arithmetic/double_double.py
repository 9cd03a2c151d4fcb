"""Double-double arithmetic: an unevaluated sum high + low of two float64, high = fl(high + low).

Each function states its bound on the relative error |result - exact| / |exact|, with u = 2^-53,
and holds while nothing overflows or underflows (results and their low parts: magnitudes from
2^-900 to 2^1000 are safe). Names follow Joldes, Muller, Popescu (2017), "Tight and rigorous
error bounds for basic building blocks of double-word arithmetic", doi:10.1145/3121432.
"""

import math
from typing import Any

from refkernels.arithmetic.eft import fast_two_sum, fma, two_prod, two_sum
from refkernels.arithmetic.jit import njit

U = 2.0**-53
ADD_DOUBLE_ERROR = 2 * U**2
ADD_ERROR = 3.0001 * U**2  # 3u^2 / (1 - 4u)
MUL_DOUBLE_ERROR = 2 * U**2
MUL_ERROR = 5 * U**2
DIV_DOUBLE_ERROR = 3 * U**2
DIV_ERROR = 9.9 * U**2
SQRT_ERROR = 3.125 * U**2  # 25/8 u^2


@njit
def dd_add_double(ah: Any, al: Any, b: Any) -> Any:
    """(ah + al) + b; relative error <= 2u^2. Source: DWPlusFP, algorithm 4, theorem 2.2."""
    s, e = two_sum(ah, b)
    return fast_two_sum(s, al + e)


@njit
def dd_add(ah: Any, al: Any, bh: Any, bl: Any) -> Any:
    """(ah + al) + (bh + bl); relative error <= 3u^2 / (1 - 4u), signs mixed or not.

    Source: AccurateDWPlusDW, algorithm 6, theorem 3.1.
    """
    sh, sl = two_sum(ah, bh)
    th, tl = two_sum(al, bl)
    vh, vl = fast_two_sum(sh, sl + th)
    return fast_two_sum(vh, tl + vl)


@njit
def dd_mul_double(ah: Any, al: Any, b: Any) -> Any:
    """(ah + al) * b; relative error <= 2u^2. Source: DWTimesFP3, algorithm 9, theorem 4.3."""
    ch, cl = two_prod(ah, b)
    return fast_two_sum(ch, fma(al, b, cl))


@njit
def dd_mul(ah: Any, al: Any, bh: Any, bl: Any) -> Any:
    """(ah + al) * (bh + bl); relative error <= 5u^2.

    Source: DWTimesDW3, algorithm 12, theorem 5.3 (4u^2 by Muller and Rideau, 2022).
    """
    ch, cl = two_prod(ah, bh)
    tail = fma(al, bh, fma(ah, bl, al * bl))
    return fast_two_sum(ch, cl + tail)


@njit
def dd_div_double(ah: Any, al: Any, b: Any) -> Any:
    """(ah + al) / b; relative error <= 3u^2. Source: DWDivFP3, algorithm 15, theorem 6.2."""
    th = ah / b
    ph, pl = two_prod(th, b)
    remainder = (ah - ph) + (al - pl)
    return fast_two_sum(th, remainder / b)


@njit
def dd_div(ah: Any, al: Any, bh: Any, bl: Any) -> Any:
    """(ah + al) / (bh + bl); relative error <= 9.8u^2.

    Source: DWDivDW3, algorithm 18, theorem 7.3.
    """
    th = 1.0 / bh
    residual_high = fma(-bh, th, 1.0)
    eh, el = two_sum(residual_high, -(bl * th))
    dh, dl = dd_mul_double(eh, el, th)
    mh, ml = dd_add_double(dh, dl, th)
    return dd_mul(ah, al, mh, ml)


@njit
def dd_sqrt(ah: Any, al: Any) -> Any:
    """sqrt(ah + al) for ah > 0, and 0 for 0; relative error <= 25/8 u^2.

    Source: Lefevre, Louvet, Muller, Picot, Rideau (2023), SQRTDWtoDW, doi:10.1145/3568672.
    """
    if ah == 0.0:
        return 0.0, 0.0
    s = math.sqrt(ah)
    residual = fma(-s, s, ah) + al
    return fast_two_sum(s, residual / (2.0 * s))
