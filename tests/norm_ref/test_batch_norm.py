"""Batch, group and instance norm compared with one another; kernels that keep another variance."""

from typing import Any

import numpy as np

import refkernels
from refkernels import norm_ref

RNG = np.random.default_rng(8)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
WEIGHT, BIAS = RNG.standard_normal((2, 4)).astype(np.float32)
SHARP: Any = ("ulp", "float64", 2.0**-20)


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


def overlap(first: Any, second: Any) -> None:
    off = np.abs((first.hi - second.hi) + (first.lo - second.lo))
    assert np.all(off <= first.radius + second.radius + 2.0**-90)


def test_instance_norm_is_group_norm_of_single_channels_and_batch_norm_of_single_images() -> None:
    instance = norm_ref.instance_norm(X, WEIGHT, BIAS, certify=SHARP)
    overlap(instance, norm_ref.group_norm(X, WEIGHT, BIAS, num_groups=4, certify=SHARP))
    for n in range(3):
        alone = norm_ref.batch_norm(X[n : n + 1], WEIGHT, BIAS, certify=SHARP).y
        overlap(instance[n : n + 1], alone)
    dy = RNG.standard_normal(X.shape).astype(np.float32)
    of_instance = norm_ref.instance_norm_backward(dy, X, WEIGHT, BIAS, certify=SHARP)
    of_group = norm_ref.group_norm_backward(dy, X, WEIGHT, BIAS, num_groups=4, certify=SHARP)
    for mine, its in zip(of_instance, of_group, strict=True):
        overlap(mine, its)
