"""LayerNorm's faults where a block does not divide n: padding that counts, or a missing tail.

Rows of n elements, padded to P lanes:
    padded_variance   mean = S / n, but sum (x - mean)^2 also has (P - n) mean^2: no lane is masked
    padded_divisor    sums over n lanes divided by P, in the mean, in the variance or in both
    padded_row        mean and variance of the row with its zeros
    dropped_tail      sums over the first k lanes only, k the multiple of a block; divided by n or k
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.models.layernorm import rowwise
from refkernels.diagnosis.models.layernorm.rowwise import Rows
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.diagnosis.variants.lanes import SAMPLE, distance, kept, padded

Adding = Callable[..., Array]  # (values, more, times): each row's sum, and `times` times `more`


@dataclass(frozen=True)
class _PaddingFault:
    """mean = sum of `lanes` terms / `divisor`, variance = sum (x - mean)^2 over `squared` lanes,
    zeros from n on, / `by`; `sums`: the lanes and the divisor of backward's sums over a row."""

    cause: str
    details: Mapping[str, object]
    lanes: int
    divisor: int
    squared: int
    by: int
    sums: Mapping[str, int] = field(default_factory=dict)

    def statistics(self, rows: Rows, add: Adding) -> tuple[Array, Array]:
        """Mean and rstd in the precision of the rows."""
        mean = add(rows.x[:, : self.lanes]) / self.divisor
        squares = np.square(rows.x[:, : min(self.lanes, self.squared)] - mean)
        total = add(squares, np.square(mean), max(0, self.squared - rows.n))
        return mean, 1 / np.sqrt(total / self.by + rows.x.dtype.type(rows.eps))

    def answers(self, rows: Rows, add: Adding) -> dict[str, tuple[Doubles, Doubles]]:
        """Every output, with the sizes of its terms."""
        mean, rstd = self.statistics(rows, add)
        if rows.dy is None:
            return rowwise.forward(rows, mean, rstd)
        return rowwise.backward(rows, mean, rstd, **self.sums)


def of_rows(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The fault that comes nearest to the output."""
    name = "y" if problem.direction == "forward" else "dx"
    if name not in outputs:
        return
    rows = rowwise.of(problem, outputs)
    got = outputs[name].astype(np.float64)
    if got.shape != problem.truth.reference[name].shape or rows.n < 2 or not got.size:
        return
    finite = np.isfinite(got.reshape(rows.x.shape)).all(axis=1)
    chosen = np.flatnonzero(finite & np.isfinite(rows.x).all(axis=1))
    if not chosen.size:
        return
    chosen = chosen[np.linspace(0, chosen.size - 1, min(chosen.size, SAMPLE)).astype(int)]
    sample, sampled = rows.take(chosen), got.reshape(rows.x.shape)[chosen]
    faults = [_faultless(rows.n), *_faults(rows.n, rows.dy is not None)]
    with np.errstate(all="ignore"):
        distances = [
            distance(fault.answers(sample, _exactly)[name][0], sampled) for fault in faults
        ]
        fault = faults[int(np.argmin(distances))]
        if not min(distances) < distances[0]:
            return
        answers = fault.answers(rows, _exactly)
        plain = fault.answers(rows.cast(_working(problem)), _in_sequence)
    for output, (values, sizes) in answers.items():
        if output in rows.asked:
            variant = rowwise.variant(fault.cause, fault.details, problem, output, values, sizes)
            shape = problem.truth.reference[output].shape
            storage = problem.truth.plain[output].dtype
            plain_values = formats.cast(plain[output][0], storage).reshape(shape)
            answer = replace(variant.answer, plain={output: plain_values})
            yield replace(variant, answer=answer, trials=len(faults))


def _faultless(n: int) -> _PaddingFault:
    return _PaddingFault("", {}, n, n, n, n)


def _faults(n: int, backward: bool) -> Iterator[_PaddingFault]:
    """Every fault that a row of n elements may show."""
    for length in padded(n):
        details = {"n": n, "padded": length}
        yield _PaddingFault("padded_variance", details, n, n, length, n)
        yield _PaddingFault("padded_divisor", details, n, n, n, length)
        yield _PaddingFault("padded_divisor", details, n, length, n, length)
        yield _PaddingFault("padded_divisor", details, n, length, n, n)
        yield _PaddingFault("padded_row", details, n, length, length, length)
        if backward:
            yield _PaddingFault("padded_divisor", details, n, n, n, n, {"divisor": length})
    for length in kept(n):
        details = {"n": n, "dropped": n - length}
        yield _PaddingFault("dropped_tail", details, length, n, length, n)
        yield _PaddingFault("dropped_tail", details, length, length, length, length)
        if backward:
            yield _PaddingFault("dropped_tail", details, n, n, n, n, {"kept": length})
            yield _PaddingFault("dropped_tail", details, length, n, length, n, {"kept": length})


def _exactly(values: Array, more: Array | float = 0.0, times: int = 0) -> Array:
    total = np.asarray(values.sum(axis=1, keepdims=True))
    return total + times * more if times else total


def _in_sequence(values: Array, more: Array | float = 0.0, times: int = 0) -> Array:
    if times:
        values = np.hstack([values, np.repeat(more, times, axis=1)])
    return np.add.accumulate(values, axis=1)[:, -1:]


def _working(problem: Problem) -> type:
    return np.float64 if problem.format.p > formats.BINARY32.p else np.float32


def of_parameters(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """LayerNorm's dweight = sum dy xhat and dbias = sum dy without the last rows."""
    if problem.direction == "forward":
        return
    rows = rowwise.of(problem, outputs)
    assert rows.dy is not None
    with np.errstate(all="ignore"):
        terms = {"dweight": rows.dy * (rows.x - rows.mean) * rows.rstd, "dbias": rows.dy}
    for name in [name for name in terms if name in outputs]:
        got = outputs[name].astype(np.float64).reshape(-1)
        if got.size != rows.n:
            continue
        summands, lengths = terms[name], (*kept(len(rows.x)), len(rows.x))
        usable = np.isfinite(got) & np.isfinite(summands).all(axis=0)
        distances = [distance(summands[:k, usable].sum(axis=0), got[usable]) for k in lengths]
        best = lengths[int(np.argmin(distances))]
        if distances[-1] > min(distances):
            values, sizes = summands[:best].sum(axis=0), np.abs(summands[:best]).sum(axis=0)
            details = {"n": len(summands), "dropped": len(summands) - best}
            variant = rowwise.variant("dropped_tail", details, problem, name, values, sizes)
            yield replace(variant, trials=len(lengths))
