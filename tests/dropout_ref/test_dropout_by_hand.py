"""Dropout's scale in exact fractions, both conventions, in training and in inference."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from refkernels.dropout_ref import MODES, UPSCALE, dropout, dropout_backward
from refkernels.op import DTYPES


def by_hand(x: Any, kept: Any, p: float, mode: str) -> Fraction:
    keep = 1 - Fraction(p)
    if kept is None:
        return Fraction(x) * (1 if mode == UPSCALE else keep)
    return Fraction(x) * int(kept) / (keep if mode == UPSCALE else 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("masked", [True, False])
def test_values_and_gradients_are_those_of_fractions(dtype: str, mode: str, masked: bool) -> None:
    rng = np.random.default_rng(5)
    x, dy = rng.standard_normal((2, 40)).astype(np.float16 if dtype == "float16" else np.float32)
    mask = rng.random(40) < 0.6 if masked else None
    for p in (0.0, 0.1, 0.3, 0.5):
        y = dropout(x, mask, p=p, mode=mode, certify=("rounding", dtype))
        dx = dropout_backward(dy, x, mask, p=p, mode=mode, certify=("rounding", dtype))
        for i in range(40):
            kept = None if mask is None else mask[i]
            for given, answer in ((x, y), (dy, dx)):
                low, high = answer.lower_upper((i,))
                assert low <= by_hand(float(given[i]), kept, p, mode) <= high
        assert y.round(dtype)[1].all()


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
