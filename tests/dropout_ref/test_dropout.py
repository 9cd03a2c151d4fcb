"""Dropout: what is dropped as a whole."""

from __future__ import annotations

import numpy as np

from refkernels.dropout_ref import dropout


def test_everything_dropped_is_zero_and_a_masked_infinity_is_nan() -> None:
    x = np.array([1.0, -2.0, np.inf])
    y = dropout(x, np.zeros(3, bool), p=1.0)
    np.testing.assert_array_equal(np.asarray(y), [0.0, -0.0, np.nan])
    half = dropout(x, np.array([True, False, False]), p=0.5)
    np.testing.assert_array_equal(np.asarray(half), [2.0, -0.0, np.nan])
