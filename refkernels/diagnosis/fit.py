"""How well a kernel's output fits an answer: the verdict if that answer were the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.diagnosis.problem import Answer, Array, Problem
from refkernels.metrology import judge
from refkernels.metrology.judgement import weigh, worst_index
from refkernels.metrology.verdict import RmsErrors, error_over_plain
from refkernels.records.codec import number
from refkernels.records.words import INSIDE, SOUND

LIKE = 4.0  # the largest ratio of errors that are alike: judge's criterion


@dataclass(frozen=True)
class Fit:
    """One output against an answer. `over_bound`: the largest error / bound; `over_plain`: its RMS
    error over the plain algorithm's. `place`: the flat index of the element that explains the
    verdict. `errors`: its RMS errors. `record`: `judge`'s record, if it was requested."""

    output: str
    verdict: str
    flags: tuple[str, ...]
    over_bound: float
    over_plain: float
    elements: int
    equal: int  # bits equal to the correctly rounded answer, where that is certain
    place: int | None = None
    errors: RmsErrors | None = None
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fine(self) -> bool:
        """Whether every element is inside the bound."""
        return self.verdict in INSIDE

    @property
    def ordinary(self) -> bool:
        """Whether rounding alone explains the output."""
        return self.verdict in SOUND and "unusual" not in self.flags

    @property
    def exact(self) -> bool:
        """Whether every bit equals that of the correctly rounded answer."""
        return self.elements > 0 and self.equal == self.elements


def over_plain(problem: Problem, output: str, got: Array, answer: Answer) -> float | None:
    """One output's error over that of the plain algorithm, None where the answer lacks it."""
    right, reference = problem.right(output, answer), answer.reference[output]
    if right is None:
        return None
    return error_over_plain(got, right, reference, formats.of(got), problem.op.elementwise)


def fit(problem: Problem, output: str, got: Array, answer: Answer) -> Fit | None:
    """One output against an answer; None where the answer lacks it or has another shape."""
    reference = answer.reference.get(output)
    if reference is None or reference.shape != got.shape:
        return None
    op = problem.op if answer.invariant else replace(problem.op, invariants=())
    weighed = weigh(
        *(op, problem.direction, output, got, reference),
        bound=np.broadcast_to(answer.bound[output], got.shape),
        plain=problem.right(output, answer),
        inputs=problem.inputs,
        params=problem.params,
        format=formats.of(got),
        distribution=False,
        limits=answer.limits.get(output),
    )
    return Fit(
        output,
        weighed.verdict,
        tuple(weighed.flags),
        weighed.summary.max_ratio,
        weighed.plain_ratio or 0.0,
        got.size,
        correctly_rounded(problem, got, answer, reference),
        worst_index(weighed),
        weighed.errors,
    )


def sized(problem: Problem, output: str, got: Array, model: Array) -> Fit:
    """One output against the truth, with `over_plain` in units of a model's errors: from 1 / LIKE
    to LIKE they are alike."""
    result = fit(problem, output, got, replace(problem.truth, plain={output: model}))
    assert result is not None
    return result


def fit_to_truth(problem: Problem, output: str, got: Array) -> Fit | None:
    """One output against the truth, with its record; None where the truth has another shape."""
    truth = problem.truth
    reference = truth.reference[output]
    if reference.shape != got.shape:
        return None
    record = {"format": formats.of(got).name} | judge(
        *(problem.op, problem.direction, output, got, reference),
        bound=truth.bound[output],
        condition=problem.condition.get(output),
        plain=problem.right(output, truth),
        inputs=problem.inputs,
        params=problem.params,
        forms=problem.forms if output in problem.first else None,
        attainable=partial(problem.attainable, output),
        limits=truth.limits[output],
    )
    return Fit(
        output,
        record["verdict"],
        tuple(record["flags"]),
        number(record["bound"]["max_ratio"]) or 0.0,
        number(record["plain"]["ratio"]) or 0.0,
        got.size,
        correctly_rounded(problem, got, truth, reference),
        record=record,
    )


def correctly_rounded(problem: Problem, got: Array, answer: Answer, reference: Enclosure) -> int:
    """How many elements have the bits of the answer's correct rounding. For another question, only
    certain roundings count: a hypothesis that is computed in float64 has roundings of its own."""
    rounded, certain = reference.round(formats.of(got))
    alike = same(got, rounded)
    return int(np.count_nonzero(alike if answer is problem.truth else alike & certain))


def bits(array: Array) -> Array:
    """The bit patterns, with one pattern for every NaN."""
    quiet = np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array)
    result: Array = np.ascontiguousarray(quiet).view(formats.of(array).bits_dtype)
    return result.reshape(array.shape)


def same(a: Array, b: Array) -> Array:
    """Mask of the elements with the same bits."""
    mask: Array = np.asarray(np.equal(bits(a), bits(b)))
    return mask
