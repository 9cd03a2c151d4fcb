"""Factors with many possible reasons: 8, 1/8, 2^16.

A sum in place of a mean, a missing 1 / accumulation, a loss scale that is left in: most of them lie
outside the kernel, and a cause within it may give the same bits. Another output tells them apart:
whatever multiplies the loss or its gradient multiplies the gradients of all data, or those of all
parameters where only these are reduced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from refkernels.diagnosis.fit import Fit, fit
from refkernels.diagnosis.hypothesis import Candidate, scaled
from refkernels.diagnosis.problem import Arrays, Problem

FACTOR = "scale_factor"
_LARGEST = 4096  # numbers of rows, ranks and parts
_ROUNDED = 2.0**-24  # the relative error of a number rounded to float32
_FARTHEST = 64  # exponents of loss scales
_PARAMETERS = ("dweight", "dbias")  # reduced over ranks, unlike gradients of data


def common(low: float, high: float) -> float | None:
    """The number with many reasons between low and high: an integer, its reciprocal (which a kernel
    may have rounded to float32) or a power of two. None if there is none, or where they are
    negative."""
    if not 0.0 < low <= high < math.inf:
        return None
    whole, parts = math.ceil(low), math.ceil((1.0 - _ROUNDED) / high)
    if whole <= min(high, _LARGEST):
        return float(whole)
    if 1 < parts <= min((1.0 + _ROUNDED) / low, _LARGEST):
        return 1.0 / parts
    exponent = round(math.log2(low) / 2.0 + math.log2(high) / 2.0)
    known = abs(exponent) <= _FARTHEST and low <= 2.0**exponent <= high
    return 2.0**exponent if known else None


def many(candidate: Candidate) -> bool:
    """Whether a candidate is a factor with many reasons."""
    return candidate.cause == FACTOR and common(*candidate.details["interval"]) is not None


def shown_elsewhere(
    problem: Problem,
    outputs: Arrays,
    fits: Mapping[str, Fit],
    candidates: Sequence[Candidate],
    factor: Candidate,
) -> frozenset[str]:
    """The causes that are known although this factor gives the same bits: all, where the factor has
    few reasons or an output that it should multiply is right; else those that fit a wrong output
    which the factor does not explain."""
    all_causes = frozenset(candidate.cause for candidate in candidates)
    number = common(*factor.details["interval"])
    if number is None:
        return all_causes
    shown: set[str] = set()
    for name, got in outputs.items():
        right = fits[name].ordinary
        alike = (name in _PARAMETERS) == (factor.output in _PARAMETERS)
        if name == factor.output or (right and not (problem.direction == "backward" and alike)):
            continue
        multiplied = fit(problem, name, got, scaled(problem, name, number))
        if multiplied is not None and multiplied.ordinary:
            continue
        if right:
            return all_causes
        shown.update(c.cause for c in candidates if c.output == name and not c.ruled_out)
    return frozenset(shown)
