"""Two causes at once: one of wrong special values, as NaN in masked rows, another of wrong numbers.

Each part is explained with the other's elements put right; its bits count by the share of elements
that are the kernel's own. Where the numbers are rounding, the cause is that of the special values;
otherwise both must have one, and the answer is as sure as the less sure. A pattern of places
(`LOCATED`) is no cause here: right elements among wrong ones make patterns.

Or of two causes of wrong numbers one is known (`first_of_two`), which leaves little of the error;
where it is another op, what is left is explained as that op's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from refkernels import registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.diagnosis import evidence, patterns, specials, thresholds
from refkernels.diagnosis.explanation import Explanation
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import ORDER, Candidate
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.records.words import CONFIDENCES, SOUND

_LITTLE = 2.0**-8  # of an error: what a first cause leaves to a second one
LOCATED = (*patterns.PLACES, thresholds.CAUSE, patterns.STOPPED)


def found(
    problem: Problem, outputs: Arrays, explain: Callable[[Problem, Arrays], Explanation]
) -> Iterator[Candidate]:
    """The pairs of causes of outputs that no single cause explains."""
    decayed: Problem | None = None  # one for all outputs, which share what is found of it
    for name, got in outputs.items():
        reference = problem.truth.reference[name]
        if got.shape != reference.shape:
            continue
        wrong = wrong_elements(problem, name, got)
        right = reference.round(problem.format_of(name))[0].astype(got.dtype)
        special = wrong & ~(np.isfinite(got) & np.isfinite(right))
        parts = (np.where(special, right, got), np.where(special, got, right))
        if any(evidence.same(part, got).all() for part in parts):
            continue  # there is one part
        asked, numbers = problem, {name: parts[0]}
        shares = [float(np.mean(evidence.same(part, got))) for part in parts]
        others = explain(problem, {name: parts[1]})
        if others.cause == specials.ZERO_DECAY:
            # The numbers of another question, whose special values are the kernel's; nothing is
            # put right in them, and places are counted among all elements.
            decayed = decayed or replace(problem, inputs=specials.zero_decayed(problem.inputs))
            asked, numbers, shares = decayed, {name: got}, [1.0, 1.0]
        of_specials = _named(others, shares[1])
        if of_specials is None:
            continue
        of_numbers = _named(answered := explain(asked, numbers), shares[0])
        shown = "consistent" if of_numbers is None else of_numbers.evidence_confidence
        if answered.verdict in SOUND and shown == "consistent":
            yield of_specials
            continue
        if of_numbers is None or "with" in of_numbers.details:
            continue
        details = {**of_numbers.details, "with": of_specials.cause}
        confidence = max(shown, of_specials.evidence_confidence, key=CONFIDENCES.index)
        yield replace(of_numbers, details=details, confidence=confidence)


def first_of_two(
    problem: Problem,
    candidates: Sequence[Candidate],
    fits: Mapping[str, Fit],
    outputs: Arrays,
    explain: Callable[[Problem, Arrays], Explanation],
) -> Iterator[Candidate]:
    """Of each output, the answer to another question that leaves least of its error, where that is
    little, and half of the digits are right: what is `left`, in errors of the plain algorithm, has
    a cause of its own, which is known only of another op."""
    for name, got in outputs.items():
        of_output = (c for c in candidates if c.output == name and c.model is None)
        answers = (candidate for candidate in of_output if "with" not in candidate.details)
        u = max(problem.format_of(name).u, BINARY32.u)  # of the other answer's format
        most = min(_LITTLE * fits[name].over_plain, u**-0.5)
        known = [c for c in answers if c.over_plain is not None]
        lefts = [(max(c.over_plain or 0.0, c.over_bound or 0.0), c) for c in known]
        near = [("several" in c.details, left, c) for left, c in lefts if 0.0 < left <= most]
        if near:  # a number without a name fits anything best
            _, left, best = min(near, key=lambda one: one[:2])
            other, second = best.details.get("other"), None
            if problem.op.function and other in registry.ops():
                asked = replace(problem, op=registry.get(other))
                second = _named(explain(asked, {name: got}), 1.0)
            if second is None:
                yield replace(best, confidence="consistent", details={**best.details, "left": left})
            else:
                told = {**best.details, "with": second.cause, "with_details": second.details}
                yield replace(second, cause=best.cause, details=told)


def _named(explanation: Explanation, own_share: float) -> Candidate | None:
    """The candidate that the explanation names, None for a mere order of summation or pattern.
    `own_share`: the share of elements that are the kernel's."""
    if explanation.cause in (None, ORDER, *LOCATED):
        return None
    named = next(c for c in explanation.candidates if c.cause == explanation.cause)
    counted = named.evidence
    weighed = None if counted is None else replace(counted, bits=own_share * counted.bits)
    candidate = replace(named, evidence=weighed, prediction=None)
    return replace(candidate, confidence=candidate.evidence_confidence)
