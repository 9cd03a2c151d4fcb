"""Reductions along axes of every kind, sums that cancel."""

import numpy as np
import pytest

from refkernels import reduction_ref as reductions

X = np.random.default_rng(5).standard_normal((2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, -1, (0, 2), [1], None, (2, 0, 1)], ids=str)
def test_axes_are_those_of_numpy(axis: object) -> None:
    axes = tuple(axis) if isinstance(axis, list) else axis
    for name in ("sum", "mean", "var", "prod", "max"):
        answer = np.asarray(
            getattr(reductions, name)(X, axis=axis, certify=("rounding", "float64"))
        )
        wide = getattr(np, name)(X.astype(np.float64), axis=axes)
        assert answer.shape == np.shape(wide)
        np.testing.assert_allclose(answer, wide, rtol=2.0**-40)
        dy = np.ones(answer.shape, np.float32)
        assert getattr(reductions, f"{name}_backward")(dy, X, axis=axis).shape == X.shape


def test_sums_that_cancel_are_exact_in_float64() -> None:
    """0 is found to be 0, and a tie is rounded to even, however many terms there are."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal(20_000) * 10.0 ** rng.uniform(-9, 9, 20_000)
    whole = rng.permutation(np.concatenate([x, -x]))
    assert float(np.asarray(reductions.sum(whole))) == 0.0
    assert float(reductions.sum(whole).radius) == 0.0
    tie = np.concatenate([whole, [1.0, 2.0**-53]])
    assert float(np.asarray(reductions.sum(tie, certify=("rounding", "float64")))) == 1.0
    assert float(np.asarray(reductions.mean(whole, certify=("rounding", "float64")))) == 0.0
