"""Paddle keeps the weight of a linear layer transposed; of a square one only the values show it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from refkernels.alignment import align
from refkernels.alignment.matching import oriented
from refkernels.reporting.alignment import page


def test_a_square_weight_is_recognised_by_its_values() -> None:
    weight = np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32)
    moved = weight.T.copy()
    moved[0, 1] += 1
    assert np.count_nonzero(oriented(weight, moved) != weight) == 1
    assert np.count_nonzero(oriented(weight, moved.T) != weight) == 1
    assert oriented(weight[:3], weight[:3].T).tobytes() == weight[:3].tobytes()
    gradient = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(oriented(weight, gradient, moved), gradient.T)
    np.testing.assert_array_equal(oriented(weight, gradient, moved.T), gradient)


@pytest.mark.framework("torch")
@pytest.mark.framework("paddle")
@pytest.mark.usefixtures("judged_once")
@pytest.mark.parametrize("moved", ["sgd", "square"])
def test_torch_and_paddle_are_one_training(moved: str, small_runs: Callable[[str], Any]) -> None:
    """With a square weight, and with one weight of it moved by an ulp."""
    of_torch, of_paddle = (small_runs(name).folder for name in ("torch", "paddle"))
    alignment = align(of_torch / "sgd", of_paddle / moved, steps=[0])
    assert alignment.verdict.word == "undecidable", page.headline(alignment.to_dict())
