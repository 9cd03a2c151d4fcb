"""Norms: exact zeros; a batch norm that keeps another variance."""

import numpy as np

import refkernels
from refkernels import norm_ref


def test_exact_zeros_are_exact() -> None:
    """Of rows of zeros; of a cotangent in x's direction where eps is 0, whatever 1 / sqrt is."""
    x = np.array([[1.0, 2.0, -3.0], [0.0, 0.0, 0.0]], np.float32)
    y = norm_ref.rms_norm(x)
    assert np.all(y.hi[1] == 0.0)
    assert np.all(y.radius[1] == 0.0)
    dx = norm_ref.rms_norm_backward(2.0 * x[:1], x[:1], eps=0.0, certify=("rounding", "float32")).dx
    assert np.all(dx.hi == 0.0)
    assert np.all(dx.radius == 0.0)


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
