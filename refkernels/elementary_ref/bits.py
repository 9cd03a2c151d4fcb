"""A float64's bits as an integer and back: intrinsics, so that kernels still vectorise."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def bits_of(typing_context: Any, value: Any) -> Any:
    """The float64's 64 bits as an int64. Only inside a kernel."""
    if value != types.float64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(value), generate


@intrinsic
def float_of(typing_context: Any, bits: Any) -> Any:
    """The float64 with an int64's bits. Only inside a kernel."""
    if bits != types.int64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(bits), generate
