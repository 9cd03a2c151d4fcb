"""Another op that takes the same inputs: hardswish for SiLU, Huber's loss for smooth L1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refkernels import registry
from refkernels.arithmetic.arrays import to_float64
from refkernels.contexts.doubles import Doubles
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import READABLE, Array, Arrays, Problem
from refkernels.diagnosis.variants.elsewhere import share_near
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.op import Op


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
            formulas = replace(problem, op=op).definition
            form, *_ = formulas.of(problem.direction).forms.values()
            asked = problem.direction, form, problem.inputs, {**op.params, **own}, "float64"
            return formulas.computed(*asked, Doubles())
    except (ValueError, TypeError, KeyError, IndexError):
        return {}
