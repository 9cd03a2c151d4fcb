"""Two kernels' answers against each other."""

from __future__ import annotations

from refkernels.diagnosis.explanation import Difference, Explanation
from refkernels.diagnosis.problem import Arrays
from refkernels.metrology import agreement


def difference(
    a: str, b: str, first: Arrays, second: Arrays, one: Explanation, other: Explanation
) -> Difference:
    """How far apart two kernels are, and what tells them apart: a cause that one has and the other
    has not."""
    shared = [name for name in first if name in second]
    outputs = {name: agreement(first[name], second[name]) for name in shared}
    causes = [(one.cause, one.confidence), (other.cause, other.confidence)]
    told = [pair for pair in causes if pair[0] is not None and causes.count(pair) == 1]
    cause, confidence = told[0] if told else (None, None)
    return Difference(a, b, outputs, cause, confidence)
