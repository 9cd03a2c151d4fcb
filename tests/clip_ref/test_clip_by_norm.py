"""Clipping by norms of 0, inf and NaN."""

from __future__ import annotations

import numpy as np

from refkernels.clip_ref import clip_by_global_norm, clip_by_norm


def test_norms_of_zero_infinity_and_nan() -> None:
    """The seed's [3, 0], [0, 4, 0] as well: a norm of M is left alone, but for PyTorch's 1e-6."""
    grads, tensor = np.array([3.0, 0.0, 0.0, 4.0, 0.0]), np.array([0, 0, 1, 1, 1])
    kept = clip_by_global_norm(grads, tensor, max_norm=5.0, way="max")
    np.testing.assert_array_equal(np.asarray(kept.clipped), grads)
    shrunk = np.asarray(clip_by_global_norm(grads, tensor, max_norm=5.0).clipped)
    np.testing.assert_allclose(shrunk, grads / (1 + 2e-7), rtol=1e-15)
    for way in ("eps", "max"):
        zero = clip_by_global_norm(0 * grads, tensor, way=way)
        np.testing.assert_array_equal(np.asarray(zero.clipped), 0 * grads)
        for wild, left in ((np.inf, 0.0), (np.nan, np.nan)):
            given = np.where(np.arange(5) == 1, wild, grads)
            answer = clip_by_global_norm(given, tensor, way=way)
            expected = [left, np.nan, left, left, left]
            np.testing.assert_array_equal(np.asarray(answer.clipped), expected)
            assert np.array_equal(np.asarray(answer.norm), wild, equal_nan=True)
    assert np.asarray(clip_by_norm(np.where(grads == 3.0, np.nan, grads), tensor))[3] == 1.0
