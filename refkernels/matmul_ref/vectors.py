"""Vectors of eight float64 in LLVM's intermediate representation, for the inner loops of `lanes`.

Left to itself, LLVM keeps accumulators in memory and prefers vectors of half the width; spelled
out, they stay in registers. (Compilers for narrower machines split each vector.) Each function
takes the builder first and stands for one operation in every lane, rounded as IEEE 754 says:
nothing here may be reassociated or contracted.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

WIDTH = 8  # lanes of a vector: what AVX-512 holds

_INDEX = ir.IntType(32)
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_ZERO = ir.Constant(_VECTOR, [0.0] * WIDTH)


def zeros(builder: Any) -> Any:
    """A place on the stack (in the end, a register) that holds zeros."""
    return cgutils.alloca_once_value(builder, _ZERO)


def at(builder: Any, pointer: Any, offset: Any, further: int) -> Any:
    """The address of the vector whose first lane is pointer[offset + further]."""
    index = builder.add(offset, offset.type(further))
    return builder.bitcast(builder.gep(pointer, [index]), _VECTOR.as_pointer())


def load(builder: Any, pointer: Any, offset: Any, further: int) -> Any:
    """Eight neighbours, aligned as single numbers are."""
    return builder.load(at(builder, pointer, offset, further), align=8)


def broadcast(builder: Any, pointer: Any, offset: Any, further: int) -> Any:
    """One number in every lane."""
    index = builder.add(offset, offset.type(further))
    return spread(builder, builder.load(builder.gep(pointer, [index])))


def spread(builder: Any, scalar: Any) -> Any:
    """A scalar in every lane."""
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, scalar, _INDEX(0))
    everywhere = ir.Constant(ir.VectorType(_INDEX, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(one, undefined, everywhere)


def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """The vector twin of `arithmetic.fma`."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fma.v{WIDTH}f64"
    )
    return builder.call(function, [a, b, c])


def two_sum(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The vector twin of `eft.two_sum`."""
    total = builder.fadd(a, b)
    b_seen = builder.fsub(total, a)
    a_seen = builder.fsub(total, b_seen)
    return total, builder.fadd(builder.fsub(a, a_seen), builder.fsub(b, b_seen))


def magnitude(builder: Any, values: Any) -> Any:
    """|values|."""
    absolute = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.fabs.v{WIDTH}f64"
    )
    return builder.call(absolute, [values])
