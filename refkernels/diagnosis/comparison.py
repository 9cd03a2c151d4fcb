"""Compares two kernels' answers.

A difference is charged to the kernel whose own error accounts for it. With z the exact value,

    sum (a - b)^2 = sum (a - z)(a - b) + sum (z - b)(a - b)

the first sum is a's share and the second b's. The cause of the difference is the cause of the
kernel that it is charged to, never the other's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import evidence, units
from refkernels.diagnosis.explanation import Difference, Explanation
from refkernels.diagnosis.hypothesis import HARMLESS, ORDER, Candidate, Evidence
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.metrology import agreement
from refkernels.records.words import CONFIDENCES, Confidence
from refkernels.target_names import framework_of

Named = tuple[str | None, Confidence | None, dict[str, Any]]
_NO_CAUSE: Named = (None, None, {})


@dataclass(frozen=True)
class _Side:
    """One kernel of a pair."""

    name: str
    answers: Arrays
    explanation: Explanation


def difference(
    problem: Problem,
    a: str,
    b: str,
    answers: Mapping[str, Arrays],
    explanations: Mapping[str, Explanation],
) -> Difference:
    """How far apart two kernels are, and why.

    By output, `details["models"]` names the model of each kernel, and `details["shares"]` gives how
    much of the squared difference each kernel's own error accounts for.
    """
    first, second = answers[a], answers[b]
    sides = (_Side(a, first, explanations[a]), _Side(b, second, explanations[b]))
    shared = [name for name in first if name in second]
    outputs = {name: agreement(*_in_one_format(first[name], second[name])) for name in shared}
    differing = [name for name in shared if outputs[name]["equal_bits"] < outputs[name]["elements"]]
    models = {name: [_model(side, name) for side in sides] for name in shared}
    named_models = {n: {a: x.model, b: y.model} for n, (x, y) in models.items() if x and y}
    shares = {name: share(problem, name, first[name], second[name]) for name in differing}
    causes = [_cause(problem, sides, name, shares[name], models[name]) for name in differing]
    faults = [named for named in causes if named[0] not in (None, *HARMLESS)]
    others = (named for named in causes if named[0])
    cause, confidence, numbers = next(iter([*faults, *others]), _NO_CAUSE)
    details: dict[str, Any] = {"models": named_models} if named_models else {}
    if differing:
        details["shares"] = {name: {a: part, b: 1.0 - part} for name, part in shares.items()}
    return Difference(a, b, outputs, cause, confidence, {**details, **numbers})


def _in_one_format(a: Array, b: Array) -> tuple[Array, Array]:
    """Both arrays in one format: one kernel may keep a statistic in a wider format."""
    if a.dtype == b.dtype:
        return a, b
    wider = np.float64 if np.float64 in (a.dtype, b.dtype) else np.float32
    return a.astype(wider), b.astype(wider)


def share(problem: Problem, output: str, first: Array, second: Array) -> float:
    """The share of the squared difference that the first answer's own error accounts for, between 0
    and 1; where NaN or infinities are out of place, its share of those elements."""
    reference = problem.truth.reference[output]
    exact = np.asarray(reference)
    counts = [_misplaced(got, reference.round(formats.of(got))[0]) for got in (first, second)]
    if any(counts):
        return counts[0] / sum(counts)
    a, b = to_float64(first), to_float64(second)
    usable = np.isfinite(exact) & np.isfinite(a) & np.isfinite(b)
    scale = float(np.max(np.abs(a - b)[usable], initial=0.0))
    if not 0.0 < scale < np.inf:
        return 0.5
    differences = (a - b)[usable] / scale
    own_error = ((a - reference.hi) - reference.lo)[usable] / scale
    part = np.sum(own_error * differences) / np.sum(differences * differences)
    return float(np.clip(part, 0.0, 1.0))


def _misplaced(got: Array, rounded: Array) -> int:
    finite = np.isfinite(got) & np.isfinite(rounded)
    return int(np.count_nonzero(~(finite | evidence.same(got, rounded))))


def _cause(
    problem: Problem,
    sides: tuple[_Side, _Side],
    output: str,
    share_of_first: float,
    models: list[Candidate | None],
) -> Named:
    """The cause of the kernel that one output's difference is charged to."""
    first, second = (_candidate_of(side, output) for side in sides)
    faults = [c for c in (first, second) if c is not None and c.cause not in HARMLESS]
    if not faults:
        return _orders(problem, sides, output, *models)
    if len(faults) == 2 and faults[0].cause == faults[1].cause:
        return _same_fault(sides, *faults)
    charged = first if share_of_first >= 0.5 else second
    if charged is None or charged not in faults:
        return _NO_CAUSE
    return charged.cause, charged.confidence, {**charged.details, "output": output}


def _candidate_of(side: _Side, output: str) -> Candidate | None:
    """The named candidate of one output: the first that fits. One that is merely consistent counts
    only where it is the cause named for the kernel."""
    named = side.explanation.cause
    fitting = (c for c in side.explanation.candidates if c.output == output and not c.ruled_out)
    return next((c for c in fitting if c.confidence != "consistent" or c.cause == named), None)


def _same_fault(sides: tuple[_Side, _Side], first: Candidate, second: Candidate) -> Named:
    """One fault in both kernels, with different numbers (two factors, two eps). The confidence is
    the lower of the two."""
    a, b = (side.name for side in sides)
    shared = (key for key in first.details if key in second.details)
    both = ((key, first.details[key], second.details[key]) for key in shared)
    told = ((key, x, y) for key, x, y in both if isinstance(x, str | float) and x != y)
    numbers = {key: f"{x} ({a}), {y} ({b})" for key, x, y in told}
    if not numbers:
        return _NO_CAUSE
    numbers.pop("named", None)
    return first.cause, _less_sure(first, second), {**numbers, "output": first.output}


def _orders(
    problem: Problem,
    sides: tuple[_Side, _Side],
    output: str,
    first: Candidate | None,
    second: Candidate | None,
) -> Named:
    """The cause between two models of one output, each of which has all its kernel's bits. Of two
    forms, each element in which they differ is a bit, also where no order of sums shows."""
    if first is None or second is None or first.model == second.model:
        return _NO_CAUSE
    confidence = _less_sure(first, second)
    names = {"order" in m.details or str(m.model).partition(",")[0] for m in (first, second)}
    if len(names) == 2 and True not in names:
        counted, (a, b) = units.of(problem, output), (side.answers[output] for side in sides)
        apart = counted.gained(counted.chosen(~evidence.same(a, b)).astype(float))
        tried = sum(side.explanation.evidence["tried"] for side in sides)
        confidence = Evidence(float(np.sum(apart)) - math.log2(max(tried, 1)), 0).confidence
    if confidence in (None, "consistent"):
        return _NO_CAUSE
    order, other_order = first.details.get("order"), second.details.get("order")
    if order is not None and order == other_order and "bias_first" in (first.cause, second.cause):
        return "bias_first", confidence, {"order": order}
    return ORDER, confidence, {}


def _less_sure(*candidates: Candidate) -> Confidence | None:
    known = [candidate.confidence for candidate in candidates if candidate.confidence]
    return max(known, key=CONFIDENCES.index, default=None)


def _model(side: _Side, output: str) -> Candidate | None:
    """The first harmless model that has all bits of an output, even where these are the correctly
    rounded ones. If several have them, a model of the kernel's own framework is preferred."""
    models = (c for c in side.explanation.candidates if c.output == output and c.model)
    exact = [c for c in models if c.exact and c.cause in HARMLESS]
    framework = framework_of(side.name)
    native = (c for c in exact if framework and str(c.model).startswith(framework))
    return next(native, exact[0] if exact else None)
