"""Paddle keeps the weight of a linear layer transposed; of a square one only the values show it."""

from pathlib import Path

import numpy as np
import pytest
from captured import answer, run_script

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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("turned")
    for framework, moved in (("torch", ["null"]), ("paddle", ["null", "3"])):
        trainings = [
            f'sgd:{framework}_{perturb}:{{"steps": [0, 1], "perturb": {perturb}}}'
            for perturb in moved
        ]
        answer(run_script(framework, folder, "tiny_training.py", framework, "2", *trainings))
    return folder


@pytest.mark.framework("torch")
@pytest.mark.framework("paddle")
@pytest.mark.usefixtures("judged_once")
@pytest.mark.parametrize("perturb", ["null", "3"])
def test_torch_and_paddle_are_one_training(perturb: str, runs: Path) -> None:
    """With a square weight, and with one weight of it moved by an ulp."""
    alignment = align(runs / "torch_null", runs / f"paddle_{perturb}", steps=[0])
    assert alignment.verdict.word == "undecidable", page.headline(alignment.to_dict())
