"""The draft of an answer: every element's ball in float64, and the elements that stay open.

Where the formula is a graph over rows, a generated kernel takes large arrays: it computes, encloses
and tests a block of rows while it is in the cache. NumPy reads the others.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.arithmetic.ladder import Open
from refkernels.arithmetic.question import Question
from refkernels.contexts import generated
from refkernels.contexts.context import Context
from refkernels.contexts.execution import GENERATED
from refkernels.contexts.trace import Untraceable
from refkernels.contexts.value import Value
from refkernels.ops import enclosing, readings
from refkernels.ops.canonical import Canonical, Shared
from refkernels.ops.formula import Formula, by_output
from refkernels.ops.readings import Reading

Enclosures = dict[str, Enclosure]


def draft(
    formula: Formula, question: Canonical, names: tuple[str, ...], asked: Question
) -> tuple[Enclosures, Open]:
    """The outputs of these names, and their elements that the question leaves open."""
    by_row = tuple(name for name in names if question.rows_of[name])
    answers: Enclosures = {}
    left: Open = {}
    if by_row and question.flat and question.elements >= GENERATED:
        with contextlib.suppress(Untraceable):
            answers, left = _generated(formula, question, by_row, asked)
    others = tuple(name for name in names if name not in answers)
    if others:
        parts_by_name = readings.read(formula, readings.ball(), question, others)
        answers |= {name: enclosing.ball(*parts) for name, parts in parts_by_name.items()}
        left |= {name: np.flatnonzero(undecided(answers[name], asked)) for name in others}
    return {name: answers[name] for name in names}, {n: at for n, at in left.items() if at.size}


def undecided(answer: Enclosure, asked: Question) -> npt.NDArray[np.bool_]:
    """Where the question is open: always where nothing is known."""
    return asked.undecided(answer) | np.isinf(answer.radius)


def _generated(
    formula: Formula, question: Canonical, names: tuple[str, ...], asked: Question
) -> tuple[Enclosures, Open]:
    """The draft by a fused kernel. Raises Untraceable if there is none."""
    if any(isinstance(param, Shared) for param in question.params.values()):
        raise Untraceable("A value of all rows is not a row's.")
    present = {name: array for name, array in question.arrays.items() if array is not None}
    absent = dict.fromkeys(name for name in question.arrays if name not in present)

    def rows(xp: Context, *values: Any) -> list[Value]:
        params = Reading(xp, lambda value: ()).given({}, question.params)
        arrays = dict(zip(present, values, strict=True))
        outputs = by_output(question.shapes, formula(xp, **arrays, **absent, **params))
        return [outputs[name] for name in names]

    kernel = generated.of(rows, *present.values())
    shapes = [part.shape for part, _ in kernel.empty()]
    if shapes != [question.shapes[name] for name in names]:
        raise Untraceable("An output has another shape than the rows that it is computed from.")
    opened: list[list[npt.NDArray[np.intp]]] = [[] for _ in names]

    def task(first: int, last: int, balls: Any) -> None:
        for k, at in enumerate(kernel.places(first, last)):
            known = enclosing.open_ends(balls[k][1])
            answer = trusted(balls[k][0], 0.0, balls[k][1])
            marks = asked.undecided(answer) if known else undecided(answer, asked)
            if marks.any():
                opened[k].append(at.start + np.flatnonzero(marks))

    balls = zip(names, kernel.balls(task), strict=True)
    answers = {name: trusted(mid, 0.0, radius, check=False) for name, (mid, radius) in balls}
    names_and_parts = zip(names, opened, strict=True)
    return answers, {
        name: np.sort(np.concatenate(parts)) for name, parts in names_and_parts if parts
    }
