"""What the wrong elements of an output have in common, whatever the op: zeros where numbers should
be, one element among many, one value throughout. Only the truth is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import models, narrow, overflow
from refkernels.diagnosis.hypothesis import Candidate, Claim
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.wrong import FEW, pattern, wrong_elements
from refkernels.metrology import UNUSUAL, error_over_plain

_SHOWN = 8
_PLACES = ("unwritten_elements", "corrupted_elements")
_REASONS = (
    "early_overflow", "flush_to_zero", "erf_cancellation", "tanh_cancellation",
    "argument_reduction",
)  # fmt: skip


def find(problem: Problem, outputs: Arrays) -> Iterator[Claim]:
    """Every pattern that the wrong elements show."""
    for output, got in outputs.items():
        wrong = wrong_elements(problem, output, got)
        number = int(np.count_nonzero(wrong))
        if not number:
            continue
        found = [_overflow(problem, output, got, wrong), flushed(problem, output, got, wrong)]
        if number < got.size:
            found += [unwritten(output, got, wrong), corrupted(problem, output, got, wrong)]
        yield from (claim for claim in found if claim is not None)


def _overflow(problem: Problem, output: str, got: Array, wrong: Array) -> Claim | None:
    """The intermediate that accounts for every wrong element, None where none does."""
    known, wide = models.of(problem.op), to_float64(got)
    if problem.op.function:
        return overflow.of_function(problem, known.intermediates, output, wide, wrong)
    if known.specials is not None:
        return known.specials(problem, output, wide, wrong)
    if problem.op.formulas is not None and not problem.op.total:
        return narrow.of_formula(problem, output, wide, wrong)
    return overflow.of_product(problem, output, wide, wrong)


def reasoned(candidates: list[Candidate]) -> list[Candidate]:
    """Without the patterns that say where something is wrong, where a cause says why."""
    explained = {
        one.output
        for one in candidates
        if not one.ruled_out
        and (one.cause in _REASONS or "negative" in one.details or _is_an_answer(one))
    }
    return [one for one in candidates if one.cause not in _PLACES or one.output not in explained]


def _is_an_answer(one: Candidate) -> bool:
    """Whether another question explains every element, not where some are wrong."""
    return one.prediction is not None and one.prediction.answer is not None


def flushed(problem: Problem, output: str, got: Array, wrong: Array) -> Claim | None:
    """Every wrong element is a zero whose right value, or one of whose inputs, is subnormal. Where
    the output has subnormals, only inputs are flushed."""
    size = np.abs(to_float64(got))
    if np.any(size[wrong] != 0.0):
        return None
    exact = np.abs(np.asarray(problem.truth.reference[output]))
    tiny = formats.of(got).min_normal
    kept = bool(np.any((size > 0.0) & (size < tiny)))
    small = np.zeros(got.shape, bool) if kept else exact < tiny
    for array in problem.inputs.values():
        wide = np.abs(to_float64(array))
        if wide.shape == got.shape:
            small = small | ((wide > 0) & (wide < tiny))
    if not small[wrong].all():
        return None
    return _pattern("flush_to_zero", output, wrong)


def unwritten(output: str, got: Array, wrong: Array) -> Claim | None:
    """From the first wrong element to the last all are one value: memory that was never written, or
    zeros. (An element in between whose right value is next to it is not wrong by itself.)"""
    places = np.flatnonzero(wrong)
    values = got.reshape(-1)[places[0] : places[-1] + 1]
    alike = bool(np.all(values == values[0]) or np.all(np.isnan(values)))
    if not alike or places.size < 2:
        return None
    found = _pattern("unwritten_elements", output, wrong, value=str(values[0]))
    return replace(found, parameters=1, price=2.0 * math.log2(got.size))


def corrupted(problem: Problem, output: str, got: Array, wrong: Array) -> Claim | None:
    """A few single elements are wrong, and all others as near to the truth as is usual."""
    number = int(np.count_nonzero(wrong))
    if number > max(1, int(FEW * got.size)):
        return None
    if not _ordinary_but_for(problem, output, got, wrong):
        return None
    found = _pattern("corrupted_elements", output, wrong)
    return replace(found, price=math.log2(math.comb(got.size, number)))


def _ordinary_but_for(problem: Problem, output: str, got: Array, wrong: Array) -> bool:
    """Whether the errors of the other elements are no larger than judge calls usual."""
    truth, rest = problem.truth, ~wrong
    plain = truth.plain.get(output)
    if plain is None:
        return True
    reference, format = truth.reference[output][rest], formats.of(got)
    ratio = error_over_plain(got[rest], plain[rest], reference, format, problem.op.elementwise)
    return ratio is None or ratio <= UNUSUAL


def _pattern(cause: str, output: str, wrong: Array, **more: object) -> Claim:
    places = [list(map(int, place)) for place in np.argwhere(wrong)[:_SHOWN]]
    return pattern(cause, output, wrong, {"first": places, **more}, counted=True)
