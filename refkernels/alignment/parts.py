"""How much each row of a batch counts in the gradient that an update receives.

A step's gradient is a sum over parts: over the calls of a layer (micro-batches), on each rank. Each
part has the cotangents of its own rows, and what an update receives is a combination of the ranks'
gradients, whose coefficients are solved for. Row by row, the quotient of two runs says what one of
them does otherwise: the sum over parts for their mean, the mean of means of parts that have not the
same number of tokens, a loss scale that is left in. A quotient does not say which of the two is
wrong: that is the one whose gradient is not that of its own loss (`objective`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from refkernels.alignment import objective
from refkernels.alignment.clipping import LEAST_SCALE
from refkernels.alignment.matching import Matched
from refkernels.alignment.question import Array
from refkernels.alignment.run import Call, Run, StepTensors
from refkernels.arithmetic import formats

Word = Literal[
    "sum_of_parts", "sum_over_ranks", "not_reduced", "mean_of_means", "loss_scale", "multiple"
]  # fmt: skip


@dataclass(frozen=True)
class FactorCause:
    """Why one run's gradients are multiples of the other's. `run`: the one that does it; `sure`:
    whether its own figures say so, and not the comparison alone, in which the other may as well do
    the reverse."""

    word: Word
    run: str
    details: Mapping[str, Any] = field(default_factory=dict)
    sure: bool = True


@dataclass(frozen=True)
class _Side:
    """One run: `cells` by its parts; `calls` of each rank; `multiple` of its own loss whose
    gradient its update receives; `alike`: whether each part's own mean counts the same."""

    run: str
    cells: Sequence[_Cell]
    calls: Sequence[int]
    multiple: objective.Interval | None
    alike: bool

    @property
    def factor(self) -> float:
        """What all rows count here by what they count in the other run, where that is one."""
        return self.cells[0].factor


@dataclass(frozen=True)
class _Cell:
    """The rows that are in one part of A and one of B: what each counts in B, by what in A."""

    part: tuple[int, int]
    factor: float
    rows: int


def cause(a: Run, b: Run, step: int, matched: Matched) -> FactorCause | None:
    """What one of two runs, that began the step alike, does to whole parts of its batch; None where
    no row counts otherwise, or that does not explain it."""
    tensors = [[rank.tensors(step) for rank in run.ranks if step in rank.steps] for run in (a, b)]
    if any(len(some) != run.first.world_size for some, run in zip(tensors, (a, b), strict=True)):
        return None
    mine, other = (_coefficients(run, some) for run, some in zip((a, b), tensors, strict=True))
    if mine is None or other is None:
        return None
    order = _order(a, b, step)
    for name in reversed(list(a.first.layers)):
        if name not in matched.layers or a.first.contains(name):
            continue
        calls = tuple(
            [one.calls(own) for one in some]
            for some, own in zip(tensors, (name, matched.layers[name]), strict=True)
        )
        found, digits = _cells(calls[0], calls[1], mine, other, order), _digits(calls[0])
        if found and any(abs(one.factor - 1) > digits for one in found[0]):
            sides = [
                _Side(
                    word, cells, [len(one) for one in called],
                    objective.multiple(run, step, some, counted),
                    objective.weighs_alike(run, some, counted, 4 * digits),
                )
                for word, run, cells, called, some, counted in (
                    ("B", b, found[0], calls[1], tensors[1], other),
                    ("A", a, found[1], calls[0], tensors[0], mine),
                )
            ]  # fmt: skip
            elements = sum(one.outputs["0"].size for some in calls[0] for one in some)
            return _named(sides, digits, elements)
    return None


def _digits(calls: _Calls) -> float:
    """A float of half as many digits, as in `comparison`."""
    first = next(call for some in calls for call in some)
    return 2.0 ** (-formats.of(first.outputs["0"]).p / 2)


def _coefficients(run: Run, tensors: Sequence[StepTensors]) -> list[float] | None:
    """What each rank's gradient counts in what the first rank's update receives; None where that is
    no one number for all parameters."""
    rows, received = [], []
    for name in run.first.parameters:
        own = [one.gradient(name, "backward") for one in tensors]
        got = tensors[0].gradient(name, "clipped")
        got = tensors[0].gradient(name) if got is None else got
        known = [one for one in own if one is not None]
        if got is None or len(known) != len(own) or not known:
            continue
        rows.append(np.stack([one.astype(np.float64).reshape(-1) for one in known]))
        received.append(got.astype(np.float64).reshape(-1))
        digits = 2.0 ** (-formats.of(got).p / 2)
    if not rows or not all(np.isfinite(one).all() for one in (*rows, *received)):
        return None
    every, update = np.concatenate(rows, axis=1), np.concatenate(received)
    size, largest = np.linalg.norm(update), np.max(np.abs(every), initial=0.0)
    if not size or not largest:
        return None
    found, _, rank, _ = np.linalg.lstsq((every / largest).T, update / size, rcond=digits)
    apart = np.linalg.norm((every / largest).T @ found - update / size)
    if rank < len(every) or apart > digits:
        return None
    found[np.abs(found) <= digits * np.max(np.abs(found))] = 0.0
    return list(found * size / largest)


def _order(a: Run, b: Run, step: int) -> list[int] | None:
    """For each row of A's batches, over all ranks, its place among B's; None where hashes do not
    tell: then rows are taken to come in the same order."""
    rows: list[list[str]] = []
    for run in (a, b):
        lines = [line for rank in run.ranks for line in rank.lines if line.step == step]
        rows.append([row for line in lines for row in line.rows or ()])
    if len(rows[0]) != len(set(rows[0])) or sorted(rows[0]) != sorted(rows[1]) or not rows[0]:
        return None
    place = {row: at for at, row in enumerate(rows[1])}
    return [place[row] for row in rows[0]]


_Calls = Sequence[Sequence[Call]]  # of each rank


def _cells(
    one: _Calls, two: _Calls, mine: Sequence[float], other: Sequence[float],
    order: Sequence[int] | None,
) -> tuple[list[_Cell], list[_Cell]] | None:  # fmt: skip
    """The cells by the parts of B, with B's rows by A's; and by the parts of A, the other way."""
    left, right = _rows(one, mine), _rows(two, other)
    if left is None or right is None or left.outputs.shape != right.outputs.shape:
        return None
    if order is not None and len(order) == len(left.outputs):
        right = _Rows(right.outputs[order], right.cotangents[order], right.parts[order])
    digits = _digits(one)
    apart = np.linalg.norm(left.outputs - right.outputs)
    if not apart <= digits * np.linalg.norm(left.outputs):
        return None
    found: tuple[list[_Cell], list[_Cell]] = ([], [])
    pairs = np.concatenate((left.parts, right.parts), axis=1)
    for pair in np.unique(pairs, axis=0):
        chosen = (pairs == pair).all(axis=1)
        x, y = left.cotangents[chosen], right.cotangents[chosen]
        tokens = ((x != 0.0) | (y != 0.0)).reshape(-1, x.shape[-1])
        count, size = int(np.count_nonzero(tokens.any(axis=1))), float(np.sum(x * x))
        if not count:
            continue
        factor = float(np.sum(x * y)) / size if size else math.inf
        if size and not np.linalg.norm(y - factor * x) <= digits * abs(factor) * size**0.5:
            return None
        mine_part, other_part = tuple(map(int, pair[:2])), tuple(map(int, pair[2:]))
        found[0].append(_Cell((other_part[0], other_part[1]), factor, count))
        inverse = 1 / factor if factor else math.inf
        found[1].append(_Cell((mine_part[0], mine_part[1]), inverse, count))
    return found


@dataclass(frozen=True)
class _Rows:
    outputs: Array
    cotangents: Array
    parts: Array  # rank and call of each row


def _rows(calls: _Calls, coefficients: Sequence[float]) -> _Rows | None:
    """Of all parts one behind the other, along the first axis; cotangents as the update counts
    them."""
    outputs, cotangents, parts = [], [], []
    for rank, (some, coefficient) in enumerate(zip(calls, coefficients, strict=True)):
        for at, call in enumerate(some):
            output, cotangent = call.outputs.get("0"), call.cotangents.get("0")
            if output is None or cotangent is None or output.ndim < 2:
                return None
            outputs.append(output.astype(np.float64))
            cotangents.append(coefficient * cotangent.astype(np.float64))
            parts.append(np.full((len(output), 2), (rank, at)))
    if not outputs or len({one.shape[1:] for one in outputs}) != 1:
        return None
    return _Rows(np.concatenate(outputs), np.concatenate(cotangents), np.concatenate(parts))


def _named(sides: Sequence[_Side], digits: float, elements: int) -> FactorCause | None:
    """`elements`: of all rows together."""
    factors = [one.factor for one in sides[0].cells]
    largest = max(map(abs, factors))
    if largest < math.inf and max(factors) - min(factors) <= 4 * digits * largest:
        return _of_all(sides, 4 * digits, elements)
    for side in sides:
        parts: dict[tuple[int, int], list[_Cell]] = {}
        for one in side.cells:
            parts.setdefault(one.part, []).append(one)
        if len(side.calls) > 1 and all(one.factor == 0.0 or one.part[0] == 0 for one in side.cells):
            return FactorCause("not_reduced", side.run, {"parts": len(side.calls)})
        if len(parts) < 2 or not all(math.isfinite(one.factor) for one in side.cells):
            continue
        rows = {part: sum(one.rows for one in some) for part, some in parts.items()}
        weights = [one.factor * rows[one.part] for one in side.cells]
        if max(weights) - min(weights) <= 4 * digits * max(weights):
            tokens = ", ".join(str(one) for one in list(rows.values())[:8])
            told = {"parts": len(parts), "tokens": tokens}
            return FactorCause("mean_of_means", side.run, told, side.alike)
    return None


def _of_all(sides: Sequence[_Side], room: float, elements: int) -> FactorCause | None:
    """One factor for all rows. A power of two that divides the number of tokens or of elements may
    be a sum for a mean, and is not taken for a loss scale."""
    departs = _departing(sides, room)
    suspects = [side for side in sides if departs in (None, side.run)]
    sure = departs is not None
    for side in suspects:
        ranks, several = len(side.calls), side.calls[0]
        words: list[tuple[Word, int]] = [("sum_over_ranks", ranks)]
        if several > 1:
            words = [("sum_of_parts", ranks * several), ("sum_of_parts", several), *words]
        for word, parts in words:
            if parts > 1 and math.isclose(side.factor, parts, rel_tol=room):
                return FactorCause(word, side.run, {"parts": parts}, sure)
    for side in suspects:
        mantissa, exponent = math.frexp(side.factor)
        power = exponent - 1 if mantissa < 0.75 else exponent
        if 2.0**power < LEAST_SCALE or not math.isclose(side.factor, 2.0**power, rel_tol=room):
            continue
        tokens = sum(one.rows for one in side.cells)
        if tokens % 2**power and elements % 2**power:
            return FactorCause("loss_scale", side.run, {"scale": 2**power}, sure)
    return (
        FactorCause("multiple", suspects[0].run, {"factor": suspects[0].factor}) if sure else None
    )


def _departing(sides: Sequence[_Side], room: float) -> str | None:
    """The run whose gradient is not that of its own loss, but of a multiple that makes up for what
    the two differ by; or whose other's is. None where neither tells, or both do."""
    right, off = (
        {
            side.run: objective.holds(side.multiple, is_, room)
            and not objective.holds(side.multiple, is_not, room)
            for side in sides
            for is_, is_not in [(1.0, side.factor)[::turn]]
        }
        for turn in (1, -1)
    )
    for one, other in (("A", "B"), ("B", "A")):
        if (right[other] and not right[one]) or (off[one] and not off[other]):
            return one
    return None
