"""fma(a, b, c) = fl(a * b + c), rounded once: an intrinsic, because Numba does not type math.fma.

LLVM lowers it to one instruction where the processor has it and to the C library's correctly
rounded function elsewhere, so the bits are the same everywhere.
"""

from typing import Any

from refkernels.arithmetic.compiler import intrinsic, ir, types


@intrinsic
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """fl(a * b + c) for three scalars of one type, float32 or float64. Only inside a kernel.

    Source: IEEE 754-2019, fusedMultiplyAdd.
    """
    if not (a == b == c) or a not in (types.float32, types.float64):
        return None
    width = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}[a]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function_type = ir.FunctionType(width, [width, width, width])
        return builder.call(
            builder.module.declare_intrinsic("llvm.fma", [width], function_type), arguments
        )

    return a(a, b, c), generate
