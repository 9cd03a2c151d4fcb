"""The weight of each row of a batch in the gradient that an update receives.

Parts are the calls of a layer (micro-batches) on each rank; how an update combines the ranks'
gradients is solved for. Row by row, the quotient of two runs shows a sum over parts instead of
their mean, a mean of means over unequal numbers of tokens, a loss scale left in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from refkernels.alignment.clipping import LEAST_SCALE
from refkernels.alignment.matching import Matched
from refkernels.alignment.run import LayerCall, Rank, Run, StepTensors
from refkernels.alignment.tensors import Array, norm
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64

SUMMED = 2.0**-12  # relative: the weight of a rank's gradient in a sum, or a mean


@dataclass(frozen=True)
class FactorCause:
    """Why one run's gradients are multiples of the other's. `sure`: whether the other run cannot
    do the reverse, since it has other parts."""

    word: str
    run: str
    details: Mapping[str, Any] = field(default_factory=dict)
    sure: bool = True


_Calls = Sequence[Sequence[LayerCall]]  # by rank
_Weights = Sequence[float]  # of the ranks' gradients


@dataclass(frozen=True)
class _Cell:
    """The rows that are in one part of A and one of B, with their weight in B over that in A; a
    part is a call on a rank."""

    parts: tuple[tuple[int, ...], tuple[int, ...]]
    factor: float
    rows: int

    def weight(self, k: int) -> float:
        """In the run of that index, over the other's."""
        return self.factor if k else 1 / self.factor if self.factor else math.inf


def cause(a: Run, b: Run, step: int, matched: Matched) -> FactorCause | None:
    """Why whole parts of the batch have other weights in one of two runs that began the step alike;
    None where no weight differs, or no known cause explains it."""
    if (kept := _kept(a.first, b.first, step, matched)) is not None:
        return kept
    tensors = [[rank.tensors(step) for rank in run.ranks if step in rank.steps] for run in (a, b)]
    if any(len(one) != run.first.world_size for one, run in zip(tensors, (a, b), strict=True)):
        return None
    received = [coefficients(run, one) for run, one in zip((a, b), tensors, strict=True)]
    for k, run in enumerate((a, b)):
        lone = received[k] is None and received[1 - k] is not None
        if left := _unreduced(run, tensors[k]) if lone else []:
            details = {"parts": len(tensors[k]), "where": left[0], "more": len(left) - 1}
            return FactorCause("partly_reduced", "AB"[k], details)
    if received[0] is None or received[1] is None:
        return None
    found = _cause_by(a, b, step, matched, tensors, (received[0], received[1]))
    if found is not None or max(map(len, tensors)) > 1:
        return found
    return _cause_by(a, b, step, matched, tensors, ([1.0], [1.0]))  # a clip removes the factor


def _cause_by(
    a: Run, b: Run, step: int, matched: Matched, tensors: Sequence[Sequence[StepTensors]],
    weights: Sequence[_Weights],
) -> FactorCause | None:  # fmt: skip
    """The cause by the rows of the last layer that shows one."""
    order = _order(a, b, step)
    for name in reversed(list(a.first.layers)):
        pair = name, matched.layers.get(name, "")
        partial = any({*pair} & {*one.listed("items")} for some in tensors for one in some)
        if name not in matched.layers or a.first.contains(name) or partial:
            continue
        calls = [
            [one.calls(layer) for one in some] for some, layer in zip(tensors, pair, strict=True)
        ]
        cells = _cells(calls, weights, order)
        digits = _digits(calls[0]) if cells else 0.0
        if any(abs(cell.factor - 1) > digits for cell in cells):
            elements = sum(call.outputs["0"].size for rank_calls in calls[0] for call in rank_calls)
            return _cause_of(cells, calls, weights, digits, elements)
    return None


def _kept(a: Rank, b: Rank, step: int, matched: Matched) -> FactorCause | None:
    """The run whose backward pass adds to the gradients that its last update left."""
    back = {name_b: name_a for name_a, name_b in matched.parameters.items()}
    for run, own, other, partner in (("B", b, a, back), ("A", a, b, matched.parameters)):
        sizes, apart, digits = [0.0], [0.0], 0.0
        for name, twin in partner.items() if step - 1 in own.steps else ():
            last = own.tensors(step - 1).gradient(name)
            now = own.tensors(step).gradient(name, "backward")
            its = other.tensors(step).gradient(twin, "backward")
            if last is None or now is None or its is None or now.shape != its.shape:
                continue
            digits = 2.0 ** (-formats.of(last).p / 2)
            sizes.append(norm(last))
            apart.append(norm(to_float64(now) - to_float64(its) - to_float64(last)))
        if math.hypot(*apart) < digits * math.hypot(*sizes):
            return FactorCause("kept_gradients", run)
    return None


def _digits(calls: _Calls) -> float:
    """The relative size of half of the format's digits, as in `comparison`."""
    first = next(call for rank_calls in calls for call in rank_calls)
    return 2.0 ** (-formats.of(first.outputs["0"]).p / 2)


def _unreduced(run: Run, tensors: Sequence[StepTensors]) -> list[str]:
    """Parameters of which the first rank's update receives this rank's gradient alone."""
    found = {name: coefficients(run, tensors, [name]) for name in run.first.parameters}
    return [name for name, one in found.items() if one and one[0] and not any(one[1:])]


def coefficients(
    run: Run, tensors: Sequence[StepTensors], names: Iterable[str] | None = None
) -> list[float] | None:
    """The coefficient of each rank's gradient in the gradient that the first rank's update
    receives; None where no one coefficient serves all parameters, or those of `names`."""
    rows, received = [], []
    for name in run.first.parameters if names is None else names:
        by_rank = [rank_tensors.gradient(name, "backward") for rank_tensors in tensors]
        received_gradient = tensors[0].received(name)
        recorded = [array for array in by_rank if array is not None]
        if received_gradient is None or len(recorded) != len(by_rank) or not recorded:
            continue
        rows.append(np.stack([array.astype(np.float64).reshape(-1) for array in recorded]))
        received.append(received_gradient.astype(np.float64).reshape(-1))
        digits = 2.0 ** (-formats.of(received_gradient).p / 2)
    if not rows or not all(np.isfinite(array).all() for array in (*rows, *received)):
        return None
    gradients, update = np.concatenate(rows, axis=1), np.concatenate(received)
    size, largest = np.linalg.norm(update), np.max(np.abs(gradients), initial=0.0)
    if not size or not largest:
        return None
    coefficients, _, rank, _ = np.linalg.lstsq((gradients / largest).T, update / size, rcond=digits)
    residual = np.linalg.norm((gradients / largest).T @ coefficients - update / size)
    if rank < len(gradients) or residual > digits:
        return None
    coefficients[np.abs(coefficients) <= digits * np.max(np.abs(coefficients))] = 0.0
    return list(coefficients * size / largest)


def _order(a: Run, b: Run, step: int) -> list[int] | None:
    """For each row of A's batches, over all ranks, its index among B's; None where hashes do not
    decide: then the rows are taken to be in the same order."""
    rows = [[row for line in run.lines[step] for row in line.rows or ()] for run in (a, b)]
    if len(rows[0]) != len(set(rows[0])) or sorted(rows[0]) != sorted(rows[1]) or not rows[0]:
        return None
    place = {row: k for k, row in enumerate(rows[1])}
    return [place[row] for row in rows[0]]


def _cells(
    calls: Sequence[_Calls], weights: Sequence[_Weights], order: Sequence[int] | None
) -> list[_Cell]:
    """The cells; none where rows do not belong together, or those of a cell have no one factor."""
    rows_a, rows_b = map(_rows, calls, weights)
    if rows_a is None or rows_b is None or rows_a[0].shape != rows_b[0].shape:
        return []
    if order is not None and len(order) == len(rows_a[0]):
        rows_b = tuple(rows[order] for rows in rows_b)
    (outputs, cotangents_a, parts_a), (outputs_b, cotangents_b, parts_b) = rows_a, rows_b
    digits, cells = _digits(calls[0]), []
    if not np.linalg.norm(outputs - outputs_b) <= digits * np.linalg.norm(outputs):
        return []
    pairs = np.concatenate((parts_a, parts_b), axis=1)
    for pair in np.unique(pairs, axis=0):
        chosen = (pairs == pair).all(axis=1)
        x, y = cotangents_a[chosen], cotangents_b[chosen]
        tokens = ((x != 0.0) | (y != 0.0)).reshape(-1, x.shape[-1])
        count, size = int(np.count_nonzero(tokens.any(axis=1))), float(np.sum(x * x))
        factor = float(np.sum(x * y)) / size if size else math.inf
        if size and not np.linalg.norm(y - factor * x) <= digits * abs(factor) * size**0.5:
            return []
        parts = tuple(pair[:2].tolist()), tuple(pair[2:].tolist())
        cells += [_Cell(parts, factor, count)] if count else []
    return cells


def _rows(calls: _Calls, coefficients: Sequence[float]) -> tuple[Array, ...] | None:
    """The rows of all parts, concatenated along the first axis: outputs, cotangents as the update
    weighs them, rank and call."""
    outputs, cotangents, parts = [], [], []
    for rank, (rank_calls, coefficient) in enumerate(zip(calls, coefficients, strict=True)):
        for k, call in enumerate(rank_calls):
            output, cotangent = call.outputs.get("0"), call.cotangents.get("0")
            if output is None or cotangent is None or output.ndim < 2:
                return None
            outputs.append(output.astype(np.float64))
            cotangents.append(coefficient * cotangent.astype(np.float64))
            parts.append(np.full((len(output), 2), (rank, k)))
    if not outputs or len({part_outputs.shape[1:] for part_outputs in outputs}) != 1:
        return None
    return tuple(map(np.concatenate, (outputs, cotangents, parts)))


def _cause_of(
    cells: Sequence[_Cell], calls: Sequence[_Calls], weights: Sequence[_Weights], digits: float,
    elements: int,
) -> FactorCause | None:  # fmt: skip
    """The named cause. `elements`: the number of elements of all rows."""
    factors = [cell.factor for cell in cells]
    largest = max(map(abs, factors))
    if largest < math.inf and max(factors) - min(factors) <= 4 * digits * largest:
        return _of_one_factor(cells, calls, weights, 4 * digits, elements)
    for k, run in ((1, "B"), (0, "A")):
        rows: dict[tuple[int, ...], int] = {}
        for cell in cells:
            rows[cell.parts[k]] = rows.get(cell.parts[k], 0) + cell.rows
        if len(calls[k]) > 1 and not any(cell.weight(k) for cell in cells if cell.parts[k][0]):
            return FactorCause("not_reduced", run, {"parts": len(calls[k])})
        if len(rows) < 2 or not all(math.isfinite(cell.weight(k)) for cell in cells):
            continue
        sums = [cell.weight(k) * rows[cell.parts[k]] for cell in cells]
        if max(sums) - min(sums) <= 4 * digits * max(sums):
            if math.isclose(max(sums), sum(rows.values()), rel_tol=8 * digits):
                return FactorCause("sum_of_parts", run, {"parts": len(rows)})
            tokens = ", ".join(str(count) for count in list(rows.values())[:8])
            return FactorCause("mean_of_means", run, {"parts": len(rows), "tokens": tokens})
    return None


def _of_one_factor(
    cells: Sequence[_Cell], calls: Sequence[_Calls], weights: Sequence[_Weights], room: float,
    elements: int,
) -> FactorCause | None:  # fmt: skip
    """The cause of one factor for all rows. A power of two that divides the number of tokens or of
    elements may come from a sum in place of a mean, and is not taken for a loss scale."""
    counts = [list(map(len, side)) for side in calls]
    for k, run in ((1, "B"), (0, "A")):
        ranks, count = len(counts[k]), counts[k][0]
        candidates = [("sum_of_parts", parts) for parts in (ranks * count, count) if count > 1]
        if ranks > 1 and np.allclose(weights[k], 1.0, SUMMED, 0.0):
            candidates.append(("sum_over_ranks", ranks))
        for word, parts in candidates:
            if math.isclose(cells[0].weight(k), parts, rel_tol=room):
                sure = word == "sum_over_ranks" or counts[0] != counts[1]
                return FactorCause(word, run, {"parts": parts}, sure)
    for k, run in ((1, "B"), (0, "A")):
        factor = cells[0].weight(k)
        mantissa, exponent = math.frexp(factor)
        power = exponent - 1 if mantissa < 0.75 else exponent
        if 2.0**power < LEAST_SCALE or not math.isclose(factor, 2.0**power, rel_tol=room):
            continue
        tokens = sum(cell.rows for cell in cells)
        if tokens % 2**power and elements % 2**power:
            return FactorCause("loss_scale", run, {"scale": 2**power})
    return FactorCause("multiple", "B", {"factor": cells[0].factor})
