"""Other questions that a kernel may have answered, each a cause: see `hypothesis.Variant`."""

from __future__ import annotations

from collections.abc import Iterator

from refkernels.diagnosis.hypothesis import Variant, Variants
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.variants import (
    affine,
    elementwise,
    factor,
    formulas,
    lanes,
    layernorm,
    precision,
    statistics,
    truncation,
    whole,
)

ALL: tuple[Variants, ...] = (
    factor.scale_factor,
    whole.permuted,
    affine.swapped_gradients,
    affine.wrong_bias,
    affine.transposed,
    precision.narrowed_inputs,
    precision.wrong_dtype,
    truncation.truncated_output,
    elementwise.other_gelu,
    formulas.other_formulas,
    formulas.other_eps,
    layernorm.other_eps,
    layernorm.fitted_eps,
    layernorm.unbiased_variance,
    layernorm.eps_outside_sqrt,
    layernorm.constant_statistics,
    layernorm.wrong_axes,
    statistics.stored_statistics,
    lanes.of_rows,
    lanes.of_parameters,
    lanes.of_products,
)


def of(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Every variant of the question, cheapest kinds first."""
    for variants in ALL:
        yield from variants(problem, outputs)
