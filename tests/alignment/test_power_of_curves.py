"""Which changes of eps and weight decay curves would have noticed, beside trainings with them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refkernels.alignment.power import least_changes
from refkernels.alignment.run import Run
from refkernels.contexts import RoundedArithmetic
from refkernels.training import writing
from refkernels.training.steps import Training

STEPS, CAPTURED, LR = 40, range(0, 40, 4), 2e-3
RNG = np.random.default_rng(8)
X, W = RNG.standard_normal((STEPS, 50, 7)), RNG.standard_normal((7, 3))
Y = X @ W + 0.1 * RNG.standard_normal((STEPS, 50, 3))
BATCHES = [{"x": x, "y": y} for x, y in zip(X, Y, strict=True)]


def loss(xp: Any, w: Any, batch: Any) -> Any:
    off = xp.matmul(xp.array(batch["x"]), w["weight"]) + w["bias"] - xp.array(batch["y"])
    return xp.reshape(xp.mean(xp.reshape(xp.square(off), (150,))), ())


def trained(folder: Path, kind: str, params: dict[str, float], captured: Any = ()) -> np.ndarray:
    start = np.random.default_rng(9).standard_normal((7, 3))
    weights = {"weight": start, "bias": np.full(3, 0.3)}
    training = Training(RoundedArithmetic("float64"), loss, weights, kind.lower(), params)
    run = writing.described("Linear", training.weights, kind, {"lr": LR, **params})
    lines, losses = [], []
    for step, batch in enumerate(BATCHES):
        value, gradients = training.gradients(batch)
        tensors = {f"gradients/{name}/update": array for name, array in gradients.items()}
        for when in ("before", "after"):
            arrays = training.weights.items()
            tensors |= {f"parameters/{name}/{when}": array for name, array in arrays}
            for word, state in training.state.items():
                tensors |= {f"state/{name}/{word}/{when}": array for name, array in state.items()}
            if when == "before":
                training.update(gradients, LR)
        losses.append(value)
        lines.append(writing.line(step, value, [LR], batch, captured=step in captured))
        if step in captured:
            writing.write_tensors(folder, step, tensors)
    writing.write_run(folder, run, lines)
    return np.array(losses)


ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-3, "weight_decay": 0.01}


@pytest.mark.parametrize(
    ("kind", "params", "setting"),
    [
        ("AdamW", ADAM, "weight_decay"),
        ("AdamW", ADAM, "eps"),
        ("SGD", {"momentum": 0.9, "weight_decay": 0.01}, "weight_decay"),
        ("SGD", {"momentum": 0.0, "weight_decay": 0.01}, "weight_decay"),
    ],
)
def test_a_change_moves_the_loss_as_estimated(
    kind: str, params: dict[str, float], setting: str, tmp_path: Path
) -> None:
    """Within a factor of three, of a change a hundredth as large as the setting."""
    base = trained(tmp_path / "base", kind, params, CAPTURED)
    slope = 1.0 / least_changes(Run.read(tmp_path / "base").first, 1.0)[setting]
    change = params[setting] / 100
    other = trained(tmp_path / "other", kind, {**params, setting: params[setting] + change})
    moved = abs(other[-1] - base[-1]) / (change * (STEPS - 1))
    assert moved / 3 < slope < 3 * moved, (slope, moved)


def test_one_captured_step_or_decay_within_moments_gives_no_estimate(tmp_path: Path) -> None:
    trained(tmp_path / "one", "AdamW", ADAM, [3])
    assert least_changes(Run.read(tmp_path / "one").first, 1.0) == {}
    trained(tmp_path / "adam", "Adam", ADAM, CAPTURED)
    assert set(least_changes(Run.read(tmp_path / "adam").first, 1.0)) == {"eps"}
