"""Vectors of eight float64 in LLVM's intermediate representation, for the inner loops of kernels.

Left to itself, LLVM keeps accumulators in memory and prefers vectors of half the width; written out
here, they stay in registers. (Compilers for narrower machines split each vector.) Each function
takes the builder first and stands for one operation in every lane, rounded as IEEE 754 says:
nothing here may be reassociated or contracted. Arithmetic takes single numbers as well, so that
the same code computes the last few terms of a loop.
"""

import functools
from typing import Any

from refkernels.arithmetic.compiler import cgutils, intrinsic, ir, types

WIDTH = 8  # lanes of a vector: what AVX-512 holds


@functools.cache
def _index() -> Any:
    return ir.IntType(32)


@functools.cache
def _vector() -> Any:
    return ir.VectorType(ir.DoubleType(), WIDTH)


def _undefined() -> Any:
    return ir.Constant(_vector(), ir.Undefined)


def zeros(builder: Any) -> Any:
    """A stack slot (eventually a register) that holds zeros."""
    return cgutils.alloca_once_value(builder, ir.Constant(_vector(), [0.0] * WIDTH))


def at(builder: Any, pointer: Any, offset: Any, further: int) -> Any:
    """The address of the vector whose first lane is pointer[offset + further]."""
    index = builder.add(offset, offset.type(further))
    vector = ir.VectorType(pointer.type.pointee, WIDTH)
    return builder.bitcast(builder.gep(pointer, [index]), vector.as_pointer())


def load(builder: Any, pointer: Any, offset: Any, further: int) -> Any:
    """Eight neighbours, float64 or float32, as float64; aligned as single numbers are."""
    size = 4 if pointer.type.pointee == ir.FloatType() else 8
    return widened(builder, builder.load(at(builder, pointer, offset, further), align=size))


def widened(builder: Any, values: Any) -> Any:
    """float32 as float64; float64 as it is."""
    if values.type == ir.FloatType():
        return builder.fpext(values, ir.DoubleType())
    if values.type == ir.VectorType(ir.FloatType(), WIDTH):
        return builder.fpext(values, _vector())
    return values


def broadcast(builder: Any, pointer: Any, offset: Any, further: int) -> Any:
    """One number in every lane."""
    index = builder.add(offset, offset.type(further))
    return spread(builder, builder.load(builder.gep(pointer, [index])))


def spread(builder: Any, scalar: Any) -> Any:
    """A scalar in every lane."""
    first = builder.insert_element(_undefined(), scalar, _index()(0))
    everywhere = ir.Constant(ir.VectorType(_index(), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, _undefined(), everywhere)


def turned(builder: Any, values: Any, lanes: int) -> Any:
    """Lane k moves to lane k - lanes, the first lanes to the end."""
    order = [(k + lanes) % WIDTH for k in range(WIDTH)]
    mask = ir.Constant(ir.VectorType(_index(), WIDTH), order)
    return builder.shuffle_vector(values, _undefined(), mask)


def first_lane(builder: Any, values: Any) -> Any:
    """Lane 0 as a scalar."""
    return builder.extract_element(values, _index()(0))


def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """The fallback of `arithmetic.fma`."""
    return _intrinsic(builder, "fma", a, b, c)


def two_sum(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The fallback of `eft.two_sum`."""
    total = builder.fadd(a, b)
    b_seen = builder.fsub(total, a)
    a_seen = builder.fsub(total, b_seen)
    return total, builder.fadd(builder.fsub(a, a_seen), builder.fsub(b, b_seen))


def magnitude(builder: Any, values: Any) -> Any:
    """|values|."""
    return _intrinsic(builder, "fabs", values)


def larger(builder: Any, a: Any, b: Any) -> Any:
    """a where a > b, else b: b, too, where one of them is NaN."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def smaller(builder: Any, a: Any, b: Any) -> Any:
    """a where a < b, else b: b, too, where one of them is NaN."""
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _intrinsic(builder: Any, name: str, *arguments: Any) -> Any:
    kind = arguments[0].type
    suffix = f"v{WIDTH}f64" if kind == _vector() else "f64"
    function_type = ir.FunctionType(kind, [kind] * len(arguments))
    function = cgutils.get_or_insert_function(
        builder.module, function_type, f"llvm.{name}.{suffix}"
    )
    return builder.call(function, arguments)


@intrinsic
def full_width(typing_context: Any) -> Any:
    """Lets LLVM vectorise the loops of this kernel as widely as the processor can. On many it
    prefers half the width, to suit code with few such loops."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite's API knows only attributes without a value, but writes whatever the set holds.
        set.add(builder.function.attributes, f'"prefer-vector-width"="{64 * WIDTH}"')
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def select(typing_context: Any, condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b; both are computed. Unlike `a if condition else b` it
    never becomes a branch, which would keep a loop from vectorising."""
    if condition != types.boolean or not a == b == types.float64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return types.float64(condition, a, b), generate


@intrinsic
def distinct(typing_context: Any) -> Any:
    """Tells LLVM that no two of this kernel's arguments, arrays of numbers, share memory that one
    of them writes: a loop over many arrays has more pairs than LLVM would check at run time."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = ir.DoubleType(), ir.FloatType(), ir.IntType(8)
        for argument in context.call_conv.get_arguments(builder.function):
            kind = argument.type
            if isinstance(kind, ir.PointerType) and kind.pointee in numbers:
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return types.none(), generate
