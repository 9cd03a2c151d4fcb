"""The inner loops: one block of terms of many dot products side by side, eight lanes a vector.

Every lane does the same operations in the same order, so an element's bits depend neither on the
tile that it is computed in nor on the machine's vectors. The proofs are in `dot2` and `slices`.

All take 1-d float64 arrays. Lane (r, l) of a tile of rows x W lanes, W = vectors * WIDTH, adds the
sum of the terms a[a_at + step k + r] b[b_at + W k + l], k < terms (elementwise: a[a_at + W k + l]),
to its pair high + low ± radius: the high parts are at state[place + W r + l], the low parts
rows * W further, the radii as far again.
"""

import functools
from collections.abc import Callable
from typing import Any

from refkernels.arithmetic import vectors
from refkernels.arithmetic.compiler import cgutils, intrinsic, types
from refkernels.arithmetic.vectors import WIDTH

DOT2_ROWS, DOT2_VECTORS = 2, 3  # 18 accumulators of AVX-512's 32 registers
SLICES_ROWS, SLICES_VECTORS = 2, 4  # 16 accumulators, and as many anchors, idle till the end


@functools.cache
def _kinds() -> tuple[Any, Any]:
    """The types of an array and of an index."""
    return types.Array(types.float64, 1, "C"), types.intp


def _dot2(rows: int, across: int, elementwise: bool) -> Any:
    """(a, a_at, step, b, b_at, terms, state, place, error): Dot2 with a radius of error * d."""
    tile = rows * across

    @intrinsic
    def accumulate(
        typing_context: Any, a: Any, a_at: Any, step: Any, b: Any, b_at: Any, terms: Any,
        state: Any, place: Any, error: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            call = _IntrinsicCall(context, builder, signature, arguments)
            sums = [[vectors.zeros(builder) for _ in "scd"] for _ in range(tile)]

            def each(n: int, left: Any, right: Any) -> None:
                _dot2_step(builder, sums[n], left, right)

            call.loop(rows, across, elementwise, each)
            factor = vectors.spread(builder, arguments[8])
            for n, block in enumerate(sums):
                s, c, d = (builder.load(part) for part in block)
                _fold(builder, call.state(n, tile), s, c, builder.fmul(factor, d))
            return context.get_dummy_value()

        floats, index = _kinds()
        if (a, b, state) != (floats,) * 3:
            return None
        parameters = floats, index, index, floats, index, index, floats, index, types.float64
        return types.void(*parameters), generate

    return accumulate


def _slices(rows: int, across: int) -> Any:
    """(a, a_at, step, b, b_at, terms, state, place, alpha, i, beta, j): products cut at the last
    place of the anchor alpha[i + r] * beta[j + l]; the errors of the block's own sums are left to
    `slices`."""
    tile = rows * across

    @intrinsic
    def accumulate(
        typing_context: Any, a: Any, a_at: Any, step: Any, b: Any, b_at: Any, terms: Any,
        state: Any, place: Any, alpha: Any, i: Any, beta: Any, j: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            call = _IntrinsicCall(context, builder, signature, arguments)
            anchors = []
            for n in range(tile):
                row = vectors.broadcast(builder, call.data(8), arguments[9], n // across)
                lanes = n % across * WIDTH
                column = vectors.load(builder, call.data(10), arguments[11], lanes)
                anchors.append(builder.fmul(row, column))
            sums = [[vectors.zeros(builder) for _ in "sc"] for _ in range(tile)]
            for (s, _), anchor in zip(sums, anchors, strict=True):
                builder.store(anchor, s)

            def each(n: int, left: Any, right: Any) -> None:
                _slices_step(builder, sums[n], left, right)

            call.loop(rows, across, False, each)
            for n, (s, c) in enumerate(sums):
                high = builder.fsub(builder.load(s), anchors[n])
                _fold(builder, call.state(n, tile), high, builder.load(c), None)
            return context.get_dummy_value()

        floats, index = _kinds()
        if (a, b, state, alpha, beta) != (floats,) * 5:
            return None
        parameters = floats, index, index, floats, index, index, floats, index
        return types.void(*parameters, floats, index, floats, index), generate

    return accumulate


class _IntrinsicCall:
    """One use of an intrinsic; all begin with a, a_at, step, b, b_at, terms, state, place."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder = context, builder
        self.signature, self.arguments = signature, arguments

    def data(self, n: int) -> Any:
        make = self.context.make_array(self.signature.args[n])
        return make(self.context, self.builder, self.arguments[n]).data

    def state(self, n: int, tile: int) -> list[Any]:
        """Where vector n of the tile keeps its high, low and radius."""
        data, place = self.data(6), self.arguments[7]
        return [
            vectors.at(self.builder, data, place, (part * tile + n) * WIDTH) for part in range(3)
        ]

    def loop(
        self, rows: int, across: int, elementwise: bool, each: Callable[[int, Any, Any], None]
    ) -> None:
        """each(n, a's vector, b's vector) for every vector of the tile, term after term."""
        builder, data_a, data_b = self.builder, self.data(0), self.data(3)
        _, a_at, step, _, b_at, terms, *_ = self.arguments
        with cgutils.for_range(builder, terms) as loop:
            lanes = builder.mul(loop.index, terms.type(across * WIDTH))
            here_b = builder.add(b_at, lanes)
            further_a = lanes if elementwise else builder.mul(loop.index, step)
            here_a = builder.add(a_at, further_a)
            right = [vectors.load(builder, data_b, here_b, v * WIDTH) for v in range(across)]
            for n in range(rows * across):
                if elementwise:
                    left = vectors.load(builder, data_a, here_a, n * WIDTH)
                else:
                    left = vectors.broadcast(builder, data_a, here_a, n // across)
                each(n, left, right[n % across])


def _dot2_step(builder: Any, accumulators: list[Any], a: Any, b: Any) -> None:
    """One term of Dot2 (Ogita, Rump, Oishi 2005, algorithm 5.3), and d = fl(d + |t|)."""
    s, c, d = (builder.load(accumulator) for accumulator in accumulators)
    p = builder.fmul(a, b)
    pi = vectors.fma(builder, a, b, builder.fneg(p))
    total, sigma = vectors.two_sum(builder, s, p)
    t = builder.fadd(pi, sigma)
    after = total, builder.fadd(c, t), builder.fadd(d, vectors.magnitude(builder, t))
    for accumulator, value in zip(accumulators, after, strict=True):
        builder.store(value, accumulator)


def _slices_step(builder: Any, accumulators: list[Any], a: Any, b: Any) -> None:
    """One term: s' = fl(a b + s), q = s' - s, c = fl(c + fl(a b - q))."""
    s, c = (builder.load(accumulator) for accumulator in accumulators)
    total = vectors.fma(builder, a, b, s)
    q = builder.fsub(total, s)
    low_slice = vectors.fma(builder, a, b, builder.fneg(q))
    builder.store(total, accumulators[0])
    builder.store(builder.fadd(c, low_slice), accumulators[1])


def _fold(builder: Any, pointers: list[Any], s: Any, c: Any, error: Any) -> None:
    """Adds a block's s + c ± error to the pair, and measures the roundings of its low part."""
    high, low, radius = (builder.load(pointer, align=8) for pointer in pointers)
    total, e = vectors.two_sum(builder, high, s)
    x, first = vectors.two_sum(builder, c, e)
    new_low, second = vectors.two_sum(builder, low, x)
    lost = builder.fadd(vectors.magnitude(builder, first), vectors.magnitude(builder, second))
    wider = builder.fadd(radius, lost if error is None else builder.fadd(error, lost))
    for pointer, value in zip(pointers, (total, new_low, wider), strict=True):
        builder.store(value, pointer, align=8)


dot2_wide = _dot2(DOT2_ROWS, DOT2_VECTORS, elementwise=False)
dot2_narrow = _dot2(1, 1, elementwise=False)
dot2_pairs = _dot2(1, 1, elementwise=True)
slices_wide = _slices(SLICES_ROWS, SLICES_VECTORS)
