"""Sums with a missing part, and means of parts.

    dropped_tail           the last terms
    part_of_sum_left_out   any other range of them
    padded_divisor         a mean's sum over n terms, divided by the length they are padded to
    mean_of_block_means    the mean of blocks' means, the last block being shorter

Out of all ranges, the variant takes the one that accounts for the difference of a sample of the
elements: with prefix sums C_0 .. C_n, C_stop - C_start is nearest to it. The largest difference in
the sample narrows the search first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from refkernels.diagnosis import products
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.diagnosis.variants import formulas

_SAMPLE = 64  # elements
_BLOCKS = tuple(2**k for k in range(1, 13))
_LONGEST = 1 << 16  # terms
_MOST_RANGES = 256  # ranges per start that the first element may leave open


def left_out(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Sums, means and products of matrices without the terms of one range."""
    for name, got in outputs.items():
        terms = _terms(problem, name, got)
        if terms is None or not 2 < terms[0].shape[1] <= _LONGEST:
            continue
        missing, n = _range(*terms), terms[0].shape[1]
        if missing is None:
            continue
        start, stop = missing
        cause, details = "part_of_sum_left_out", {"n": n, "start": start, "stop": stop}
        if stop == n:
            cause, details = "dropped_tail", {"n": n, "dropped": n - start}
        answer = _without(problem, name, start, stop)
        yield Variant(cause, details, answer, trials=n * (n - 1) // 2)


def of_means(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """A mean of n terms computed as a mean of blocks' means, or divided by a padded length."""
    if problem.op.total != "mean" or problem.direction == "backward":
        return
    x = products.summed(problem)
    if x is None or x.shape[1] < 2:
        return
    n, got = x.shape[1], np.asarray(outputs["y"], np.float64).reshape(-1)
    terms = x.astype(np.float64)
    blocks = [2**k for k in range(1, 13) if 2**k < n and n % 2**k]
    nearest: list[tuple[float, str, dict[str, object], Any]] = []
    with np.errstate(all="ignore"):
        for block in blocks:
            starts = np.arange(0, n, block)
            sizes = np.minimum(starts + block, n) - starts
            means = (np.add.reduceat(terms, starts, axis=1) / sizes).mean(axis=1)
            formula = partial(_mean_of_means, block)
            nearest.append(
                (_distance(means, got), "mean_of_block_means", {"block": block}, formula)
            )
        for length in padded(n):
            means, formula = terms.sum(axis=1) / length, partial(_padded, length)
            padding: dict[str, object] = {"n": n, "padded": length}
            nearest.append((_distance(means, got), "padded_divisor", padding, formula))
        right = _distance(terms.mean(axis=1), got)
    if nearest:
        distance, cause, details, formula = min(nearest, key=lambda choice: choice[0])
        if distance < right:
            answer = formulas.answer(problem, formula)
            yield Variant(cause, details, answer, trials=len(nearest))


def padded(n: int) -> list[int]:
    """The lengths to which n may be padded: the next power of two, multiples of blocks."""
    lengths = {1 << (n - 1).bit_length(), *(-(-n // block) * block for block in _BLOCKS)}
    return sorted(lengths - {n})


def _mean_of_means(block: int, xp: Any, x: Any, **_: Any) -> Any:
    ends = [*range(0, x.shape[-1], block), x.shape[-1]]
    parts = (xp.take(x, np.arange(*span), -1) for span in itertools.pairwise(ends))
    return xp.mean(xp.concatenate([xp.mean(part) for part in parts]))


def _padded(length: int, xp: Any, x: Any, **_: Any) -> Any:
    return xp.sum(x) / length


def _distance(values: Doubles, got: Doubles) -> float:
    """The sum of squared differences between finite numbers."""
    usable = np.isfinite(values) & np.isfinite(got)
    return float(np.sum(np.square(values - got)[usable]))


def _terms(problem: Problem, name: str, got: Array) -> tuple[Doubles, Doubles, Doubles] | None:
    """A sample of the elements: their terms, what the kernel's sums lack, and its uncertainty."""
    product, x, scale = products.of(problem, name), None, 1.0
    if problem.op.total == "mean" and (x := products.summed(problem)) is not None:
        scale = float(x.shape[1])
    if got.shape != problem.truth.reference[name].shape or not got.size:
        return None
    exact = np.asarray(problem.truth.reference[name]).reshape(-1)
    with np.errstate(all="ignore"):
        missing = (exact - got.astype(np.float64).reshape(-1)) * scale
        margin = 2.0 * problem.truth.bound[name].reshape(-1) * scale
    usable = np.flatnonzero(np.isfinite(missing) & np.isfinite(margin))
    usable = usable[np.argsort(-np.abs(missing[usable]), kind="stable")][:_SAMPLE]
    if not usable.size or not np.abs(missing[usable[0]]) > margin[usable[0]]:
        return None
    if x is not None:
        return x[usable].astype(np.float64), missing[usable], margin[usable]
    if product is None:
        return None
    row, column = np.divmod(usable, product.b.shape[1])
    a, b = product.a[row].astype(np.float64), product.b[:, column].T.astype(np.float64)
    return a * b, missing[usable], margin[usable]


def _range(terms: Doubles, missing: Doubles, margin: Doubles) -> tuple[int, int] | None:
    """The range whose sum every element lacks: of those that fit, the nearest."""
    sums = np.concatenate([np.zeros((len(terms), 1)), np.cumsum(terms, axis=1)], axis=1)
    first = sums[0]
    order = np.argsort(first, kind="stable")
    ordered = first[order]
    low = np.searchsorted(ordered, first + missing[0] - margin[0], "left")
    high = np.searchsorted(ordered, first + missing[0] + margin[0], "right")
    best: tuple[float, int, int] | None = None
    starts = np.repeat(np.arange(first.size), high - low)
    if not starts.size:
        return None
    offsets = np.arange(starts.size) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    stops = order[np.repeat(low, high - low) + offsets]
    later = stops > starts
    starts, stops = starts[later], stops[later]
    if (len(missing) == 1 and starts.size > 1) or starts.size > _MOST_RANGES * first.size:
        return None  # many ranges have one sum
    for k in range(1, len(missing)):
        if starts.size <= 1:
            break
        near = np.abs(sums[k][stops] - sums[k][starts] - missing[k]) <= margin[k]
        starts, stops = starts[near], stops[near]
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        deviation = sums[:, stop] - sums[:, start] - missing
        if np.all(np.abs(deviation) <= margin):
            fitting = (float(np.sum(np.square(deviation))), start, stop)
            best = fitting if best is None or fitting < best else best
    return None if best is None else best[1:]


def _without(problem: Problem, name: str, start: int, stop: int) -> Answer:
    """The certified answer where these terms are 0."""
    x = products.summed(problem)
    if x is not None:
        inputs, params = {"x": _zeroed(x, -1, start, stop)}, {"axis": -1}
        truth = Problem(problem.op, "forward", inputs, params, problem.format).truth
        shape = problem.truth.reference[name].shape
        return Answer(
            {name: truth.reference["y"].reshape(shape)},
            {name: truth.bound["y"].reshape(shape)},
            {name: truth.plain["y"].reshape(shape)},
        )
    inputs = {
        factor: _zeroed(problem.inputs[factor], axis, start, stop)
        for factor, axis in _summed_axes(problem, name).items()
    }
    return _only(problem.ask(inputs), name)


def _summed_axes(problem: Problem, output: str) -> dict[str, int]:
    """The inputs with the index letter that an output's products are summed over, and the axis of
    that letter, counted from the end."""
    op, first = problem.op, problem.op.sums[problem.op.outputs[0]]
    product = op.sums[output]
    (summed,) = {letter for letters in product.terms.values() for letter in letters} - {
        *product.letters
    }
    letters = {**first.terms, op.cotangent: first.letters}
    return {
        name: axes.index(summed) - len(axes)
        for name, axes in letters.items()
        if name in problem.inputs and summed in axes
    }


def _only(answer: Answer, output: str) -> Answer:
    return Answer(
        {output: answer.reference[output]},
        {output: answer.bound[output]},
        {output: answer.plain[output]},
    )


def _zeroed(array: Array, axis: int, start: int, stop: int) -> Array:
    """0 along the last axis, or along all leading ones together."""
    copy = np.array(array, order="C")
    rows = copy.reshape(-1, array.shape[-1])
    if axis == -1:
        rows[:, start:stop] = 0
    else:
        rows[start:stop] = 0
    return copy
