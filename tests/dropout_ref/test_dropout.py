"""Dropout: what is dropped as a whole, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from refkernels.dropout_ref import dropout


def test_everything_dropped_is_zero_and_a_masked_infinity_is_nan() -> None:
    x = np.array([1.0, -2.0, np.inf])
    y = dropout(x, np.zeros(3, bool), p=1.0)
    np.testing.assert_array_equal(np.asarray(y), [0.0, -0.0, np.nan])
    half = dropout(x, np.array([True, False, False]), p=0.5)
    np.testing.assert_array_equal(np.asarray(half), [2.0, -0.0, np.nan])


def test_wrong_probabilities_modes_and_masks_are_refused() -> None:
    x = np.ones(3)
    for given, says in (
        ({"p": 1.5}, "a number from 0 to 1"),
        ({"mode": "upscale"}, "'upscale_in_train' or 'downscale_in_infer'"),
        ({"mask": np.ones(2, bool)}, "they must be equal"),
    ):
        with pytest.raises(ValueError, match=says):
            dropout(x, **given)
    with pytest.raises(TypeError, match="truth values"):
        dropout(x, np.ones(3))
