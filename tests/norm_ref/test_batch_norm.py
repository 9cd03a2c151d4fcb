"""Batch norms that keep another variance."""

import numpy as np

import refkernels
from refkernels import norm_ref


def test_a_kernel_that_keeps_the_other_variance_is_named() -> None:
    rng = np.random.default_rng(9)
    inputs = {
        "x": rng.standard_normal((2, 60, 3)).astype(np.float32),
        "running_mean": np.zeros(60, np.float32),
        "running_var": np.ones(60, np.float32),
    }
    for asked, cause in ((True, "unbiased_running_variance"), (False, "biased_running_variance")):
        other = norm_ref.BATCH_NORM.plain("forward", inputs, {"biased": not asked}, "float32")
        explanation = refkernels.explain("batch_norm", inputs, other, {"biased": asked})
        assert (explanation.cause, explanation.confidence) == (cause, "proven")
