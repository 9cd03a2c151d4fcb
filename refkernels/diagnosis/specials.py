"""Special values that a kernel loses or invents: max of 1, NaN is 2; mish(-inf) = -inf tanh(0); or
g + 0 w, the gradient of an infinite parameter with a decay of 0.

The oracle decides which inputs account for a NaN: the exact value is a number once these are
replaced by 1. A claim is made only where such reasons account for every wrong element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import units
from refkernels.diagnosis.hypothesis import Claim
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.diagnosis.wrong import located

ZERO_DECAY = "zero_decay"
CAUSES = ("nan_lost", "limit_at_infinity", "zero_where_undefined", "nan_of_infinity")


def find(problem: Problem, output: str, got: Array, wrong: Array) -> Iterator[Claim]:
    """The reasons of the wrong special values, if they account for all wrong elements."""
    exact, wide = np.asarray(problem.truth.reference[output]), to_float64(got)
    number, invented = wrong & ~np.isnan(wide), wrong & np.isnan(wide) & ~np.isnan(exact)
    if np.any(wrong & np.isfinite(exact) & np.isfinite(wide)) or not wrong.any():
        return
    yield from _of_zero_decay(problem, output, wide, wrong)
    of_nan = number & np.isnan(exact) & _changes(problem, output, exact, np.isnan)
    infinite = _changes(problem, output, exact, np.isinf)
    limits = number & np.isnan(exact) & ~of_nan & infinite
    zeros = number & ~np.isfinite(exact) & ~of_nan & ~limits & (wide == 0)
    masks = dict(zip(CAUSES, (of_nan, limits, zeros, invented & infinite), strict=True))
    if not np.array_equal(np.any(list(masks.values()), axis=0), wrong):
        return
    for cause, mask in masks.items():
        if mask.any():
            claim = located(cause, output, mask)
            yield _by_places(problem, claim, infinite) if cause == "nan_of_infinity" else claim


def zero_decayed(inputs: Arrays) -> dict[str, Array]:
    """The inputs with 0 times the parameter added to the gradient."""
    param = inputs["param"]
    return {**inputs, "grad": inputs["grad"] + param.dtype.type(0) * param}


def _of_zero_decay(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Iterator[Claim]:
    """0 times the parameter, added to the gradient; or to the new parameter, where there is no
    decay."""
    names = {"param", "grad"} <= problem.inputs.keys() and "weight_decay" in problem.op.params
    if not names or not np.isnan(wide[wrong]).all():
        return
    param = problem.inputs["param"]
    if param.shape != wide.shape or np.isfinite(to_float64(param)).all():
        return
    exact = np.asarray(problem.truth.reference[output])
    asked = {"grad": zero_decayed(problem.inputs)["grad"]}
    answers = [np.asarray(problem.ask(asked).reference[output])]
    if output == "param" and not problem.params["weight_decay"]:
        answers.append(exact + 0.0 * to_float64(param))
    if any(np.array_equal(np.isnan(answer) & ~np.isnan(exact), wrong) for answer in answers):
        yield _by_places(problem, located(ZERO_DECAY, output, wrong), wrong)


def _by_places(problem: Problem, claim: Claim, marked: Array) -> Claim:
    """The claim, with evidence in its places alone: any NaN among the elements that depend on an
    infinity would be attributed to it."""
    wrong = claim.prediction.wrong
    assert wrong is not None
    earned = units.by_unit(problem, claim.output, wrong, marked)
    bits_gained = units.shared(problem, claim.output, wrong, earned)
    return replace(claim, prediction=replace(claim.prediction, bits_gained=bits_gained))


def _changes(
    problem: Problem, output: str, exact: Doubles, chosen: Callable[[Doubles], Array]
) -> Array:
    """Mask of the elements whose exact value changes where the chosen inputs are replaced by 1."""
    masks = {name: chosen(to_float64(x)) for name, x in problem.floats.items()}
    replaced = {n: np.where(masks[n], x.dtype.type(1), x) for n, x in problem.floats.items()}
    if not any(mask.any() for mask in masks.values()):
        return np.zeros(exact.shape, bool)
    changed = np.asarray(problem.ask(replaced).reference[output])
    return np.asarray(~((changed == exact) | (np.isnan(changed) & np.isnan(exact))))
