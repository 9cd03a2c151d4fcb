"""The draft of an answer: every element's ball in float64, and the elements that stay open.

Where the formula can be traced as a graph over rows, a generated kernel takes large arrays: it
computes, encloses and tests a block of rows while the block is in the cache. Of a staged formula's
sums over the rows it computes the statistics, and NumPy reads the last stage, and all else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import small
from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.arithmetic.ladder import Draft, Open
from refkernels.arithmetic.question import Question
from refkernels.contexts import generated
from refkernels.contexts.ball import Ball
from refkernels.contexts.context import Context
from refkernels.contexts.graph import Untraceable
from refkernels.contexts.record import Record
from refkernels.contexts.value import Value
from refkernels.ops import enclosing, readings
from refkernels.ops.canonical import Canonical, Shared
from refkernels.ops.formula import Formula, TwoStage, Values, Whole, by_output, several
from refkernels.ops.readings import Reading

Enclosures = dict[str, Enclosure]
Drafted = tuple[dict[str, Draft], Open]
GENERATED = 100_000  # elements from which on a generated kernel pays, once it is compiled


def draft(formula: Formula, question: Canonical, names: tuple[str, ...], goal: Question) -> Drafted:
    """The outputs of these names, and the elements on which the question stays open."""
    by_row = tuple(name for name in names if question.rows_of[name])
    answers: Enclosures = {}
    left: Open = {}
    large = question.flat and question.elements >= GENERATED and not isinstance(formula, Whole)
    large = large and not small.allowance.covers(draft, question.elements)
    if by_row and large:
        with contextlib.suppress(Untraceable):
            answers, left = _generated(formula, question, by_row, goal)
    unanswered = tuple(name for name in names if name not in answers)
    if unanswered:
        reading, known = readings.ball(), None
        summed = not any(question.rows_of[name] for name in unanswered)
        if summed and large and isinstance(formula, TwoStage):
            with contextlib.suppress(Untraceable):
                known = _statistics(formula, question, reading.xp)
        parts_by_name = readings.read(formula, reading, question, unanswered, known)
        answers |= {name: enclosing.ball(*parts) for name, parts in parts_by_name.items()}
        left |= {name: np.flatnonzero(undecided(answers[name], goal)) for name in unanswered}
    return {name: Draft.of(answers[name]) for name in names}, left


def undecided(answer: Enclosure, goal: Question) -> npt.NDArray[np.bool_]:
    """Where the question is open; always so where the radius is infinite."""
    return goal.undecided(answer) | np.isinf(answer.radius)


def _generated(
    formula: Formula, question: Canonical, names: tuple[str, ...], goal: Question
) -> tuple[Enclosures, Open]:
    """The draft by a fused kernel. Raises Untraceable if there is none."""

    def chosen_outputs(xp: Context, **arguments: Any) -> list[Value]:
        outputs = by_output(question.shapes, formula(xp, **arguments))
        return [outputs[name] for name in names]

    kernel = _kernel(chosen_outputs, question, readings.ball())
    shapes = [part.shape for part, _ in kernel.empty()]
    if shapes != [question.shapes[name] for name in names]:
        raise Untraceable("An output has another shape than the rows that it is computed from.")
    opened: list[list[npt.NDArray[np.intp]]] = [[] for _ in names]

    def task(first: int, last: int, balls: Any) -> None:
        for k, at in enumerate(kernel.places(first, last)):
            known = enclosing.open_ends(balls[k][1])
            answer = trusted(balls[k][0], 0.0, balls[k][1])
            marks = goal.undecided(answer) if known else undecided(answer, goal)
            if marks.any():
                opened[k].append(at.start + np.flatnonzero(marks))

    balls = zip(names, kernel.balls(task), strict=True)
    answers = {name: trusted(mid, 0.0, radius, check=False) for name, (mid, radius) in balls}
    names_and_parts = zip(names, opened, strict=True)
    return answers, {
        name: np.sort(np.concatenate(parts)) for name, parts in names_and_parts if parts
    }


def _statistics(formula: TwoStage, question: Canonical, xp: Context) -> Values:
    """The statistics of all rows by a fused kernel. Raises Untraceable if there is no such kernel,
    or if it leaves a statistic unknown: every sum over the rows would be unknown too, where NumPy
    may enclose it."""

    def wanted(xp: Context, **arguments: Any) -> list[Value]:
        return list(several(formula.statistics(xp, **arguments)))

    kernel = _kernel(wanted, question)
    if any(part.shape != (question.rows, 1) for part, _ in kernel.empty()):
        raise Untraceable("A statistic is one element of a row.")
    balls = kernel.balls()
    if not all(np.isfinite(radius).all() for _, radius in balls):
        raise Untraceable("The kernel leaves a statistic unknown.")
    assert isinstance(xp, Ball)
    return tuple(xp.value(mid, radius) for mid, radius in balls)


def _kernel(
    wanted: Callable[..., list[Value]], question: Canonical, beforehand: Reading | None = None
) -> generated.Generated:
    """The fused kernel of wanted(xp, ...), which gives values of each row. `beforehand` is the
    reading that computes what all rows share; without it such a value is unknown. Raises
    Untraceable."""
    present = {name: array for name, array in question.arrays.items() if array is not None}
    absent = dict.fromkeys(name for name in question.arrays if name not in present)

    def rows(xp: Record, *values: Any) -> list[Value]:
        arrays = dict(zip(present, values, strict=True))
        params = {
            name: _shared(xp, param, beforehand) if isinstance(param, Shared) else param
            for name, param in question.params.items()
        }
        params = Reading(xp, lambda value: ()).arguments({}, params)
        return wanted(xp, **arrays, **absent, **params)

    return generated.of(rows, *present.values())


def _shared(xp: Record, param: Shared, beforehand: Reading | None) -> Value:
    """A value that all rows share, which a row's kernel cannot compute."""
    if beforehand is None:
        return xp.unknown("A value of all rows")
    mid, radius = (float(part.reshape(())) for part in beforehand.parts(param.of(beforehand.xp)))
    return xp.known(mid, radius)
