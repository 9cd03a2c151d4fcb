"""Every source of hypotheses, in the order in which they are tried.

Questions need only the outputs; algorithms also need their fit to the truth. Hypotheses of equal
rank are listed in this order. Two faults at once are tried only where no single one fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from refkernels.diagnosis import (
    accumulators,
    formulas,
    functions,
    models,
    patterns,
    recovered,
    sums,
)
from refkernels.diagnosis.fit import Fit, correctly_rounded, fit
from refkernels.diagnosis.hypothesis import (
    Algorithms,
    Claim,
    Hypothesis,
    Outcome,
    Prediction,
    Questions,
    Variant,
)
from refkernels.diagnosis.models import compiled, flushing, other_functions
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.variants import (
    affine,
    axes,
    factor,
    gradient,
    params,
    precision,
    quantised,
    stepped,
    truncation,
    whole,
)
from refkernels.diagnosis.variants import formulas as other_definitions

VARIANTS: tuple[Questions, ...] = (
    factor.scale_factor,
    whole.permuted,
    affine.swapped_gradients,
    precision.narrowed_inputs,
    precision.flushed_inputs,
    precision.wrong_dtype,
    truncation.truncated_output,
    axes.other_axis,
    other_definitions.other_formulas,
    other_definitions.other_formulas_in_float32,
    other_definitions.rounded_params,
    params.other_values,
    stepped.other_values,
    gradient.multiplied,
)


def variants(problem: Problem, outputs: Arrays) -> Iterator[Hypothesis]:
    """Other questions that the kernel may have answered: general ones, then the op's own."""
    for source in (*VARIANTS, *models.of(problem.op).questions):
        yield from source(problem, outputs)


def pairs(problem: Problem, outputs: Arrays) -> Iterator[Hypothesis]:
    """A form that is less accurate than the stable ones, alone or with another usual eps: a port of
    a norm often differs in both."""
    eps = problem.params.get("eps")
    if not isinstance(eps, float) or not problem.op.gradients or not outputs:
        return
    as_asked = list(_unstable(problem, outputs))
    yield from as_asked
    explained = {claim.cause for claim in as_asked}
    for used in dict.fromkeys((*params.USUAL_EPS, float(np.float32(eps)))):
        asked = replace(problem, params={**problem.params, "eps": used})
        cause = "eps_rounded" if used == float(np.float32(eps)) else "eps_differs"
        for fault, answer in other_definitions.unstable_forms(asked) if used != eps else ():
            if fault not in explained:
                yield Variant(cause, {"eps": used, "with": fault}, answer)


def _unstable(problem: Problem, outputs: Arrays) -> Iterator[Claim]:
    """The op's less accurate forms, where an output has errors of their size."""
    for cause, answer in other_definitions.unstable_forms(problem):
        for name, got in outputs.items():
            result = fit(problem, name, got, answer) if name in answer.reference else None
            if result is not None and result.ordinary:
                equal = correctly_rounded(problem, got, answer, answer.reference[name])
                outcome = Outcome(True, equal, got.size, result.over_bound, result.over_plain)
                yield Claim(cause, name, Prediction(outcome=outcome))


def questions(problem: Problem, outputs: Arrays) -> Iterator[Hypothesis]:
    """Patterns of wrong elements, then other questions."""
    yield from patterns.find(problem, outputs)
    yield from variants(problem, outputs)


def algorithms(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Hypothesis]:
    """How the kernel may have computed: orders of summation, accumulators, models, formulas."""
    own: tuple[Algorithms, ...] = models.of(problem.op).algorithms
    first: tuple[Algorithms, ...] = (
        quantised.weights,
        quantised.activations,
        sums.find,
        accumulators.find,
    )
    general = compiled.find, other_functions.of_formula, flushing.of_formula, recovered.find
    known = (formulas.find, functions.find, *general)
    for source in (*first, *own, *known):
        yield from source(problem, outputs, fits)
