"""The bits of a float64 as an integer and back, inside kernels. Loops over exponents and roundings
then vectorise; frexp and ldexp would be calls.

For positive floats the order of the bits is the order of the numbers, and adding 1 steps to the
next float, whatever binade it is in.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

SIGNIFICAND = (1 << 52) - 1
EXPONENT = 0x7FF << 52


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
