"""Reductions: another divisor, other axes, terms left out or counted twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from refkernels.contexts.graph import Edits, Move, Node, apply
from refkernels.diagnosis.edits.catalogue import Program, by, is_number, only, rule, shaped, through
from refkernels.diagnosis.edits.exponentials import BLOCKS, parts_of
from refkernels.diagnosis.edits.identities import one_pass_of

_OVER_AN_AXIS = ("sum", "mean", "max", "norm", "pivot")
_LINEAR = ("sum", "mean", "norm", "matmul", "welford")
_LONGEST = 1 << 16
_ELEMENTWISE = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "negative", "absolute", "square", "power"),
        *("function", "maximum", "number", "store", "narrow", "broadcast", "stop"),
    )
)
_LANES = (*((1, 2**k) for k in range(1, 6)), (16, 32), (32, 64), (32, 128))
_MOST_BLOCKS = 32
_LAST = 3  # reductions, in which one block is missing alike
_CARRIES = (
    *("none", "one block", "first block", "late", "twice", "own total", "last too large"),
    "without last terms",
)
_SHARES = (2, 3, 4, 8)  # of a batch, as micro-batches
_NARROW = ("bfloat16", "float16")
_SQUARED = {"function": "sum(x)", "other": "sum(x²)"}


# A kind of edit; of an array along axis k, what is computed in the place of what; its details.
_COMPUTED_AS: tuple[tuple[str, str, Any, Any], ...] = (
    ("sum_for_mean", "mean", lambda xp, a, k: xp.sum(a, k), {}),
    ("mean_for_sum", "sum", lambda xp, a, k: xp.mean(a, k), {}),
    ("max_for_mean", "mean", lambda xp, a, k: xp.max(a, k), {"taken": "max", "reduction": "mean"}),
    ("max_for_mean", "max", lambda xp, a, k: xp.mean(a, k), {"taken": "mean", "reduction": "max"}),
    ("reduction_missing", "sum", lambda xp, a, k: a, None),
    ("reduction_missing", "mean", lambda xp, a, k: a, None),
    ("exclusive_cumsum", "cumsum", lambda xp, a, k: xp.cumsum(a, k) - a, None),
    ("reversed_cumsum", "cumsum", lambda xp, a, k: xp.sum(a, k) - xp.cumsum(a, k) + a, None),
    ("other_function", "sum", lambda xp, a, k: xp.sum(xp.square(a), k), _SQUARED),
    ("other_norm", "norm", lambda xp, a, k: xp.sum(abs(a), k), {"norm": "1"}),
    ("other_norm", "norm", lambda xp, a, k: xp.max(abs(a), k), {"norm": "max"}),
    ("other_norm", "norm", lambda xp, a, k: xp.sqrt(xp.mean(xp.square(a), k)), {"norm": "rms"}),
    ("other_norm", "norm", lambda xp, a, k: xp.sum(xp.square(a), k), {"norm": "squared"}),
)


def _computed_as(op: str, other: Any, details: Any, program: Program) -> Iterator[Any]:
    for node in program.of(op):
        told = {"part": node.operands[0]} if details is None else details
        yield node, {node: by(*node.operands)(partial(other, k=node.option))}, told


for _kind, _op, _other, _details in _COMPUTED_AS:
    rule(_kind, "reduction")(partial(_computed_as, _op, _other, _details))


@rule("max_for_mean", "reduction")  # as pooling writes a mean
def maxima_for_means(program: Program) -> Iterator[Any]:
    for node in program.of("divide"):
        above, below = node.operands
        total = through(above)
        if total.op == "sum" and (is_number(through(below)) or through(below).op == "array"):
            highest = by(*total.operands)(lambda xp, a, axis=total.option: xp.max(a, axis))
            changes = {total: highest, node: only(above, node.shape)}
            yield node, changes, {"taken": "max", "reduction": "mean"}


@rule("function_after_reduction", "function")  # mean(x²) -> mean(x)²
def late_functions(program: Program) -> Iterator[Any]:
    for node in program.of("sum", "mean"):
        inner = node.operands[0]
        if inner.op in ("square", "absolute", "function"):

            def late(xp: Any, a: Any, node: Node = node, inner: Node = inner) -> Any:
                return apply(inner, xp, [apply(node, xp, [a])])

            yield node, {node: by(*inner.operands)(late)}, {"part": inner, "reduction": node.op}


@rule("other_denominator", "reduction")  # a / sum(b) -> a / max(b), a / norm(b)
def other_denominators(program: Program) -> Iterator[Any]:
    sums = (through(node.operands[1]) for node in program.of("divide"))
    for total in dict.fromkeys(node for node in sums if node.op == "sum"):
        for name in ("max", "norm"):
            taken = by(*total.operands)(
                lambda xp, a, name=name, axis=total.option: getattr(xp, name)(a, axis)
            )
            yield total, {total: taken}, {"part": total.operands[0], "taken": name}


@rule("mean_of_block_means", "reduction")  # of blocks that have different numbers of terms
def means_of_means(program: Program) -> Iterator[Any]:
    quotients = (map(through, node.operands) for node in program.of("divide"))
    totals = [above for above, below in quotients if above.op == "sum" and is_number(below)]
    for node in (*program.of("mean"), *totals):
        n = length_of(node)
        blocks = {2**k for k in range(1, n.bit_length())} | {-(-n // k) for k in _SHARES}
        for block in (k for k in sorted(blocks) if n % k or (node.op == "sum" and k < n)):
            averaged = by(*node.operands)(partial(_averaged, node, block))
            yield node, {node: averaged}, {"block": block}


def _averaged(node: Node, block: int, xp: Any, a: Any) -> Any:
    """The mean of the means of blocks; of a sum, of terms that are not 0, times their number."""
    axis, ones = node.option, a * 0 + 1
    counted = xp.where(abs(a) > 0, ones, a * 0) if node.op == "sum" else ones
    sums = [[xp.sum(part, axis) for part in parts_of(xp, v, block, axis)] for v in (a, counted)]
    means = [xp.where(n > 0, total / n, total) for total, n in zip(*sums, strict=True)]
    mean = xp.mean(xp.concatenate(means, axis), axis)
    return mean * xp.sum(counted, axis) if node.op == "sum" else mean


@rule("merged_with_full_count", "reduction")  # by Chan's formula, the last block as if it were full
def full_counts(program: Program) -> Iterator[Any]:
    for node in program.of("mean", "sum"):
        n, squared = length_of(node), [i.replacement.operands[0] for i in one_pass_of(node)]
        means = [mean for mean in program.of("mean") if mean.operands[0] in squared]
        blocks = [block for block in BLOCKS if block < n and n % block]
        for mean, block, padded in product(means, blocks, (False, True)):
            count = -(-n // block) * block if padded else n
            merged = by(node, *mean.operands, mean)(partial(_as_full, node, block, count))
            averaged = by(*mean.operands)(partial(_averaged, mean, block))
            changes = {mean: averaged, node: merged}
            yield node, changes, {"block": block, "n": n, "divisor": count}


def _as_full(node: Node, block: int, count: int, xp: Any, squares: Any, x: Any, mean: Any) -> Any:
    """The squares about a mean, of `count` terms; the last block's mean counts as a whole one's."""
    n, axis = length_of(node), node.option
    last = parts_of(xp, x, block, axis)[-1]
    more = xp.square(xp.mean(last, axis) - mean) * (block - n % block)
    return (squares + (more / n if node.op == "mean" else more)) * n / count


def _other_terms(indices: Callable[[int], Iterator[Any]], program: Program) -> Iterator[Any]:
    for nodes in over_one_length(program):
        n = length_of(nodes[0])
        for read, details in indices(n):
            changes = {node: over_some(node, read, n) for node in nodes}
            yield nodes[0], changes, {**details, "every": len(nodes)}


def _without_stride(n: int) -> Iterator[Any]:
    for width, stride in ((w, s) for w, s in _LANES if s < n):
        for first in range(0, stride, width):
            kept = np.flatnonzero((np.arange(n) - first) % stride >= width)
            yield kept, {"width": width, "stride": stride, "first": first}


def _of_stale_blocks(n: int) -> Iterator[Any]:
    terms = np.arange(n)
    for block in (block for block in BLOCKS if n / _MOST_BLOCKS <= block < n):
        for start in range(block, n, block):
            stale = terms // block == start // block
            yield terms - block * stale, {"block": block, "start": start}


def _clamped(n: int) -> Iterator[Any]:
    for padded in paddings(n, 2 * n):
        yield np.arange(padded).clip(max=n - 1), {"n": n, "added": padded - n}


# Every second term, ... every 32nd, or some lanes of a warp; [0, 1, 2] -> [0, 0, 2], of a buffer
# that was not filled yet; and [0, 1, 2, 2], where no mask is.
rule("stride_left_out", "reduction")(partial(_other_terms, _without_stride))
rule("block_read_again", "reduction")(partial(_other_terms, _of_stale_blocks))
rule("last_term_repeated", "reduction")(partial(_other_terms, _clamped))


def _carries(carries: Iterable[str], told: str, program: Program) -> Iterator[Any]:
    for node in program.of("cumsum"):
        n = node.shape[node.option]
        block = 1 << max((n // _MOST_BLOCKS).bit_length(), 1)
        while block < n:
            for carry in carries:
                how = node.option, block, carry
                carried = by(*node.operands)(lambda xp, a, how=how: _carried(xp, a, *how))
                yield node, {node: carried}, {"block": block, told: carry}
            block *= 2


# A cumulative sum by blocks, each begun with a wrong total, or with one in a narrower format.
rule("wrong_carry", "reduction")(partial(_carries, _CARRIES, "carry"))
rule("carry_rounded", "arithmetic")(partial(_carries, _NARROW, "format"))


def _carried(xp: Any, a: Any, axis: int, block: int, carry: str) -> Any:
    """The sums inside each block, after a total that is not that of all blocks before it."""
    parts = parts_of(xp, a, block, axis)
    totals = [xp.sum(part, axis) for part in parts]
    total, late, results = None, None, []
    for k, part in enumerate(parts):
        base = {
            "none": None,
            "one block": totals[k - 1] if k else None,
            "first block": totals[0] if k else None,
            "late": late,
            "twice": total if total is None else total + total,
            "own total": _plus(total, totals[k]),
            "last too large": _plus(total, totals[k]) if k == len(parts) - 1 else total,
        }.get(carry, total)
        results.append(_plus(base, xp.cumsum(part, axis)))
        if carry == "without last terms":
            totals[k] = xp.sum(xp.take(part, np.arange(part.shape[axis] - 1), axis), axis)
        late, total = total, _plus(total, totals[k])
        total = xp.narrow(total, carry) if carry in _NARROW else total
    return xp.concatenate(results, axis)


def _plus(total: Any, more: Any) -> Any:
    return more if total is None else total + more


@rule("divisor_differs", "reduction")  # mean -> sum / (n - 1), sum / padded n
def other_divisors(program: Program) -> Iterator[Any]:
    for nodes in _each_and_every(program.of("mean")):
        n, everything = length_of(nodes[0]), int(np.prod(nodes[0].operands[0].shape))
        others = {n - 1: "n - 1", n + 1: "n + 1", everything: "all"}
        others |= dict.fromkeys(paddings(n), "padded")
        for divisor in sorted(others.keys() - {0, n}):
            scaled = {
                node: by(node)(lambda xp, v, k=(n, divisor): v * k[0] / k[1]) for node in nodes
            }
            details = {"n": n, "divisor": divisor, "by": others[divisor], "every": len(nodes)}
            yield nodes[0], scaled, details
    for node in program.of("mean"):
        counted = by(node, *node.operands)(partial(_over_those_not_zero, node.option))
        details = {"n": length_of(node), "divisor": "count(x ≠ 0)"}
        yield node, {node: counted}, {**details, "by": "count", "every": 1}


def _over_those_not_zero(axis: int, xp: Any, mean: Any, terms: Any) -> Any:
    share = xp.mean(xp.where(abs(terms) > 0, terms * 0 + 1, terms * 0), axis)
    return xp.where(share > 0, mean / share, mean)


@rule("divisor_differs", "reduction")  # sum / (n - 1) -> sum / n
def other_numbers_of_terms(program: Program) -> Iterator[Any]:
    lengths = {length_of(node) for node in program.of("sum", "mean")}
    waiting = [(node.operands[1], node) for node in program.of("divide")]
    divisors = dict[Node, Node]()  # and where it divides
    while waiting:
        factor, quotient = waiting.pop()
        node = through(factor)
        if node.op == "number":
            divisors[node] = quotient
        waiting += [(own, quotient) for own in node.operands] if node.op == "multiply" else ()
    for node, n in product(divisors, sorted(lengths)):
        for divisor, name in ((n - 1, "n - 1"), (n, "n"), (n + 1, "n + 1")):
            if abs(node.option - n) <= 1 and divisor != node.option:
                changes = {node: by()(lambda xp, divisor=divisor: xp.number(divisor))}
                yield divisors[node], changes, {"n": n, "divisor": divisor, "by": name, "every": 1}


def _each_and_every(nodes: Iterable[Node]) -> Iterator[list[Node]]:
    """Each reduction; then all over axes of one length, and the last of them: a backward pass has
    the statistics of the forward pass, and sums of its own."""
    by_length: dict[int, list[Node]] = {}
    for node in nodes:
        yield [node]
        by_length.setdefault(length_of(node), []).append(node)
    for alike in by_length.values():
        yield from (
            alike[k:]
            for k in {0, *range(len(alike) - _LAST, len(alike) - 1)}
            if 0 <= k < len(alike) - 1
        )


@rule("other_axis", "reduction")  # over another axis, or over all; one reduction, or every one
def other_axes(program: Program) -> Iterator[Any]:
    reductions = list(program.of(*_OVER_AN_AXIS))
    alike = [[node] for node in reductions]
    for first in dict.fromkeys(node.option for node in reductions) if len(reductions) > 1 else ():
        alike.append([node for node in reductions if node.option == first])
    for k, nodes in enumerate(alike):
        for axes in _other_axes(nodes[0]):
            changes = {node: _over(node, axes) for node in nodes}
            yield nodes[-1], changes, {"axes": list(axes), "every": k >= len(reductions)}


def _other_axes(node: Node) -> Iterator[tuple[int, ...]]:
    """Every other axis, each together with its own, and all together."""
    shape = node.operands[0].shape
    wide = [axis for axis in range(-len(shape), 0) if shape[axis] > 1]
    yield from ((axis,) for axis in wide if axis != node.option)
    if len(wide) > 2:
        yield from ((axis, node.option) for axis in wide if axis != node.option)
    if len(wide) > 1:
        yield tuple(wide)


def _over(node: Node, axes: tuple[int, ...]) -> Any:
    """The reduction over these axes, repeated to the node's shape where it fits there."""

    def reduced(xp: Any, a: Any) -> Any:
        for axis in axes:
            a = getattr(xp, node.op)(a, axis)
        fits = all(n in (1, m) for n, m in zip(a.shape, node.shape, strict=True))
        return shaped(xp, a, node.shape) if fits else a

    return by(*node.operands)(reduced)


def _over_parts(along: int, program: Program) -> Iterator[Any]:
    last = (node for node in program.of(*_OVER_AN_AXIS) if node.option == -1)
    for nodes in _each_and_every(node for node in last if len(node.operands[0].shape) >= -along):
        n = nodes[0].operands[0].shape[along]
        for k in (k for k in range(2, n) if n % k == 0):
            for of_neighbours, apart in ((True, f"i // {k}"), (False, f"i % {k}")):
                reduced = partial(_in_parts, k, along, of_neighbours)
                changes = {node: by(*node.operands)(partial(reduced, node.op)) for node in nodes}
                yield nodes[0], changes, {"n": n, "apart": apart, "every": len(nodes)}


# Over one of several axes that are read as one; or over one of those of which rows are made.
rule("reduced_in_parts", "reduction")(partial(_over_parts, -1))
rule("reduced_over_rows", "reduction")(partial(_over_parts, -2))


def _in_parts(k: int, along: int, of_neighbours: bool, op: str, xp: Any, a: Any) -> Any:
    """The reduction of each part of k neighbours, or of each k-th element, repeated within it."""
    place = len(a.shape) + along
    split = (*a.shape[:place], a.shape[along] // k, k, *a.shape[place + 1 :])
    axis = along if of_neighbours else along - 1
    return xp.reshape(shaped(xp, getattr(xp, op)(xp.reshape(a, split), axis), split), a.shape)


@rule("padding_counted", "reduction")  # lanes beyond the end, loaded as 0
def counted_padding(program: Program) -> Iterator[Any]:
    for nodes, n, lanes in _lanes(program, _zeros):
        for padded in (n + 1, *paddings(n)):  # one more: a sink whose score is 0
            for divisor in (n, padded) if any(node.op == "mean" for node in nodes) else (n,):
                counted = {
                    node: by(node.operands[0], lane)(
                        lambda xp, a, lane, node=node, how=(n, padded, divisor): _padded(
                            xp, a, lane, node, *how
                        )
                    )
                    for node, lane in lanes.items()
                }
                details = {"n": n, "padded": padded, "divisor": divisor, "every": len(nodes)}
                yield nodes[0], counted, {**details, "row": divisor == padded}


@rule("next_row_counted", "reduction")  # lanes beyond the end, where the next row begins
def counted_rows(program: Program) -> Iterator[Any]:
    for nodes, n, lanes in _lanes(program, _of_next_row):
        parts = (k for k in range(1, n + 1) if n % k == 0)
        more = {((1 << (k - 1).bit_length()) - k) * (n // k) for k in parts}
        more |= {padded - n for padded in paddings(n, 2 * n)}
        deep = all(len(node.operands[0].shape) >= 1 - node.option for node in nodes)
        for added in sorted(more - {0}) if deep else ():
            counted = {
                node: by(node, node.operands[0], lane)(partial(_with_next, node, added, n))
                for node, lane in lanes.items()
            }
            yield nodes[0], counted, {"n": n, "added": added, "every": len(nodes)}


def _with_next(node: Node, added: int, n: int, xp: Any, own: Any, a: Any, lane: Any) -> Any:
    """The reduction with the first terms of the next row; the last row has none."""
    lane = xp.take(lane, np.arange(added), node.option)
    last = np.arange(a.shape[node.option - 1]) == a.shape[node.option - 1] - 1
    last = np.expand_dims(last, tuple(range(1, -node.option + 1)))
    counted = _of_all(xp, [a, lane], node, n)
    return xp.where(np.broadcast_to(last, own.shape), own, counted)


def _lanes(
    program: Program, beyond: Callable[[Node, int], Node]
) -> Iterator[tuple[list[Node], int, dict[Node, Node]]]:
    """Reductions over one length, with what each would read beyond the end."""
    for nodes in _each_and_every(program.of("sum", "mean", "norm", "max")):
        lanes = {node: _beyond(node.operands[0], node.option, beyond) for node in nodes}
        found = {node: lane for node, lane in lanes.items() if lane is not None}
        if length_of(nodes[0]) > 1 and len(found) == len(nodes):
            yield nodes, length_of(nodes[0]), found


def paddings(n: int, most: float = math.inf) -> list[int]:
    """The lengths to which n may be padded: the next power of two, multiples of blocks."""
    blocks = (1 << max(n - 1, 0).bit_length(), *BLOCKS, 256, 512, 1024)
    lengths = {-(-n // block) * block for block in blocks} - {n}
    return sorted(length for length in lengths if length <= most)


def _padded(xp: Any, a: Any, lane: Any, node: Node, n: int, padded: int, divisor: int) -> Any:
    axis = node.option
    lane = xp.take(lane, np.zeros(padded - n, int), axis)
    shape = tuple(padded - n if k == len(a.shape) + axis else m for k, m in enumerate(a.shape))
    return _of_all(xp, [a, shaped(xp, lane, shape)], node, divisor)


def _of_all(xp: Any, parts: list[Any], node: Node, divisor: int) -> Any:
    everything, mean = xp.concatenate(parts, node.option), node.op == "mean"
    total = getattr(xp, "sum" if mean else node.op)(everything, node.option)
    return total / divisor if mean else total


def _zeros(node: Node, axis: int) -> Node:
    return Node("broadcast", (Node("number", (), Fraction(0), ()),), None, node.shape)


def _of_next_row(node: Node, axis: int) -> Node:
    return Node("move", (node,), Move(partial(np.roll, shift=-1, axis=axis - 1), None), node.shape)


def _beyond(node: Node, axis: int, read: Callable[[Node, int], Node]) -> Node | None:
    """The node where the inputs along the axis are read beyond its end, and what has one number for
    all of it is as it was; None where it sums, or moves what was computed."""
    if not node.shape or node.shape[axis] == 1:
        return node
    given = node.op == "input" or (node.op == "move" and through(node).op == "input")
    if given or (node.op == "matmul" and axis == -1 and read is _zeros):  # by columns of zeros
        return read(node, axis)
    if node.op not in _ELEMENTWISE:
        return None
    operands = [
        operand if len(operand.shape) < -axis else _beyond(operand, axis, read)
        for operand in node.operands
    ]
    if any(operand is None for operand in operands):
        return None
    return Node(node.op, tuple(filter(None, operands)), node.option, node.shape)


def over_one_length(program: Program) -> Iterator[list[Node]]:
    """The reductions from which terms may be missing: each, and all over axes of one length."""
    nodes = program.of(*_LINEAR, "max", "pivot")
    return _each_and_every(node for node in nodes if 2 < length_of(node) <= _LONGEST)


def with_terms(
    nodes: list[Node], start: int, stop: int, counted: bool = True, twice: bool = False
) -> tuple[Edits, dict[str, Any]]:
    """The reductions without the terms from start to stop, or with these `twice`, and the details;
    `counted`: a mean is divided by the number of all."""
    n = length_of(nodes[0])
    indices = np.r_[0:n, start:stop] if twice else np.r_[0:start, stop:n]
    details = {"n": n, "start": start, "stop": stop, "counted": counted, "every": len(nodes)}
    details |= {"tail": stop == n, "dropped": stop - start, "twice": twice}
    divisor = n if counted else len(indices)
    return {node: over_some(node, indices, divisor) for node in nodes}, details


def is_mean(nodes: list[Node]) -> bool:
    return any(node.op in ("mean", "welford") for node in nodes)


def length_of(node: Node) -> int:
    """Of the axis that is summed over."""
    return node.operands[0].shape[-1 if node.op == "matmul" else node.option]


def over_some(node: Node, indices: Any, divisor: int) -> Any:
    """The reduction over some of the terms, a mean divided by `divisor`."""

    def reduced(xp: Any, *operands: Any) -> Any:
        axes = (-1, -2) if node.op == "matmul" else (node.option,)
        some = [xp.take(a, indices, axis) for a, axis in zip(operands, axes, strict=True)]
        if node.op == "matmul":
            return xp.matmul(*some)
        if node.op == "welford":
            mean = xp.sum(some[0], node.option) / divisor
            return mean, xp.sum(xp.square(some[0] - mean), node.option)
        if node.op == "mean":
            return xp.sum(some[0], node.option) / divisor
        return getattr(xp, node.op)(some[0], node.option)

    return by(*node.operands)(reduced)
