"""Loops over rows and over columns whose sums stay in registers, each made from one step.

step(builder, values, numbers, tallies) writes the instructions for one element of each array, or
for eight neighbours of each: `values` are the elements as float64, `numbers` the constants of the
row, and the list `tallies` holds the running sums and maxima, which the step updates. Its result is
written to the last array. Every element gets the same operations in the same order and lane, so the
bits depend neither on how many are taken at a time nor on the machine's vectors.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from refkernels.arithmetic import vectors
from refkernels.arithmetic.compiler import cgutils, intrinsic, ir, types
from refkernels.arithmetic.vectors import WIDTH

_VECTORS = 4  # a row's sums take 16 of AVX-512's 32 registers at most
LANES = _VECTORS * WIDTH
STRIP = 2 * WIDTH  # columns side by side: their sums take 12 registers, a float32 line's worth

Step = Callable[[Any, list[Any], list[Any], list[Any]], Any]


class PassCounts(NamedTuple):
    """One tally of a row pass: its kind and its start, which is numbers[start], or 0 where `start`
    is None.

    "sum", and after it "error": s and c of a compensated sum in LANES lanes, folded into
    (hi, lo) = two_sum(s, c). "plain", "top", "low": a plain sum, the largest and the least, in
    WIDTH lanes.
    """

    kind: str
    start: int | None = None

    @property
    def across(self) -> int:
        """The number of its vectors."""
        return _VECTORS if self.kind in ("sum", "error") else 1


def row_pass(step: Step, tallies: Sequence[PassCounts], writes: bool = False) -> Any:
    """An intrinsic (arrays, numbers) -> the tallies, folded, as a tuple.

    arrays: a tuple of contiguous float32 or float64 arrays (n,), the last of which, float64, is
    written where `writes`; n is the first one's length. numbers: a tuple of float64.
    Element j goes to lane j mod LANES, or j mod WIDTH; lanes are folded in halves.
    """

    @intrinsic
    def run(typing_context: Any, arrays: Any, numbers: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            call = _RowPass(context, builder, signature, arguments, step, tallies, writes)
            call.whole_groups()
            call.last_elements()
            return context.make_tuple(builder, signature.return_type, call.folded())

        if not all(_is_floats(array, 1) for array in arrays):
            return None
        if writes and arrays[-1].dtype != types.float64:
            return None
        return types.UniTuple(types.float64, len(tallies))(arrays, numbers), generate

    return run


def column_pass(step: Step, constants: int, tallies: int) -> Any:
    """An intrinsic (arrays, numbers, first, last, columns): tallies of columns, over some rows.

    arrays: a tuple of contiguous arrays (rows, n), of which rows first to last are taken, in order.
    numbers (at least last - first, constants), float64: in row i those of row first + i. columns,
    float64: tally t of column j is at (j // STRIP * tallies + t) * STRIP + j % STRIP.
    """

    @intrinsic
    def run(
        typing_context: Any, arrays: Any, numbers: Any, first: Any, last: Any, columns: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            call = _ColumnPass(context, builder, signature, arguments, step, constants, tallies)
            strips = builder.sdiv(call.n, call.n.type(STRIP))
            with cgutils.for_range(builder, strips) as loop:
                call.columns(builder.mul(loop.index, call.n.type(STRIP)), STRIP // WIDTH)
            done = builder.mul(strips, call.n.type(STRIP))
            with cgutils.for_range(builder, builder.sub(call.n, done)) as loop:
                call.columns(builder.add(done, loop.index), None)
            return context.get_dummy_value()

        if not all(_is_floats(array, 2) for array in (*arrays, numbers)):
            return None
        return types.void(arrays, numbers, types.intp, types.intp, columns), generate

    return run


def _is_floats(array: Any, ndim: int) -> bool:
    floats = isinstance(array, types.Array) and array.dtype in (types.float32, types.float64)
    return floats and array.ndim == ndim and array.layout == "C"


def _arrays(context: Any, builder: Any, kinds: Any, values: Any) -> list[Any]:
    """The arrays of a tuple."""
    parts = cgutils.unpack_tuple(builder, values, len(kinds))
    pairs = zip(kinds, parts, strict=True)
    return [context.make_array(kind)(context, builder, part) for kind, part in pairs]


class _RowPass:
    """One use of a row pass."""

    def __init__(
        self,
        context: Any,
        builder: Any,
        signature: Any,
        arguments: Any,
        step: Step,
        tallies: Sequence[PassCounts],
        writes: bool,
    ) -> None:
        arrays = _arrays(context, builder, signature.args[0], arguments[0])
        self.builder, self.step, self.tallies = builder, step, tallies
        self.n = builder.extract_value(arrays[0].shape, 0)
        pointers = [array.data for array in arrays]
        self.target = pointers.pop() if writes else None
        self.sources = pointers
        self.numbers = cgutils.unpack_tuple(builder, arguments[1], len(signature.args[1]))
        self.spread = [vectors.spread(builder, number) for number in self.numbers]
        self.registers = [[vectors.zeros(builder) for _ in range(t.across)] for t in tallies]
        for tally, held in zip(tallies, self.registers, strict=True):
            if tally.start is not None:
                for register in held:
                    builder.store(self.spread[tally.start], register)

    def whole_groups(self) -> None:
        """Emits the loop over LANES elements at a time."""
        builder, lanes = self.builder, self.n.type(LANES)
        with cgutils.for_range(builder, builder.sdiv(self.n, lanes)) as loop:
            start = builder.mul(loop.index, lanes)
            for v in range(_VECTORS):
                held = [registers[v % len(registers)] for registers in self.registers]
                values = [vectors.load(builder, p, start, v * WIDTH) for p in self.sources]
                counted = [builder.load(register) for register in held]
                result = self.step(builder, values, self.spread, counted)
                for register, value in zip(held, counted, strict=True):
                    builder.store(value, register)
                if self.target is not None:
                    place = vectors.at(builder, self.target, start, v * WIDTH)
                    builder.store(result, place, align=8)

    def last_elements(self) -> None:
        """Emits the loop over the row's last elements, one at a time, with the lanes in memory."""
        builder, integer = self.builder, self.n.type
        remaining = builder.srem(self.n, integer(LANES))
        with builder.if_then(builder.icmp_signed(">", remaining, integer(0)), likely=False):
            lanes = cgutils.alloca_once(builder, ir.DoubleType(), size=len(self.tallies) * LANES)
            places = [
                (register, vectors.at(builder, lanes, integer(t * LANES), v * WIDTH))
                for t, held in enumerate(self.registers)
                for v, register in enumerate(held)
            ]
            for register, place in places:
                builder.store(builder.load(register), place, align=8)
            begin = builder.sub(self.n, remaining)
            with cgutils.for_range(builder, remaining) as loop:
                self._element(loop.index, builder.add(begin, loop.index), lanes)
            for register, place in places:
                builder.store(builder.load(place, align=8), register)

    def _element(self, k: Any, j: Any, lanes: Any) -> None:
        """Element j, in lane k."""
        builder = self.builder
        held = []
        for t, tally in enumerate(self.tallies):
            lane = builder.and_(k, k.type(tally.across * WIDTH - 1))
            held.append(builder.gep(lanes, [builder.add(lane, k.type(t * LANES))]))
        read = [builder.load(builder.gep(pointer, [j])) for pointer in self.sources]
        counted = [builder.load(place) for place in held]
        values = [vectors.widened(builder, value) for value in read]
        result = self.step(builder, values, list(self.numbers), counted)
        for place, value in zip(held, counted, strict=True):
            builder.store(value, place)
        if self.target is not None:
            builder.store(result, builder.gep(self.target, [j]))

    def folded(self) -> list[Any]:
        """The tallies as scalars."""
        builder = self.builder
        scalars: list[Any] = []
        loaded = [[builder.load(register) for register in held] for held in self.registers]
        for t, (tally, lanes) in enumerate(zip(self.tallies, loaded, strict=True)):
            if tally.kind == "sum":
                scalars.extend(_fold_sum(builder, lanes, loaded[t + 1]))
            elif tally.kind != "error":
                scalars.append(_fold(builder, tally.kind, lanes[0]))
        return scalars


def _fold_sum(builder: Any, s: list[Any], c: list[Any]) -> tuple[Any, Any]:
    """(hi, lo) of the lanes of a compensated sum."""

    def merged(s: Any, c: Any, s_other: Any, c_other: Any) -> tuple[Any, Any]:
        total, e = vectors.two_sum(builder, s, s_other)
        return total, builder.fadd(builder.fadd(c, c_other), e)

    while len(s) > 1:
        half = len(s) // 2
        pairs = [merged(s[k], c[k], s[half + k], c[half + k]) for k in range(half)]
        s, c = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    high, low = s[0], c[0]
    for lanes in (4, 2, 1):
        turned = vectors.turned(builder, high, lanes), vectors.turned(builder, low, lanes)
        high, low = merged(high, low, *turned)
    return vectors.two_sum(
        builder, vectors.first_lane(builder, high), vectors.first_lane(builder, low)
    )


def _fold(builder: Any, kind: str, values: Any) -> Any:
    """One tally of eight lanes."""
    joined = {"top": vectors.larger, "low": vectors.smaller}
    for lanes in (4, 2, 1):
        turned = vectors.turned(builder, values, lanes)
        if kind == "plain":
            values = builder.fadd(values, turned)
        else:
            values = joined[kind](builder, values, turned)
    return vectors.first_lane(builder, values)


class _ColumnPass:
    """One use of a column pass."""

    def __init__(
        self,
        context: Any,
        builder: Any,
        signature: Any,
        arguments: Any,
        step: Step,
        constants: int,
        tallies: int,
    ) -> None:
        arrays = _arrays(context, builder, signature.args[0], arguments[0])
        numbers, held = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (1, 4)
        )
        self.builder, self.step, self.tallies = builder, step, tallies
        self.n = builder.extract_value(arrays[0].shape, 1)
        self.sources = [array.data for array in arrays]
        self.numbers, self.per_row = numbers.data, builder.extract_value(numbers.shape, 1)
        self.constants = constants
        self.first, self.last = arguments[2:4]
        self.held = held.data

    def columns(self, j: Any, across: int | None) -> None:
        """Emits the columns from j: that many vectors of them, or one column where `across` is
        None."""
        builder, integer = self.builder, j.type
        inside = builder.srem(j, integer(STRIP))
        start = builder.add(builder.mul(builder.sub(j, inside), integer(self.tallies)), inside)
        held = []  # for each vector, where its tallies are kept and the registers that hold them
        for v in range(across or 1):
            steps = [t * STRIP + v * WIDTH for t in range(self.tallies)]
            places = [self._place(self.held, start, step, across) for step in steps]
            inner = [builder.load(place, align=8) for place in places]
            registers = [cgutils.alloca_once_value(builder, value) for value in inner]
            held.append(list(zip(places, registers, strict=True)))
        with cgutils.for_range(builder, builder.sub(self.last, self.first)) as loop:
            row = builder.add(builder.mul(builder.add(self.first, loop.index), self.n), j)
            numbers = self._numbers(loop.index, across)
            for v, pairs in enumerate(held):
                read = [self._place(p, row, v * WIDTH, across) for p in self.sources]
                values = [vectors.widened(builder, builder.load(p, align=4)) for p in read]
                counted = [builder.load(register) for _, register in pairs]
                self.step(builder, values, numbers, counted)
                for (_, register), value in zip(pairs, counted, strict=True):
                    builder.store(value, register)
        for place, register in (pair for pairs in held for pair in pairs):
            builder.store(builder.load(register), place, align=8)

    def _place(self, pointer: Any, offset: Any, further: int, across: int | None) -> Any:
        """The address of a vector or of a number."""
        if across is not None:
            return vectors.at(self.builder, pointer, offset, further)
        return self.builder.gep(pointer, [self.builder.add(offset, offset.type(further))])

    def _numbers(self, i: Any, across: int | None) -> list[Any]:
        """The step's numbers for row i."""
        builder = self.builder
        row = builder.mul(i, self.per_row)
        places = [
            builder.gep(self.numbers, [builder.add(row, row.type(k))])
            for k in range(self.constants)
        ]
        loaded = [builder.load(place) for place in places]
        return loaded if across is None else [vectors.spread(builder, number) for number in loaded]
