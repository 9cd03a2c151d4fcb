"""A function that returns x, or a constant, beyond a threshold that is too near."""

from typing import Any

import numpy as np
import numpy.typing as npt
from planting import named

from refkernels import explain
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.thresholds import CAUSE, shortcut
from refkernels.diagnosis.wrong import wrong_elements

Array = npt.NDArray[Any]
RNG = np.random.default_rng(31)
X = np.concatenate([RNG.uniform(-25.0, 45.0, 260), RNG.uniform(19.0, 21.0, 40)])


def softplus(x: Array, threshold: float) -> Array:
    """PyTorch's; with x = 20 as its threshold."""
    right = np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
    return np.where(x > threshold, x, right)


def test_a_few_errors_of_the_library_do_not_hide_it() -> None:
    """PyTorch's float64 softplus errs beyond its limit in a few elements before the threshold."""
    y = softplus(X, 20.0)
    assert np.count_nonzero((X > 20.0) & (y != softplus(X, 37.0))) >= 50
    x, y = np.tile(X, 2), np.tile(y, 2)
    place = np.flatnonzero((x > 0.0) & (x < 19.0))[0]
    y[place] *= 1.0 + 2.0**-48
    assert named("softplus", {"x": x}, {"y": y})[:2] == (CAUSE, "proven")


def test_a_threshold_between_sparse_arguments_has_no_digits_of_its_own() -> None:
    x = np.concatenate([RNG.uniform(-5.0, 5.0, 60), RNG.uniform(24.0, 30.0, 60)])
    candidates = explain("softplus", {"x": x}, {"y": softplus(x, 20.0)}).candidates
    (found,) = (c for c in candidates if c.cause == CAUSE)  # beside PyTorch's, u above 20
    assert "threshold" not in found.details
    assert "<= t <" in found.details["where"]


def test_a_threshold_among_positive_arguments_is_said_without_two_signs() -> None:
    x = np.geomspace(1e-8, 1.0, 400).astype(np.float32)
    y = np.where(x < 1.5e-4, np.float32(0), np.sqrt(x))
    problem, outputs = one_kernel("sqrt", {"x": x}, {"y": y})
    claim = shortcut(problem, "y", outputs["y"], wrong_elements(problem, "y", outputs["y"]))
    assert claim.details["where"].startswith("x < t (0.0001")
    assert "-" not in claim.details["where"]
