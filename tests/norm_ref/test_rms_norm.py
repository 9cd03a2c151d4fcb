"""rms_norm: exact zeros, and kernels as Llama's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refkernels import norm_ref
from refkernels.arithmetic import formats


def test_exact_zeros_are_exact() -> None:
    """Of rows of zeros; of a cotangent in x's direction where eps is 0, whatever 1 / sqrt is."""
    x = np.array([[1.0, 2.0, -3.0], [0.0, 0.0, 0.0]], np.float32)
    y = norm_ref.rms_norm(x)
    assert np.all(y.hi[1] == 0.0)
    assert np.all(y.radius[1] == 0.0)
    dx = norm_ref.rms_norm_backward(2.0 * x[:1], x[:1], eps=0.0, certify=("rounding", "float32")).dx
    assert np.all(dx.hi == 0.0)
    assert np.all(dx.radius == 0.0)


def llama(x: Any, weight: Any, eps: float) -> Any:
    """LlamaRMSNorm: float32 inside, rounded to x's format before the weight."""
    wide = x.astype(np.float32)
    r = 1 / np.sqrt(
        np.mean(wide * wide, axis=-1, keepdims=True, dtype=np.float32) + np.float32(eps)
    )
    return ((wide * r).astype(x.dtype).astype(np.float32) * weight).astype(x.dtype)


def weight_first(x: Any, weight: Any, eps: float) -> Any:
    wide = x.astype(np.float32)
    root = np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True, dtype=np.float32) + np.float32(eps))
    return (wide * (weight.astype(np.float32) / root)).astype(x.dtype)


@pytest.mark.parametrize("kernel", [llama, weight_first])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_kernels_of_other_shapes_keep_to_the_bound(kernel: Any, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    x, weight = rng.normal(size=(64, 33)).astype(dtype), rng.normal(size=33).astype(dtype)
    name = np.dtype(dtype).name
    y = norm_ref.rms_norm(x, weight, certify=("ulp", "float64", 2.0**-10))
    op = norm_ref.RMS_NORM
    bound = op.bound("forward", {"x": x, "weight": weight}, {}, formats.get(name))["y"]
    off = np.abs((kernel(x, weight, 1e-5).astype(np.float64) - y.hi) - y.lo)
    assert np.all(off <= bound + y.radius)
    assert np.max(off / np.maximum(bound, 1e-300)) > 0.05
