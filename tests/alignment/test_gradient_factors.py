"""A gradient that is a multiple of the right one: the factor is known, the reason is not."""

import numpy as np
import pytest

from refkernels.alignment.local import _judged
from refkernels.alignment.question import CapturedQuestion, Place


def judged(factor: float, rows: int, direction: str) -> tuple[str | None, str | None, object]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, 5)).astype(np.float32)
    target = rng.integers(0, 5, rows)
    p = np.exp(x.astype(np.float64))
    p /= p.sum(1, keepdims=True)
    inputs: dict[str, np.ndarray] = {"x": x, "target": target}
    if direction == "forward":
        losses = -np.log(p[np.arange(rows), target])
        outputs = {"loss": np.float32(factor) * np.float32(losses.mean())}
    else:
        inputs["dloss"] = np.float32(1.0).reshape(())
        p[np.arange(rows), target] -= 1.0
        outputs = {"dx": np.float32(factor) * (p / rows).astype(np.float32)}
    question = CapturedQuestion(
        Place(0, direction, "loss"), "cross_entropy", direction, inputs, {"reduction": "mean"},
        {name: np.asarray(array) for name, array in outputs.items()}, "CrossEntropyLoss",
    )  # fmt: skip
    (found,) = _judged(question, {})
    return found.cause, found.confidence, found.details.get("factor")


@pytest.mark.parametrize("rows", [8, 6])
def test_a_gradient_times_the_number_of_rows_is_named_by_its_factor(rows: int) -> None:
    cause, confidence, factor = judged(float(rows), rows, "backward")
    assert (cause, factor) == ("scale_factor", str(rows))
    assert confidence in ("proven", "matched")


def test_a_loss_that_adds_its_rows_is_named_as_a_sum() -> None:
    cause, _, _ = judged(8.0, 8, "forward")
    assert cause == "sum_instead_of_mean"
