"""Causes that keep the definition: they round worse, or store numbers in a narrower format."""

from __future__ import annotations

import functools

from refkernels import registry

_ANYWHERE = frozenset(
    (
        "summation_order", "bias_first", "tf32_inputs", "bf16_inputs", "fp16_inputs",
        "truncated_inputs", "truncated_output", "fp16_accumulation", "bf16_accumulation",
        "float32_cast", "naive_variance", "folded_normalisation", "low_precision_statistics",
        "truncated_statistics", "float32_statistics", "early_overflow", "eps_rounded",
        "params_rounded", "float32_hyperparameters", "float32_powers", "float32_constants",
        "cubed_argument", "rounded_constants", "rounded_sixth", "float32_scale", "flush_to_zero",
        "argument_reduction", "fast_approximation", "erf_cancellation", "tanh_cancellation",
        "coarse_exponential", "exponential_clamped", "tabulated_logarithm", "float32_smoothing",
        "special_function_unit", "product_before_quotient", "intermediate_rounded", "wrong_dtype",
        "float8_accumulation", "partial_sums_rounded", "bf16_parts", "unstable_identity",
        "narrow_intermediates",
    )
)  # fmt: skip


def numerical(op: str, cause: str | None) -> bool:
    """Whether a cause equals the op in exact arithmetic: one that any op may have, or an unstable
    way to compute this op (`Fault.unstable`)."""
    return cause in _ANYWHERE or cause in _unstable(op)


@functools.cache
def _unstable(op: str) -> frozenset[str]:
    faults = getattr(registry.get(op).definition, "faults", ())
    return frozenset(fault.cause for fault in faults if fault.unstable)
