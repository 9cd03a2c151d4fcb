"""Every source of hypotheses, in the order in which they are tried.

Questions need only the outputs; algorithms also need their fit to the truth. Hypotheses of equal
rank are listed in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from refkernels.diagnosis import (
    accumulators,
    formulas,
    functions,
    models,
    narrow_sums,
    reach,
    recovered,
    sums,
)
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Algorithms, Hypothesis, Questions
from refkernels.diagnosis.models import compiled, other_functions
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.variants import elsewhere, factor, params, precision, quantised
from refkernels.diagnosis.variants import formulas as other_definitions

VARIANTS: tuple[Questions, ...] = (
    factor.scale_factor,
    elsewhere.permuted,
    elsewhere.exchanged_outputs,
    precision.narrowed_inputs,
    precision.flushed_inputs,
    precision.wrong_dtype,
    precision.truncated_output,
    elsewhere.other_axis,
    other_definitions.other_formulas,
    other_definitions.other_formulas_in_float32,
    other_definitions.rounded_params,
    params.other_values,
    factor.gradient_multiplied,
)


def variants(problem: Problem, outputs: Arrays) -> Iterator[Hypothesis]:
    """Other questions that the kernel may have answered: general ones, then the op's own."""
    for source in (*VARIANTS, *models.of(problem.op).questions):
        yield from source(problem, outputs)


def algorithms(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Hypothesis]:
    """How the kernel may have computed; whole arithmetics, where the errors are of their size."""
    own = models.of(problem.op)
    first: tuple[Algorithms, ...] = quantised.find, sums.find
    known = formulas.find, functions.find, compiled.find, other_functions.of_formula
    coarse, fast = reach.near(problem, outputs, fits)
    asked: dict[Algorithms, Arrays] = {accumulators.find: coarse, compiled.find: fast}
    asked |= dict.fromkeys(own.rounded, fast)
    of_sums = recovered.find, narrow_sums.find
    for source in (*first, accumulators.find, *own.algorithms, *own.rounded, *known, *of_sums):
        if within_reach := asked.get(source, outputs):
            yield from source(problem, within_reach, fits)
