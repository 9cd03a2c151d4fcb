"""Special values that are right besides the op's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY64
from refkernels.contexts.working import RoundedArithmetic
from refkernels.judging.questions import KernelQuestion
from refkernels.programs.spread import Traced

Array = npt.NDArray[Any]


def others(question: KernelQuestion, rounded: Mapping[str, Array]) -> dict[str, list[Array]]:
    """Other right special values: those of the op's conventions and, for infinite inputs, of the
    plain algorithm and of the named forms. There IEEE 754 arithmetic may lead each form to another:
    x Phi(x) at minus infinity is -0, but -inf times 0 is NaN. A program has one form: there either
    infinity is right for NaN, as in log(sum(exp(x))) - x of an infinite row. `rounded`: the op's
    answers."""
    definition, direction = question.op.definition, question.direction
    asked = question.inputs, question.params, question.format
    answers_of = dict[str, list[Array]]()
    finite = all(np.isfinite(to_float64(array)).all() for array in question.floats.values())
    formulas = [getattr(c, direction) for c in definition.conventions] if definition else []
    if definition and not finite:
        formulas += definition.of(direction).forms.values()
    answers = [] if finite else [question.op.plain(direction, *asked)]
    answers += [definition.computed(direction, f, *asked) for f in formulas if definition]
    if definition and definition.limited and not finite:
        bare = replace(definition, prepare=None)  # -inf times 0 is NaN
        answers += [bare.computed(direction, f, *asked) for f in formulas]
    infinite = any(np.isinf(to_float64(array)).any() for array in question.floats.values())
    if infinite and any(isinstance(formula, Traced) for formula in formulas):
        wide = {name: to_float64(array) for name, array in rounded.items()}
        for infinity in (np.inf, -np.inf):
            answers.append({n: np.where(np.isnan(a), infinity, a) for n, a in wide.items()})
    for answer in answers:
        for name, array in answer.items():
            answers_of.setdefault(name, []).append(to_float64(array))
    if finite:
        return answers_of
    if question.op.real_function is not None and question.direction == "forward":
        x, (name,) = to_float64(question.inputs["x"]), question.op.outputs
        xp, right = RoundedArithmetic(BINARY64), to_float64(rounded[name])
        for named in question.op.real_function.forms:
            y = named.formula(xp, xp.array(np.where(np.isinf(x), x, 0.0))).data
            answers_of[name].append(np.where(np.isnan(y), y, right))
    return answers_of


def same(got: Array, other: Array, right: Array) -> npt.NDArray[np.bool_]:
    """Where an answer is that of another form, and differs from the correctly rounded one in being
    NaN, infinite or finite."""
    wide, exact = to_float64(got), to_float64(right)
    if other.shape != exact.shape:
        return np.zeros(exact.shape, np.bool_)
    equal = (np.isnan(wide) & np.isnan(other)) | (wide == other)
    other_kind = (np.isnan(other) != np.isnan(exact)) | (np.isinf(other) != np.isinf(exact))
    return np.asarray(equal & other_kind)
