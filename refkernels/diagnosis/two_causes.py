"""Two causes at once: one of wrong special values, another of wrong numbers.

    attention in float64 by MindSpore's ops     NaN in rows where no key takes part; and a softmax
                                                in float32 in all other rows

Each part is explained with the other part's elements put right. Where the numbers are rounding, the
cause is that of the special values. Otherwise both must have one; the answer is the cause of the
numbers, with that of the special values, and as sure as the less sure one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from refkernels.diagnosis.explanation import Explanation
from refkernels.diagnosis.hypothesis import ORDER, Candidate
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.records.words import CONFIDENCES

_RIGHT = ("rounding", "correctly_rounded")


def found(
    problem: Problem, outputs: Arrays, explain: Callable[[Problem, Arrays], Explanation]
) -> Iterator[Candidate]:
    """The pairs of causes of outputs that no single cause explains."""
    for name, got in outputs.items():
        reference = problem.truth.reference[name]
        if got.shape != reference.shape:
            continue
        wrong = wrong_elements(problem, name, got)
        right = reference.round(problem.format_of(name))[0].astype(got.dtype)
        special = wrong & ~(np.isfinite(got) & np.isfinite(right))
        if not special.any() or np.array_equal(special, wrong):
            continue
        parts = (np.where(special, right, got), np.where(wrong & ~special, right, got))
        numbers, specials = (explain(problem, {name: part}) for part in parts)
        of_numbers, of_specials = _named(numbers), _named(specials)
        if of_specials is None:
            continue
        if of_numbers is None and numbers.verdict in _RIGHT:
            yield replace(of_specials, prediction=None)
        if of_numbers is None or "with" in of_numbers.details:
            continue
        details = {**of_numbers.details, "with": of_specials.cause}
        sure = max(of_numbers, of_specials, key=lambda c: CONFIDENCES.index(c.confidence))
        yield replace(of_numbers, details=details, confidence=sure.confidence, prediction=None)


def _named(explanation: Explanation) -> Candidate | None:
    """The candidate that the explanation names, None for a mere order of summation."""
    if explanation.cause in (None, ORDER):
        return None
    return next(c for c in explanation.candidates if c.cause == explanation.cause)
