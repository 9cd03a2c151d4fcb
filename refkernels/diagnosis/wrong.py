"""The wrong elements of an output, and the claim that a pattern among them makes.

An element is wrong where it exceeds its bound, or where NaN or an infinity is out of place.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.problem import Array, Doubles, Problem
from refkernels.metrology.judgement import anywhere, violated
from refkernels.metrology.ulp_errors import ulp

_SHOWN = 8  # places that a claim lists
FEW = 0.01  # of all elements: a larger share of wrong ones is no accident of single elements


def wrong_elements(problem: Problem, output: str, got: Array) -> Array:
    """Mask of the elements beyond the sharpest form's bound, and of stray NaN and infinities."""
    return _beyond(problem, output, got, problem.sharp(output))


def judged_wrong(problem: Problem, output: str, got: Array) -> Array:
    """Mask of the elements that make the verdict: beyond the bound of all forms, or impossible; if
    none is, those that are impossible beside others."""
    question = problem.op, problem.direction, output, got, problem.truth.reference[output]
    broken = violated(*question, problem.inputs, problem.params)
    alone = {known: where for known, where in broken.items() if not known.between}
    wrong = _beyond(problem, output, got, problem.truth.bound[output])
    wrong = wrong | anywhere(alone, got.shape)
    return wrong if wrong.any() else anywhere(broken, got.shape)


def places(wrong: Array) -> dict[str, object]:
    """Where elements are wrong: how many of how many, the first, and the smallest box of indices,
    a start and a stop for each axis."""
    indices = np.argwhere(wrong)
    box = [[int(axis.min()), int(axis.max()) + 1] for axis in indices.T]
    return {
        "elements": len(indices), "of": int(wrong.size),
        "first": indices[:_SHOWN].tolist(), "box": box,
    }  # fmt: skip


def _beyond(problem: Problem, output: str, got: Array, bound: Doubles) -> Array:
    reference = problem.truth.reference[output]
    exact, wide = np.asarray(reference), to_float64(got)
    with np.errstate(invalid="ignore", over="ignore"):
        beyond = _error(reference, got) - np.ldexp(reference.radius, reference.scale) > bound
    special = np.isfinite(exact) & ~np.isfinite(wide) & np.isfinite(bound)
    special &= (np.abs(exact) <= formats.of(got).max) | (np.sign(exact) != np.sign(wide))
    misplaced = ~np.isfinite(exact) & ~((wide == exact) | (np.isnan(wide) & np.isnan(exact)))
    result: Array = (beyond & np.isfinite(exact) & np.isfinite(wide)) | special | misplaced
    return result


def vanishes(
    problem: Problem, output: str, got: Array, wrong: Array, limit: float, factors: Iterable[str]
) -> bool:
    """Whether every wrong element is 0 where the result is no larger than a limit, times the sizes
    above 1 of some inputs: a factor may have been flushed, or the reciprocal of an infinity."""
    sizes = [np.maximum(np.abs(to_float64(problem.inputs[name])), 1.0) for name in factors]
    small = np.abs(np.asarray(problem.truth.reference[output])) <= limit * np.prod(sizes, axis=0)
    return bool(np.all((got == 0)[wrong] & small[wrong]))


def flush_shown(problem: Problem, output: str, got: Array, wrong: Array) -> bool:
    """Whether a flush is shown: not by zeros that the reciprocal of an infinity may be, too, where
    no input is subnormal."""
    cotangent = (problem.op.cotangent,) if problem.direction == "backward" else ()
    tiny, limit = formats.of(got).min_normal, 2.0 ** -(formats.of(got).emax + 1)
    sizes = [np.abs(to_float64(x)) for x in problem.inputs.values() if np.shape(x) == got.shape]
    subnormal = any(np.any((size > 0.0) & (size < tiny) & wrong) for size in sizes)
    alone = problem.op.elementwise and not subnormal
    return not (alone and vanishes(problem, output, got, wrong, limit, cotangent))


def faithful(problem: Problem, output: str, got: Array) -> Array:
    """Mask of the elements that are next to their exact value: less than an ulp from it."""
    reference = problem.truth.reference[output]
    with np.errstate(invalid="ignore", over="ignore"):
        near: Array = _error(reference, got) < ulp(np.asarray(reference), formats.of(got))
    return near


def _error(reference: Enclosure, got: Array) -> Doubles:
    """The distance from the middle of each enclosure."""
    return np.abs((to_float64(got) - np.asarray(reference)) - low_part(reference))


def low_part(reference: Enclosure) -> Doubles:
    """What the middle of each enclosure has beyond float64; 0 where it has a scale."""
    return np.where(reference.scale == 0, reference.lo, 0.0)


def pattern(
    cause: str, output: str, wrong: Array, details: dict[str, object], counted: bool = False
) -> Claim:
    """The claim that a cause made just these elements wrong. `counted`: as in `Prediction`."""
    number = int(np.count_nonzero(wrong))
    prediction = Prediction(wrong=wrong, counted=counted)
    return Claim(cause, output, prediction, {"wrong": number, **details})


def located(cause: str, output: str, wrong: Array, counted: bool = True, **more: object) -> Claim:
    """The claim of a pattern, with the first places of its wrong elements."""
    places = [list(map(int, place)) for place in np.argwhere(wrong)[:_SHOWN]]
    return pattern(cause, output, wrong, {"first": places, **more}, counted)
