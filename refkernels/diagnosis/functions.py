"""Functions of one variable: causes that the places and sizes of their errors suggest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import working_format
from refkernels.diagnosis import formulas, models
from refkernels.diagnosis.edits import identities, recognised
from refkernels.diagnosis.edits.names import named
from refkernels.diagnosis.fit import LIKE, Fit, sized
from refkernels.diagnosis.hypothesis import Claim, Hypothesis, Outcome, Prediction, Variant
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.wrong import FEW, faithful, pattern, wrong_elements
from refkernels.elementary_ref.functions import FUNCTIONS


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Hypothesis]:
    """Other functions, and the op's known patterns of errors; else a fast approximation."""
    known = models.of(problem.op)
    for name, got in outputs.items():
        if not problem.op.function or fits[name].ordinary:
            continue
        # An edit of the program has the bound of one form, which another function's others exceed.
        others = (f.name for f in FUNCTIONS if f.forms and f.name != problem.op.name)
        for other in others if problem.op.real_function else ():
            told = {"part": problem.op.inputs[0], "function": problem.op.name, "other": other}
            cause, details = named(recognised.KIND, told, {"op": problem.op.name})
            yield Variant(cause, details, problem.ask(op=other))
        claims = known.errors(problem, name, got, fits[name]) if known.errors else []
        claims = [*claims, *_cancelling_forms(problem, fits[name], got)]
        yield from claims
        outcomes = [claim.prediction.outcome for claim in claims]
        if all(outcome is not None and not outcome.fits for outcome in outcomes):
            yield from _fast_approximation(problem, name, got)


def _cancelling_forms(problem: Problem, truth: Fit, got: Array) -> Iterator[Claim]:
    """The forms in which kernels write the function that lose digits wherever the kernel does, as
    1 + erf in a tail: within a few of their bounds, with errors of no smaller size. No library's
    function is modelled, so that their bits show nothing."""
    name, format, wrong = truth.output, problem.format, wrong_elements(problem, truth.output, got)
    error = np.abs(to_float64(got) - np.asarray(problem.truth.reference[name]))[wrong]
    asked = problem.inputs, problem.params, format
    own, forms = problem.definition.of(problem.direction).forms, formulas.of_function(problem)
    for working, arithmetic in {format: "composed", working_format(format): ""}.items():
        bounds = {
            text: problem.definition.bounded(problem.direction, form, *asked, working)[name][wrong]
            for text, form in forms.items()
        }
        lost = error > (sharp := np.min([*bounds.values()], axis=0, initial=np.inf))
        for text in (text for text in bounds if text not in own and lost.any()):
            larger = (bounds[text] > sharp) & (bounds[text] < np.inf)
            if larger[lost].all() and (error <= LIKE * bounds[text]).all():
                model = problem.computed(forms[text], arithmetic)[name]
                size = sized(problem, name, got, model).over_plain
                outcome = Outcome(size >= 1.0 / LIKE, 0, got.size, None, size)
                details = {"formula": text}
                cause, details = named(identities.KIND, details, {"op": problem.op.name})
                yield Claim(cause, name, Prediction(outcome=outcome), details)


def _fast_approximation(problem: Problem, name: str, got: Array) -> list[Claim]:
    """A fast approximation, where errors are spread over ordinary arguments, beyond the limit but
    small: every normal value has at least half of the working precision's digits right. A few wrong
    elements may be accidents, unless they are next to the exact values: a function that must be
    rounded correctly, such as sqrt, has its limit there."""
    exact, wide = np.asarray(problem.truth.reference[name]), to_float64(got)
    wrong = wrong_elements(problem, name, got)
    few = np.count_nonzero(wrong) <= max(1, int(FEW * got.size))
    if few and not faithful(problem, name, got)[wrong].all():
        return []
    if not wrong.any() or not np.isfinite(wide[np.isfinite(exact)]).all():
        return []
    normal = np.isfinite(exact) & (np.abs(exact) >= problem.format.min_normal)
    scale = np.maximum(np.abs(exact[normal]), np.minimum(1.0, np.abs(exact[normal]).max(initial=0)))
    error = np.abs(wide[normal] - exact[normal])
    if not normal.any() or np.any(error > math.sqrt(problem.format.u) * scale):
        return []
    return [pattern("fast_approximation", name, wrong, {})]
