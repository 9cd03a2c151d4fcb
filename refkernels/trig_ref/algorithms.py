"""Working-precision sin, cos and tan: plain, careful float32 and float64 kernels.

    n = rint(x 2/pi);  r + tail = ((x - n P1) - n P2) - n P3   Cody and Waite, three parts of pi/2
    sin = r + (r u S(u) + tail (1 - u/2)),  cos = 1 - (u/2 - (u^2 C(u) - r tail)),  u = r^2
    tan = sin / cos
P1 and P2 are short enough for exact products with n. Where n is too large for that, or r so small
that the parts of pi/2 run out, r + tail is Payne and Hanek's. The kernel is generic in the
dtype: all arithmetic stays in the dtype of its constants.

Sources: Cody and Waite, "Software Manual for the Elementary Functions" (1980); the polynomials of
fdlibm's k_sin.c and k_cos.c (Sun Microsystems, 1993) in float64, and of Moshier's Cephes sinf.c
(1992) in float32.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.exact import to_fraction
from refkernels.arithmetic.jit import inner, njit
from refkernels.elementwise.function import Array
from refkernels.kernels.trigonometric.reduction import reduce_pio2
from refkernels.kernels.trigonometric.tables import PIO2_HIGH, PIO2_LOW
from refkernels.kernels.trigonometric.values import COS, SIN, TAN

_SINE = {
    np.float32: (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4),
    np.float64: (
        -1.66666666666666324348e-01,
        8.33333333332248946124e-03,
        -1.98412698298579493134e-04,
        2.75573137070700676789e-06,
        -2.50507602534068634195e-08,
        1.58969099521155010221e-10,
    ),
}
_COSINE = {
    np.float32: (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5),
    np.float64: (
        4.16666666666666019037e-02,
        -1.38888888888741095749e-03,
        2.48015872894767294178e-05,
        -2.75573143513906633035e-07,
        2.08757232129817482790e-09,
        -1.13596475577881948265e-11,
    ),
}
_INDEX_BITS = {np.float32: 11, np.float64: 20}  # bits of n in Cody and Waite's reduction


def plain(code: int, x: Array) -> Array:
    """sin, cos or tan by the algorithm above in x's dtype, float32 or float64."""
    return _evaluate(code, x)


def plain_slope(code: int, x: Array) -> Array:
    """cos x, -sin x or 1 + tan(x)^2, from the algorithm above."""
    if code == TAN:
        tangent = _evaluate(TAN, x)
        return tangent * tangent + x.dtype.type(1)
    return _evaluate(COS, x) if code == SIN else -_evaluate(SIN, x)


def _evaluate(code: int, x: Array) -> Array:
    kind = x.dtype.type
    flat = np.ascontiguousarray(x).reshape(-1)
    result = np.empty_like(flat)
    bits = _INDEX_BITS[kind]
    limits = np.array([2.0 ** (bits - 1), 2.0**-10 if bits == 11 else 2.0**-20], kind)
    sine, cosine = np.array(_SINE[kind], kind), np.array(_COSINE[kind], kind)
    _plain(code, flat, _parts(kind), limits, sine, cosine, np.array([0.5, 1], kind), result)
    if code != COS:
        np.copyto(result, flat, where=flat == 0)  # -0 stays
    return result.reshape(x.shape)


def _parts(kind: Any) -> npt.NDArray[Any]:
    """2/pi and P1, P2, P3 with P1 + P2 + P3 = pi/2, the first two with INDEX_BITS zeros at the
    end."""
    remainder = to_fraction(PIO2_HIGH, PIO2_LOW)
    parts = [Fraction(2 / math.pi)]
    for parts_so_far in (1, 2):
        width = formats.get(kind).p - _INDEX_BITS[kind]
        quantum = Fraction(2) ** (1 - parts_so_far * width)
        parts.append(remainder // quantum * quantum)
        remainder -= parts[-1]
    return np.array([float(part) for part in (*parts, remainder)], kind)


@inner
def _reduce(x: Any, parts: Any, limits: Any) -> Any:
    """Quadrant 0..3 and the remainder of x as a sum of two numbers in the dtype of x."""
    n = np.rint(x * parts[0])
    if abs(n) <= limits[0]:
        start, second, third = x - n * parts[1], n * parts[2], n * parts[3]
        middle = start - second
        r = middle - third
        if n == 0 or abs(r) >= limits[1]:
            return np.int64(n) & 3, r, ((start - middle) - second) + ((middle - r) - third)
    quadrant, high, low = reduce_pio2(abs(np.float64(x)))
    r = parts.dtype.type(high)
    tail = parts.dtype.type((high - r) + low)
    if x > 0:
        return quadrant, r, tail
    return (4 - quadrant) & 3, -r, -tail


@njit
def _plain(
    code: int, x: Any, parts: Any, limits: Any, sine: Any, cosine: Any, numbers: Any, out: Any
) -> None:
    half, one = numbers[0], numbers[1]
    for i in range(x.size):
        if not math.isfinite(x[i]):
            out[i] = np.nan
            continue
        quadrant, r, tail = _reduce(x[i], parts, limits)
        u = r * r
        s, c = sine[-1], cosine[-1]
        for k in range(sine.size - 2, -1, -1):
            s = s * u + sine[k]
            c = c * u + cosine[k]
        lead = one - half * u
        s = r + (r * (u * s) + tail * lead)
        c = lead + (((one - lead) - half * u) + (u * u * c - r * tail))
        if quadrant & 1:
            s, c = c, -s
        if quadrant & 2:
            s, c = -s, -c
        if code == SIN:
            out[i] = s
        elif code == COS:
            out[i] = c
        else:
            out[i] = s / c
