"""A gradient that is a multiple of the right one: the factor is known, the reason is not."""

import numpy as np
import pytest

from refkernels import registry
from refkernels.alignment.local import _judged
from refkernels.alignment.question import CapturedQuestion, NotJudged, Place
from refkernels.alignment.updates import _refuse_mixed


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
    (judgement,) = _judged(question, {})
    return judgement.cause, judgement.confidence, judgement.details.get("factor")


@pytest.mark.parametrize("rows", [8, 6])
def test_a_gradient_times_the_number_of_rows_is_named_by_its_factor(rows: int) -> None:
    cause, confidence, factor = judged(float(rows), rows, "backward")
    assert (cause, factor) == ("scale_factor", str(rows))
    assert confidence in ("proven", "matched")


def test_a_loss_that_adds_its_rows_is_named_as_a_sum() -> None:
    cause, _, _ = judged(8.0, 8, "forward")
    assert cause == "sum_instead_of_mean"


def updated(own: tuple[str, ...]) -> list[tuple[str, str | None, bool]]:
    """A first step of RMSprop whose buffer holds lr = 1/10 times the right one."""
    rng = np.random.default_rng(1)
    param, grad = (rng.standard_normal(48).astype(np.float32) for _ in range(2))
    zero = np.zeros_like(param)
    inputs = {"param": param, "grad": grad, "accum": zero, "buf": zero}
    params = {"lr": 0.1, "momentum": 0.9, "eps": 1e-3}
    right = registry.get("rmsprop").plain("forward", inputs, params, "float32")
    outputs = {**right, "buf": np.float32(0.1) * right["buf"]}
    question = CapturedQuestion(
        Place(0, "update", "weight"), "rmsprop", "forward", inputs, params, outputs, "RMSProp",
        own=own,
    )  # fmt: skip
    return [
        (judgement.output, judgement.cause, judgement.declared)
        for judgement in _judged(question, {})
        if judgement.wrong
    ]


def test_a_factor_of_a_framework_s_own_form_is_explained_by_that_form() -> None:
    assert updated(()) == [("buf", "scale_factor", False)]
    assert updated(("lr_in_momentum",)) == [("buf", "lr_in_momentum", True)]


def test_tensors_that_do_not_go_together_are_not_sampled() -> None:
    a, wide = np.ones(4, np.float32), np.ones(4)
    fine = [(name, {"param": a, "m": a}, {"param": a}) for name in "ab"]
    _refuse_mixed(fine, ["param", "m"], ["param"])
    for other, why in ((wide, "several dtypes"), (a[:3], "tensors of c have several sizes")):
        param = other if other is wide else a
        parts = [*fine, ("c", {"param": param, "m": other}, {"param": param})]
        with pytest.raises(NotJudged, match=why):
            _refuse_mixed(parts, ["param", "m"], ["param"])
