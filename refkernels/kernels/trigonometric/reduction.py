"""Reduction modulo pi/2 after Payne and Hanek: x = (4 n + q + f) pi/2 with |f| <= 1/2, for every
finite float64.

x = m 2^e with an integer m < 2^53. Bits of 2/pi that weigh 4 or more after multiplication by
m 2^e only add whole turns, so a window W of the next 256 bits of 2/pi gives x 2/pi modulo 4 as
m W / 2^254, with an error below m 2^-254 <= 2^-201 quadrants. No float64 comes nearer than 2^-62
quadrants to a multiple of pi/2 (tests/trig_ref checks that by continued fractions), so f is known
to 2^-139 of itself.

Source: Payne and Hanek (1983), SIGNUM Newsletter 18, doi:10.1145/1057600.1057602.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.compiler import intrinsic, ir, types
from refkernels.arithmetic.double_double import MUL_ERROR, U, dd_mul
from refkernels.arithmetic.eft import fast_two_sum
from refkernels.arithmetic.jit import inner
from refkernels.kernels.trigonometric.tables import PIO2_HIGH, PIO2_LOW, TWO_OVER_PI

# Relative error of the reduced argument: 106 bits of f kept (2u^2, U^2 = 2^-106); pi/2 as a
# double-double (2^-109, so u^2/8); one double-double product; the window (2^-139, rounded up).
REDUCTION_ERROR = (2.0 + 0.125 + 0.001) * U**2 + MUL_ERROR

_ONE = np.uint64(1)
_TWO = np.uint64(2)
_52 = np.uint64(52)
_62 = np.uint64(62)
_63 = np.uint64(63)
_HIDDEN = np.uint64(1 << 52)
_FRACTION = np.uint64((1 << 52) - 1)


@intrinsic
def multiply_high(typing_context: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the 128-bit product of two uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        left, right = (builder.zext(argument, wide) for argument in arguments)
        product = builder.mul(left, right)
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def leading_zeros(typing_context: Any, a: Any) -> Any:
    """How many zero bits precede the first one of a uint64; 64 for 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


multiply_high.in_python = lambda a, b: np.uint64(int(a) * int(b) >> 64)
leading_zeros.in_python = lambda a: np.uint64(64 - int(a).bit_length())


@inner
def _window(offset: Any) -> Any:
    """256 bits of 2/pi from that bit of the table on, as four words, most significant first."""
    word = np.int64(offset >> np.uint64(6))
    shift = offset & _63
    back = _63 - shift  # shifting by 64 is undefined: shift by 1 and 63 - shift
    w0 = (TWO_OVER_PI[word] << shift) | ((TWO_OVER_PI[word + 1] >> _ONE) >> back)
    w1 = (TWO_OVER_PI[word + 1] << shift) | ((TWO_OVER_PI[word + 2] >> _ONE) >> back)
    w2 = (TWO_OVER_PI[word + 2] << shift) | ((TWO_OVER_PI[word + 3] >> _ONE) >> back)
    w3 = (TWO_OVER_PI[word + 3] << shift) | ((TWO_OVER_PI[word + 4] >> _ONE) >> back)
    return w0, w1, w2, w3


@inner
def _quadrants(x: Any) -> Any:
    """x 2/pi modulo 4 in units of 2^-254: four words, the highest two bits are the quadrant."""
    bits = np.float64(x).view(np.uint64)
    biased = bits >> _52
    m = (bits & _FRACTION) | _HIDDEN
    # x = m 2^(biased - 1075); the table starts 64 bits early, and 2 bits are for the quadrant.
    w0, w1, w2, w3 = _window(biased - np.uint64(1075 + 2 - 64))
    r3 = m * w3
    carry = multiply_high(m, w3)
    r2 = m * w2 + carry
    carry = multiply_high(m, w2) + (_ONE if r2 < carry else np.uint64(0))
    r1 = m * w1 + carry
    carry = multiply_high(m, w1) + (_ONE if r1 < carry else np.uint64(0))
    return m * w0 + carry, r1, r2, r3


@inner
def reduce_pio2(x: Any) -> Any:
    """(q, high, low): the quadrant 0..3 and the rest in radians, |high + low| <= pi/4.

    Requires 1/2 <= x < inf. Relative error of the rest: REDUCTION_ERROR.
    """
    p0, p1, p2, p3 = _quadrants(x)
    f0 = (p0 << _TWO) | (p1 >> _62)
    f1 = (p1 << _TWO) | (p2 >> _62)
    f2 = (p2 << _TWO) | (p3 >> _62)
    f3 = p3 << _TWO
    negative = f0 >> _63
    quadrant = np.int64(((p0 >> _62) + negative) & np.uint64(3))
    if negative == _ONE:  # one's complement: its error of 2^-254 is inside the window's
        f0, f1, f2, f3 = ~f0, ~f1, ~f2, ~f3
    exponent = 0
    while f0 == np.uint64(0) and exponent > -192:
        f0, f1, f2, f3 = f1, f2, f3, np.uint64(0)
        exponent -= 64
    zeros = leading_zeros(f0)
    back = _63 - zeros
    top = (f0 << zeros) | ((f1 >> _ONE) >> back)
    next_ = (f1 << zeros) | ((f2 >> _ONE) >> back)
    high = float(top >> np.uint64(11))
    low = float(((top & np.uint64(0x7FF)) << np.uint64(42)) | (next_ >> np.uint64(22)))
    unit = math.ldexp(1.0, exponent - int(zeros) - 53)
    fh, fl = fast_two_sum(high * unit, low * (unit * 2.0**-53))
    rh, rl = dd_mul(fh, fl, PIO2_HIGH, PIO2_LOW)
    if negative == _ONE:
        return quadrant, -rh, -rl
    return quadrant, rh, rl
