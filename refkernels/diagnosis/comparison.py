"""Two kernels' answers against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.diagnosis.explanation import Difference, Explanation
from refkernels.diagnosis.hypothesis import CONFIDENCES, ORDER, Candidate, Confidence
from refkernels.diagnosis.problem import Array, Arrays
from refkernels.metrology import agreement

_HARMLESS = (ORDER, "bias_first")
Told = tuple[str | None, Confidence | None, dict[str, Any]]


def difference(
    a: str, b: str, first: Arrays, second: Arrays, one: Explanation, other: Explanation
) -> Difference:
    """How far apart two kernels are, and what tells them apart.

    A cause that one has and the other has not; where both have none but their order, the orders
    that each is proven to have: where the bias enters, if that alone differs. `details["models"]`
    says by output which model each kernel is.
    """
    shared = [name for name in first if name in second]
    outputs = {name: agreement(*_alike(first[name], second[name])) for name in shared}
    apart = [name for name in shared if outputs[name]["equal_bits"] < outputs[name]["elements"]]
    models = {name: (_proven(one, name, a), _proven(other, name, b)) for name in shared}
    said = {
        name: {a: mine.model, b: theirs.model}
        for name, (mine, theirs) in models.items()
        if mine is not None and theirs is not None
    }
    details: dict[str, Any] = {"models": said} if said else {}
    cause, confidence, more = _cause(one, other, [models[name] for name in apart])
    if cause is None and one.cause is not None and one.cause == other.cause:
        cause, confidence, more = _numbers({a: one, b: other}, apart)
    if not apart:
        cause, confidence, more = None, None, {}
    return Difference(a, b, outputs, cause, confidence, {**details, **more})


def _alike(a: Array, b: Array) -> tuple[Array, Array]:
    """Both in one format: a statistic that one of two kernels keeps in a wider one."""
    if a.dtype == b.dtype:
        return a, b
    wide = np.float64 if np.float64 in (a.dtype, b.dtype) else np.float32
    return a.astype(wide), b.astype(wide)


def _cause(
    one: Explanation,
    other: Explanation,
    models: list[tuple[Candidate | None, Candidate | None]],
) -> Told:
    """What is more than an order first."""
    causes = [(each.cause, each.confidence, each) for each in (one, other)]
    faults = [told for told in causes if told[0] is not None and told[0] not in _HARMLESS]
    if faults and len({told[0] for told in causes}) > 1:
        cause, confidence, explanation = faults[0]
        return cause, confidence, dict(_first(explanation).details)
    for mine, theirs in models:
        if mine is not None and theirs is not None and mine.model != theirs.model:
            return _orders(mine, theirs)
    return None, None, {}


def _numbers(kernels: dict[str, Explanation], apart: list[str]) -> Told:
    """One fault in both, with another number in each (two factors, two eps): the first output that
    is apart and has them. As sure as the less sure of the two."""
    for name in apart:
        found = [_of_output(one, name) for one in kernels.values()]
        mine, theirs = found
        if mine is None or theirs is None:
            continue
        told = {
            key: ", ".join(
                f"{one.details[key]} ({kernel})"
                for kernel, one in zip(kernels, (mine, theirs), strict=True)
            )
            for key in mine.details
            if key in theirs.details
            and isinstance(mine.details[key], str | float)
            and mine.details[key] != theirs.details[key]
        }
        if told:
            told.pop("named", None)
            sure = [CONFIDENCES.index(one.confidence) for one in (mine, theirs) if one.confidence]
            return mine.cause, CONFIDENCES[max(sure)], {**told, "output": name}
    return None, None, {}


def _of_output(explanation: Explanation, output: str) -> Candidate | None:
    """The candidate of an output that has the kernel's cause."""
    return next(
        (
            one
            for one in explanation.candidates
            if one.cause == explanation.cause and one.output == output and not one.ruled_out
        ),
        None,
    )


def _orders(one: Candidate, other: Candidate) -> Told:
    """Two proven models of one output."""
    if one.cause not in _HARMLESS or other.cause not in _HARMLESS:
        cause = other.cause if one.cause in _HARMLESS else one.cause
        return cause, "proven", {}
    order, another = one.details.get("order"), other.details.get("order")
    if order is not None and order == another and "bias_first" in (one.cause, other.cause):
        return "bias_first", "proven", {"order": order}
    return ORDER, "proven", {}


def _proven(explanation: Explanation, output: str, kernel: str) -> Candidate | None:
    """The first model that has all bits of an output, be they the correctly rounded ones; rather
    the kernel's own, as several may have them. A model that is to blame for something counts only
    where it is named: a right output may have its bits by chance."""
    whole = [
        one
        for one in explanation.candidates
        if one.output == output
        and one.model
        and one.equal == one.elements
        and (one.cause in _HARMLESS or not one.ruled_out)
    ]
    framework = kernel.partition("==")[0]
    own = [one for one in whole if framework and str(one.model).startswith(framework)]
    return next(iter(own or whole), None)


def _first(explanation: Explanation) -> Candidate:
    return next(one for one in explanation.candidates if one.cause == explanation.cause)
