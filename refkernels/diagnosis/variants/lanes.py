"""Blocks that do not fit: padding that is counted, or a tail that is left out.

A kernel works on n elements in blocks; where these do not fill them it must mask the lanes beyond
n, which hold zeros, or go on with the rest. Slips, of LayerNorm with rows padded to P lanes:
    padded_variance   mean = S / n, and the variance has (P - n) mean^2 more: x - mean is not masked
    padded_divisor    sums over n lanes divided by P, in the mean, in the variance or in both
    padded_row        mean and variance of the row with its zeros
    dropped_tail      sums over the first k lanes only, k the multiple of a block; divided by n or k
The last is one of any sum of products too. Of the many numbers that P and k may be, the one that
comes nearest to a sample of what the kernel said is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.diagnosis import products
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.diagnosis.products import Product
from refkernels.diagnosis.variants import rowwise
from refkernels.diagnosis.variants.rowwise import Rows

_BLOCKS = tuple(2**k for k in range(1, 13))
_SAMPLE = 16  # rows, and columns of a product
_LARGEST = 1 << 22  # products in a sample


@dataclass(frozen=True)
class _Slip:
    """mean = sum of `lanes` terms / `divisor`, variance = sum (x - mean)^2 over `squared` lanes,
    zeros from n on, / `by`; `sums`: the lanes and the divisor of backward's sums over a row."""

    cause: str
    details: Mapping[str, object]
    lanes: int
    divisor: int
    squared: int
    by: int
    sums: Mapping[str, int] = field(default_factory=dict)

    def statistics(self, rows: Rows, add: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Mean and rstd in the precision of the rows."""
        mean = add(rows.x[:, : self.lanes]) / self.divisor
        counted = rows.x[:, : min(self.lanes, self.squared)]
        if self.squared > rows.n:  # np.pad takes longer than all the rest
            counted = np.zeros((len(rows.x), self.squared), rows.x.dtype)
            counted[:, : self.lanes] = rows.x[:, : self.lanes]
        variance = add(np.square(counted - mean)) / self.by
        return mean, 1 / np.sqrt(variance + rows.x.dtype.type(rows.eps))

    def answers(
        self, rows: Rows, add: Callable[[Array], Array]
    ) -> dict[str, tuple[Doubles, Doubles]]:
        """Every output, with the sizes of its terms."""
        mean, rstd = self.statistics(rows, add)
        if rows.dy is None:
            return rowwise.forward(rows, mean, rstd)
        return rowwise.backward(rows, mean, rstd, **self.sums)


def padded(n: int) -> list[int]:
    """The lengths that n is padded to: the next power of two, multiples of blocks."""
    lengths = {1 << (n - 1).bit_length(), *(-(-n // block) * block for block in _BLOCKS)}
    return sorted(lengths - {n})


def kept(n: int) -> list[int]:
    """How many of n elements are left without the tail, or without the last one."""
    return sorted({n - 1, *(n - n % block for block in _BLOCKS)} - {n, 0})


def of_rows(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """LayerNorm's slips: of all of them the one that comes nearest to the output."""
    name = "y" if problem.direction == "forward" else "dx"
    if problem.op.name != "layernorm" or name not in outputs:
        return
    rows = rowwise.of(problem, outputs)
    got = outputs[name].astype(np.float64)
    if got.shape != problem.truth.reference[name].shape or rows.n < 2 or not got.size:
        return
    finite = np.isfinite(got.reshape(rows.x.shape)).all(axis=1)
    chosen = np.flatnonzero(finite & np.isfinite(rows.x).all(axis=1))
    if not chosen.size:
        return
    chosen = chosen[np.linspace(0, chosen.size - 1, min(chosen.size, _SAMPLE)).astype(int)]
    sample, said = rows.take(chosen), got.reshape(rows.x.shape)[chosen]
    slips = [_right(rows.n), *_slips(rows.n, rows.dy is not None)]
    with np.errstate(all="ignore"):
        off = [_distance(slip.answers(sample, _exactly)[name][0], said) for slip in slips]
        slip = slips[int(np.argmin(off))]
        if not min(off) < off[0]:
            return
        answers = slip.answers(rows, _exactly)
        plain = slip.answers(rows.cast(_working(problem)), _in_sequence)
    for output, (values, sizes) in answers.items():
        if output in rows.asked:
            one = rowwise.variant(slip.cause, slip.details, problem, output, values, sizes)
            shape = problem.truth.reference[output].shape
            storage = problem.truth.plain[output].dtype
            sized = formats.cast(plain[output][0], storage).reshape(shape)
            answer = replace(one.answer, plain={output: sized})
            yield replace(one, answer=answer, trials=len(slips))


def _right(n: int) -> _Slip:
    return _Slip("", {}, n, n, n, n)


def _slips(n: int, backward: bool) -> Iterator[_Slip]:
    """Every slip that a row of n may meet."""
    for length in padded(n):
        told = {"n": n, "padded": length}
        yield _Slip("padded_variance", told, n, n, length, n)
        yield _Slip("padded_divisor", told, n, n, n, length)
        yield _Slip("padded_divisor", told, n, length, n, length)
        yield _Slip("padded_divisor", told, n, length, n, n)
        yield _Slip("padded_row", told, n, length, length, length)
        if backward:
            yield _Slip("padded_divisor", told, n, n, n, n, {"divisor": length})
    for length in kept(n):
        told = {"n": n, "dropped": n - length}
        yield _Slip("dropped_tail", told, length, n, length, n)
        yield _Slip("dropped_tail", told, length, length, length, length)
        if backward:
            yield _Slip("dropped_tail", told, n, n, n, n, {"kept": length})
            yield _Slip("dropped_tail", told, length, n, length, n, {"kept": length})


def _exactly(values: Array) -> Array:
    return np.asarray(values.sum(axis=1, keepdims=True))


def _in_sequence(values: Array) -> Array:
    return np.add.accumulate(values, axis=1)[:, -1:]


def _working(problem: Problem) -> type:
    return np.float64 if problem.format.p > formats.BINARY32.p else np.float32


def _distance(values: Doubles, said: Doubles) -> float:
    """The sum of squared differences; infinite where it is not a number."""
    with np.errstate(all="ignore"):
        total = float(np.sum(np.square(values - said)))
    return total if np.isfinite(total) else np.inf


def of_parameters(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """LayerNorm's dweight = sum dy xhat and dbias = sum dy without the last rows."""
    if problem.op.name != "layernorm" or problem.direction == "forward":
        return
    rows = rowwise.of(problem, outputs)
    assert rows.dy is not None
    with np.errstate(all="ignore"):
        terms = {"dweight": rows.dy * (rows.x - rows.mean) * rows.rstd, "dbias": rows.dy}
    for name in [name for name in terms if name in outputs]:
        said = outputs[name].astype(np.float64).reshape(-1)
        if said.size != rows.n:
            continue
        part, lengths = terms[name], (*kept(len(rows.x)), len(rows.x))
        usable = np.isfinite(said) & np.isfinite(part).all(axis=0)
        off = [_distance(part[:k, usable].sum(axis=0), said[usable]) for k in lengths]
        best = lengths[int(np.argmin(off))]
        if off[-1] > min(off):
            values, sizes = part[:best].sum(axis=0), np.abs(part[:best]).sum(axis=0)
            details = {"n": len(part), "dropped": len(part) - best}
            one = rowwise.variant("dropped_tail", details, problem, name, values, sizes)
            yield replace(one, trials=len(lengths))


def of_products(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Sums of products without the last terms."""
    for name, got in outputs.items():
        product = products.of(problem, name)
        if product is None or got.shape != product.shape or product.terms < 2:
            continue
        length = _nearest(product, got)
        if length is not None:
            details = {"n": product.terms, "dropped": product.terms - length}
            answer = _without_tail(problem, name, product, length)
            yield Variant("dropped_tail", details, answer, trials=len(kept(product.terms)))


def _nearest(product: Product, got: Array) -> int | None:
    """How many terms come nearest to a sample of the output; None where all of them do."""
    said = got.reshape(len(product.a), product.b.shape[1])
    side = min(_SAMPLE, max(1, int(np.sqrt(_LARGEST / product.terms))))
    rows, columns = (
        np.unique(np.linspace(0, size - 1, min(size, side)).astype(int)) for size in said.shape
    )
    a, b = product.a[rows].astype(np.float64), product.b[:, columns].astype(np.float64)
    bias = 0.0 if product.bias is None else product.bias[columns].astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = said[np.ix_(rows, columns)].astype(np.float64)
        usable = np.isfinite(wanted) & np.isfinite(a @ b)
        off = {
            length: _distance((a[:, :length] @ b[:length] + bias)[usable], wanted[usable])
            for length in (*kept(product.terms), product.terms)
        }
    best = min(off, key=lambda length: (off[length], -length))
    return best if best < product.terms and off[best] < off[product.terms] else None


def _without_tail(problem: Problem, output: str, product: Product, length: int) -> Answer:
    """The certified answer to the product of the first terms."""
    inputs = {
        "x": np.ascontiguousarray(product.a[:, :length]),
        "weight": np.ascontiguousarray(product.b[:length].T),
        **({} if product.bias is None else {"bias": product.bias}),
    }
    linear = Problem(registry.get("linear"), "forward", inputs, {}, problem.format).truth
    return Answer(
        {output: linear.reference["y"].reshape(product.shape)},
        {output: linear.bound["y"].reshape(product.shape)},
        {output: linear.plain["y"].reshape(product.shape)},
    )
