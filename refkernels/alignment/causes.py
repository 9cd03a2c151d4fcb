"""Which causes leave the definition as it is: they round worse, or hold numbers narrower."""

NUMERICAL = frozenset(
    (
        "summation_order", "bias_first", "tf32_inputs", "bf16_inputs", "fp16_inputs",
        "truncated_inputs", "truncated_output", "fp16_accumulation", "bf16_accumulation",
        "float32_cast", "naive_variance", "folded_normalisation", "low_precision_statistics",
        "truncated_statistics", "float32_statistics", "early_overflow", "eps_rounded",
        "params_rounded", "float32_hyperparameters", "float32_powers", "no_shift",
        "narrow_exponentials", "log_of_softmax", "log_of_sigmoid", "product_with_labels",
        "flush_to_zero", "argument_reduction", "fast_approximation", "erf_cancellation",
        "tanh_cancellation",
    )
)  # fmt: skip
