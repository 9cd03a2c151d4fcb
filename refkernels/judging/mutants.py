"""Mutants: wrong kernels, made from the op, that a judge should refuse.

Inputs in a narrower format, the faults that the op declares, and edits of its graph of every kind
(`diagnosis.edits`): terms left out, other divisors, axes and indices, gradients lost. Of each kind,
some edit is tried on every challenge until one is refused. A mutant that errs no more than right
kernels on every challenge does not count.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from refkernels.contexts.graph import Edits, Graph
from refkernels.diagnosis.edits.catalogue import RULES, Program
from refkernels.diagnosis.edits.rules import edits_of
from refkernels.diagnosis.edits.usual import faults_of
from refkernels.judging import precision
from refkernels.judging.standard import RANGE, Challenge
from refkernels.metrology.ulp_errors import ulp
from refkernels.ops import edits
from refkernels.ops.formula import Formula, Whole
from refkernels.ops.function_formulas import definition

Outputs = Mapping[str, Any]
Answer = Callable[[Challenge], Outputs]
_NEAR = 8.0  # times the error of right kernels


@dataclass(frozen=True)
class Shown:
    """What the challenges would have caught, as in a `Judgement`. `cut`: whether time was up before
    every mutant had been tried."""

    killed: tuple[str, ...] = ()
    alive: tuple[str, ...] = ()
    smallest: Mapping[str, float] = field(default_factory=dict)
    cut: bool = False


@np.errstate(all="ignore")
def shown(challenges: tuple[Challenge, ...], seconds: float = math.inf) -> Shown:
    """Every mutant against the challenges, which are those that reject all decoys, for so many
    seconds of this process. A mutant whose trial is cut short does not count."""
    challenges = tuple(c for c in challenges if all(array.size for array in c.floats.values()))
    if not challenges:
        return Shown()
    first, killed, right = challenges[0], dict[str, bool](), functools.cache(_right)
    deadline = time.process_time() + seconds
    for name, answer in _mutants(first):
        refused = _refused(answer, challenges, right, deadline)
        if refused is not None:
            killed[name] = killed.get(name, False) or refused
    return Shown(
        tuple(name for name, refused in killed.items() if refused),
        tuple(name for name, refused in killed.items() if not refused),
        _smallest(challenges),
        time.process_time() >= deadline,
    )


def _refused(
    answer: Answer,
    challenges: Sequence[Challenge],
    right: Callable[[Challenge], Mapping[str, float]],
    deadline: float,
) -> bool | None:
    """Whether some challenge refuses a mutant; None for one that errs nowhere more than right
    kernels, or past the deadline."""
    differs = None
    for challenge in challenges:
        if time.process_time() >= deadline:
            return None
        if not (outputs := answer(challenge)):
            continue
        if (fault := challenge.fault(outputs)) and fault.kind not in RANGE:
            return True
        if not _is_near(challenge, right(challenge), outputs):
            differs = False
    return differs


def _right(challenge: Challenge) -> dict[str, Any]:
    """By output, the largest error of the plain algorithm and of the first form."""
    answers = _plain(challenge), _computed(challenge, _formula(challenge))
    rounded = challenge.standard().rounded
    return {n: max(_distance(a[n], rounded[n]) for a in answers if n in a) for n in answers[0]}


def _is_near(challenge: Challenge, errors: Mapping[str, float], outputs: Outputs) -> bool:
    """Whether a mutant errs no more than right kernels: it is another way to compute the same."""
    rounded, u = challenge.standard().rounded, 2.0 * challenge.format.u
    return all(
        _distance(a, rounded[n]) <= _NEAR * max(errors.get(n, 0.0), u * _distance(0.0, rounded[n]))
        for n, a in outputs.items()
    )


def _distance(got: Any, right: Any) -> float:
    """The largest difference, infinite where a special value differs; from 0, the largest size."""
    off = precision.off(np.broadcast_to(got, right.shape), right)
    return float(np.max(off, where=np.isfinite(right) | np.any(got), initial=0.0))


def _smallest(challenges: Sequence[Challenge]) -> dict[str, float]:
    """By output, the least bound of an element, in ulp of its exact value and at least 0.5; one ulp
    if bits are demanded."""
    smallest: dict[str, float] = {}
    for standard in (challenge.standard() for challenge in challenges):
        for name, exact in standard.reference.items():
            right = np.asarray(exact)
            usable = np.isfinite(right) & (right != 0.0)
            if usable.any():
                steps = ulp(right[usable], standard.formats[name])
                least = max(float(np.min(standard.bound[name][usable] / steps)), 0.5)
                limit = 1.0 if standard.exact(name) else least
                smallest[name] = min(smallest.get(name, np.inf), limit)
    return smallest


def _mutants(first: Challenge) -> Iterator[tuple[str, Answer]]:
    for model in precision.models(first.format):
        if model.way == "inputs":
            yield f"{model.format.name}_inputs", functools.partial(_plain, model=model)
    for fault in faults_of(definition(first.op), first.direction, first.inputs, first.params):
        yield fault.cause, functools.partial(_faulty, fault)
    for kind, family, _ in RULES:
        if family != "arithmetic":  # another rounding
            yield kind, functools.partial(_edited, kind)


def _plain(c: Challenge, model: precision.PrecisionModel | None = None) -> Outputs:
    c = precision.narrowed(c, model) if model else c
    return c.op.plain(c.direction, c.inputs, c.params, c.format)


def _formula(challenge: Challenge) -> Formula:
    return next(iter(definition(challenge.op).of(challenge.direction).forms.values()))


def _computed(c: Challenge, formula: Formula) -> Outputs:
    """A formula in the challenge's format."""
    return definition(c.op).computed(c.direction, formula, c.inputs, c.params, c.format)


def _faulty(fault: Any, challenge: Challenge) -> Outputs:
    outputs = _computed(challenge, getattr(fault, challenge.direction))
    kept = {n: a for n, a in challenge.standard().rounded.items() if n in outputs}
    return {**kept, **fault.changed(outputs)}


def _edited(kind: str, challenge: Challenge) -> Outputs:
    """One of the edits of a kind: the middle one."""

    def rule(graph: Graph) -> Edits:
        found = edits_of(Program(graph), {kind})
        return found[len(found) // 2].changes

    try:
        return _computed(challenge, Whole(edits.edited(_formula(challenge), rule)))
    except (ValueError, TypeError, IndexError):  # no place here, or an axis of another length
        return {}
