"""Views: the op of inputs that are read otherwise, as the user gave them, or of other settings.

A formula gets rows, patches or repeated heads, whose graph no longer shows the axes of the arrays
that they come from, nor the numbers by which they were cut: so the movements of `indices` are also
tried on the arrays themselves, and on two of them at once, such as keys and values; and whole
numbers are counted one too far, or two params exchanged. Or the op is another one that takes the
same inputs: hardswish for SiLU, Huber's loss for smooth L1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from refkernels import registry
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY64
from refkernels.contexts.doubles import Doubles
from refkernels.diagnosis.edits.indices import by_parts, changes_of
from refkernels.diagnosis.edits.names import named
from refkernels.diagnosis.edits.reductions import paddings
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.hypothesis import VALUE, Variant
from refkernels.diagnosis.problem import READABLE, Array, Arrays, Problem
from refkernels.diagnosis.variants.elsewhere import share_near
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.op import Op

_USUAL = (1, 2, 4, 8, 16, 32)
_MOST_LIMITS = 32
_ROUNDING = 2.0  # bits of an element that is merely rounded, at most on average


class View(NamedTuple):
    """Another question: its inputs and params that differ, and how."""

    kind: str
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    details: Mapping[str, Any]


def other_settings(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Other params, and whole numbers that are read otherwise, such as targets: they are in a graph
    only by the masks and indices that were made of them."""
    asked = {**problem.op.params, **problem.params}
    words = _words(problem.op) if any(isinstance(x, str) for x in asked.values()) else {}
    whole = {name: array for name, array in problem.inputs.items() if array.dtype.kind in "iu"}
    every = itertools.chain(_settings(asked, words), _limited(whole), _views(whole))
    yield from _nearest(problem, outputs, every)


def other_views(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Floats that are read otherwise; for what was left open a half or a quarter of an axis, or the
    lengths of several."""
    lengths = {n // k for array in problem.floats.values() for n in array.shape for k in (2, 4)}
    ends = {array.shape[k:] for array in problem.floats.values() for k in range(1, array.ndim - 1)}
    left_open = [name for name, value in problem.op.params.items() if value is None]
    parts = (
        View(VALUE, {}, {name: n}, {"param": name, "value": n, "asked": None})
        for name, n in itertools.product(left_open, (*sorted(lengths), *sorted(ends)))
        if problem.params.get(name) is None
    )
    every = itertools.chain(_of_longer_sums(problem), _views(problem.floats), parts)
    yield from _nearest(problem, outputs, every)


def _nearest(problem: Problem, outputs: Arrays, every: Iterator[View]) -> Iterator[Variant]:
    """The view that comes nearest to each wrong output, where what it leaves is mere rounding."""
    if problem.op.definition is None or problem.size > READABLE or not outputs:
        return
    screen = Screen(problem, outputs)
    if not screen.has_a_program:
        return
    views = list(itertools.islice(every, screen.affordable))
    problem.read["edits"] += len(views)
    answers = [screen.asked(view.inputs, view.params) for view in views]
    distances = [screen.costs(answer)[0] if answer else {} for answer in answers]
    for name in screen.names:
        near = [(of_view[name], k) for k, of_view in enumerate(distances) if of_view]
        distance, nearest = min(near, default=(math.inf, 0))
        if distance <= _ROUNDING * screen.observed[name].got.size:
            view = views[nearest]
            where = {"op": problem.op.name, "direction": problem.direction, "pass": "forward"}
            cause, details = named(view.kind, view.details, where)
            yield Variant(cause, details, problem.ask(view.inputs, view.params), trials=len(views))


def _words(op: Op) -> dict[str, dict[str, None]]:
    """The words that params have in the op's own cases."""
    words: dict[str, dict[str, None]] = {}
    for params in (op.params, *(case.build(case.dtypes[0])[1] for case in op.cases())):
        for name, value in params.items():
            words.setdefault(name, {}).update({value: None} if isinstance(value, str) else {})
    return words


def _settings(asked: Mapping[str, Any], words: Mapping[str, Mapping[str, None]]) -> Iterator[View]:
    """Whole numbers one off, doubled, halved or usual; other words; truth values inverted; two
    exchanged."""
    for name, value in asked.items():
        others: list[Any] = [word for word in words.get(name, ()) if word != value]
        if isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int):
            others = [other for other in dict.fromkeys((*_near(value), *_USUAL)) if other != value]
        elif isinstance(value, tuple) and all(isinstance(n, int) for n in value):
            ends = [(n,) * len(value) for n in value]  # a window of one side on both
            for k, n in enumerate(value):
                ends += [(*value[:k], other, *value[k + 1 :]) for other in _near(n)]
            ends += zip(*map(_near, value), strict=True)
            others = [other for other in dict.fromkeys(ends) if other != value]
        for other in others:
            details = {"param": name, "value": other, "asked": value}
            yield View(VALUE, {}, {name: other}, details)
    for (a, x), (b, y) in itertools.combinations(asked.items(), 2):
        if type(x) is type(y) and not isinstance(x, bool | str) and x != y:
            yield View("params_exchanged", {}, {a: y, b: x}, {"part": a, "other": b})


def _near(value: int) -> tuple[int, ...]:
    return value + 1, value - 1, 2 * value, value // 2


def _limited(whole: Arrays) -> Iterator[View]:
    """Whole numbers that stop, or begin again, at one of those that are there: a shard's end."""
    for name, array in whole.items():
        for last in np.unique(array)[1:-1][:_MOST_LIMITS].tolist():
            for how, read in (
                (f"min(i, {last})", np.minimum(array, last)),
                (f"max(i, {last})", np.maximum(array, last)),
                (f"i mod {last}", np.where(array < 0, array, array % max(last, 1))),
            ):
                details = {"part": name, "how": how}
                yield View("whole_numbers_limited", {name: read.astype(array.dtype)}, {}, details)


def _views(inputs: Arrays) -> Iterator[View]:
    """Of one array, and of two at once."""
    for names in (*((name,) for name in inputs), *itertools.combinations(inputs, 2)):
        first, *others = (inputs[name] for name in names)
        if not others and 1 in first.shape[-2:] and first.size > 1 < first.ndim:
            turned = np.ascontiguousarray(np.swapaxes(first, -1, -2))
            yield View("read_along_other_axis", {names[0]: turned}, {}, {"part": names[0]})
        if not others and first.dtype.kind in "Vi" and first.dtype.itemsize == 1:
            kind = "codes_as_numbers" if first.dtype.kind == "V" else "sign_bit_as_digit"
            codes = first.view(np.uint8).astype(np.float32)
            yield View(kind, {names[0]: codes}, {}, {"part": names[0]})
        for how, axis, change in itertools.chain(changes_of(first.shape), by_parts(first.shape)):
            fits = (
                o.ndim == first.ndim and o.shape[: axis + 1] == first.shape[: axis + 1]
                for o in others
            )
            if all(fits):
                moved = {name: np.ascontiguousarray(change(inputs[name])) for name in names}
                details = {"part": ", ".join(names), "how": how, "axis": axis}
                yield View("index_differs", moved, {}, details)


def _of_longer_sums(problem: Problem) -> Iterator[View]:
    """Inputs that are read beyond the end of an axis that is summed over, by all that have it: what
    follows in memory, such as the next row; or the last term again, as of a clamped index."""
    signature = problem.definition.of(problem.direction).signature
    takes = {n: signature.takes[n].own for n in problem.floats if n in signature.takes}
    kept = {letter for argument in signature.gives.values() for letter in argument.own}
    kept |= {x for n, own in takes.items() if problem.inputs[n].ndim < len(own) for x in own}
    for letter in sorted({letter for own in takes.values() for letter in own} - kept):
        axes = {name: own.index(letter) - len(own) for name, own in takes.items() if letter in own}
        n = max(problem.inputs[name].shape[axis] for name, axis in axes.items())
        ways = [rows for k in (1, 2) for rows in itertools.combinations(axes, k)]
        for padded, rows in itertools.product(paddings(n, 2 * n), ways):
            every = ((a, _longer(problem.inputs[a], axes[a], padded - n, a in rows)) for a in axes)
            details = {"n": n, "added": padded - n, "every": 1, "formula": ", ".join(rows)}
            yield View("next_row_counted", dict(every), {}, details)


def _longer(a: Array, axis: int, more: int, goes_on: bool) -> Array:
    rows = a.reshape(-1, *a.shape[axis:])
    behind = np.repeat(rows[:, -1:], more, 1)
    if goes_on:  # behind the last row, with zeros
        behind = np.concatenate([rows[1:, :more], rows[:1, :more] * 0])
    return np.concatenate([rows, behind], 1).reshape(*a.shape[:axis], -1, *rows.shape[2:])


def other_ops(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The op that comes near most wrong elements of an output; with its usual params, where the
    question has none of their names. What is right shows no other op."""
    ops = {name: op for name, op in registry.ops().items() if _takes_the_same(op, problem)}
    small = problem.size <= READABLE
    answers = {other: _computed(op, problem) for other, op in ops.items() if small}
    for name, got in outputs.items():
        wrong = wrong_elements(problem, name, got)
        counted = wrong if wrong.any() else np.ones_like(wrong)
        shares = {
            other: share_near(to_float64(got[counted]), to_float64(answer[name][counted]))
            for other, answer in answers.items()
            if name in answer and answer[name].shape == got.shape and np.ptp(answer[name])
        }
        best = max(shares, key=lambda other: shares[other], default="")
        if best and shares[best] > 0.5:
            details = {"op": problem.op.name, "other": best}
            answer = replace(problem.ask(op=best), invariant=False)
            yield Variant("other_op", details, answer, trials=len(ops))


def _takes_the_same(op: Op, problem: Problem) -> bool:
    """Whether the inputs and outputs have the names that the op knows."""
    direction, given = problem.direction, problem.inputs.keys()
    if op.name == problem.op.name or direction not in op.directions:
        return False
    return given <= set(op.takes(direction)) and problem.first == op.names(direction)[:1]


def _computed(op: Op, problem: Problem) -> dict[str, Array]:
    """About what the op answers; nothing where it needs other inputs, or other shapes."""
    own = {name: value for name, value in problem.params.items() if name in op.params}
    try:
        with np.errstate(all="ignore"):
            asked = replace(problem, op=op, params={**op.params, **own})
            return asked.computed(asked.definition.first(asked.direction), Doubles(), BINARY64)
    except (ValueError, TypeError, KeyError, IndexError):
        return {}
