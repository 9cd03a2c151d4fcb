"""Which causes leave the definition as it is: they round worse, or hold numbers narrower."""

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
        "rounded_constants", "rounded_sixth", "float32_scale", "flush_to_zero",
        "argument_reduction", "fast_approximation", "erf_cancellation", "tanh_cancellation",
    )
)  # fmt: skip


def numerical(op: str, cause: str | None) -> bool:
    """Whether a cause is the op in exact arithmetic: one of those that any op may have, or an
    unstable way to compute this one (`Fault.unstable`)."""
    return cause in _ANYWHERE or cause in _unstable(op)


@functools.cache
def _unstable(op: str) -> frozenset[str]:
    definition = registry.get(op).definition
    faults = () if definition is None else definition.faults
    return frozenset(one.cause for one in faults if one.unstable)
