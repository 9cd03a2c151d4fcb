"""The bits of a float64 as an integer and back, inside kernels. Loops over exponents and roundings
then vectorise; frexp and ldexp would be calls.

For positive floats the order of the bits is the order of the numbers, and adding 1 steps to the
next float, whatever binade it is in.
"""

from typing import Any

from refkernels.arithmetic.compiler import intrinsic, ir, types

SIGNIFICAND = (1 << 52) - 1
EXPONENT = 0x7FF << 52

# Of the quick tests of intervals hi + lo ± radius (`decisions`):
ROOM = 1.0 - 2.0**-50
LEAST = -900  # they stay above this exponent, clear of float64's subnormals
OUTWARD = 4
"""Bits, to take an end computed in float64 outwards. Let h = |hi|, reach = fl(|lo| + radius) and
end = fl(h ± reach), with reach < h / 2 (otherwise the ends h - reach and h + reach have different
exponents or signs, and no test passes). reach is wrong by at most 2^-53 (1 + 2^-53) reach
<= ulp(end) / 2, for |end| >= h / 2 > reach; the sum is wrong by ulp(end) / 2 more: one ulp(end) in
all, and 4 steps of the bits are at least 2 ulp(end), were they to cross a power of two."""


@intrinsic
def bits_of(typing_context: Any, x: Any) -> Any:
    """The bits of a float64 as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def float_of(typing_context: Any, bits: Any) -> Any:
    """The float64 that has these bits (int64)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate
