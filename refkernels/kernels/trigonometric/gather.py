"""Table look-ups for kernels that LLVM vectorises, without the processor's gather instruction.

Many x86 processors run a gather as slow microcode (the mitigation of a data leak): three gathers
took three quarters of the time of a sine. Plain loads of whole rows and a 4 x 4 transpose in
registers are exact copies too, and several times as fast.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic.compiler import intrinsic, ir, types
from refkernels.arithmetic.jit import inner, njit

WIDTH = 256  # elements of a block, a multiple of 4


@intrinsic
def _copy_rows(
    typing_context: Any, table: Any, a: Any, b: Any, c: Any, d: Any, columns: Any, at: Any
) -> Any:
    """columns[k, at .. at + 3] = table[a, k], table[b, k], table[c, k], table[d, k], k = 0, 1, 2.

    table: (n, 4), columns: (3, WIDTH), float64, contiguous; indices are uint64, and in range.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row, index_row = (ir.VectorType(kind, 4) for kind in (ir.DoubleType(), ir.IntType(32)))

        def data(k: int) -> Any:
            array = context.make_array(signature.args[k])
            return array(context, builder, value=arguments[k]).data

        def place(base: Any, offset: Any) -> Any:
            return builder.bitcast(builder.gep(base, [offset]), row.as_pointer())

        def mixed(left: Any, right: Any, lanes: list[int]) -> Any:
            return builder.shuffle_vector(left, right, ir.Constant(index_row, lanes))

        rows = []
        for index in arguments[1:5]:
            rows.append(builder.load(place(data(0), builder.shl(index, index.type(2)))))
            rows[-1].align = 8
        even = [mixed(rows[k], rows[k + 1], [0, 4, 2, 6]) for k in (0, 2)]
        odd = [mixed(rows[k], rows[k + 1], [1, 5, 3, 7]) for k in (0, 2)]
        transposed = [
            mixed(even[0], even[1], [0, 1, 4, 5]),
            mixed(odd[0], odd[1], [0, 1, 4, 5]),
            mixed(even[0], even[1], [2, 3, 6, 7]),
        ]
        for k, column in enumerate(transposed):
            offset = builder.add(arguments[6], arguments[6].type(k * WIDTH))
            builder.store(column, place(data(5), offset)).align = 8
        return context.get_dummy_value()

    word = types.uint64
    return types.void(table, word, word, word, word, columns, word), generate


@njit(inline="always")
def exponent(bits: Any) -> Any:
    """The biased exponent of a float32, from its bits."""
    return np.uint64((bits >> np.uint32(23)) & np.uint32(0xFF))


@inner
def look_up(table: Any, bits: Any, columns: Any) -> None:
    """columns[k, j] = table[exponent of bits[j], k] for k = 0, 1, 2; at most WIDTH elements."""
    whole = bits.size - bits.size % 4
    for j in range(0, whole, 4):
        a, b = exponent(bits[j]), exponent(bits[j + 1])
        c, d = exponent(bits[j + 2]), exponent(bits[j + 3])
        _copy_rows(table, a, b, c, d, columns, np.uint64(j))
    for j in range(whole, bits.size):
        row = exponent(bits[j])
        columns[0, j], columns[1, j], columns[2, j] = table[row, 0], table[row, 1], table[row, 2]
