"""rms_norm: exact zeros."""

from __future__ import annotations

import numpy as np

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
