"""A gradient that is a multiple of the right one: the factor is known, the reason is not."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from refkernels import registry
from refkernels.alignment.local import _judged
from refkernels.alignment.question import CapturedQuestion, NotJudged, Place
from refkernels.alignment.tensors import norm
from refkernels.alignment.updates import _refuse_mixed, changes

Inputs = dict[str, np.ndarray]


def judged(factor: float, rows: int, direction: str) -> tuple[str | None, str | None, object]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, 5)).astype(np.float32)
    target = rng.integers(0, 5, rows)
    p = np.exp(x.astype(np.float64))
    p /= p.sum(1, keepdims=True)
    inputs: Inputs = {"x": x, "target": target}
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
    assert judged(8.0, 8, "forward")[0] == "sum_instead_of_mean"


def rmsprop() -> tuple[Inputs, dict[str, float], Inputs]:
    """A first step whose buffer holds lr = 1/10 times the right one."""
    rng = np.random.default_rng(1)
    param, grad = (rng.standard_normal(48).astype(np.float32) for _ in range(2))
    inputs = {"param": param, "grad": grad, **dict.fromkeys(("accum", "buf"), np.zeros_like(param))}
    params = {"lr": 0.1, "momentum": 0.9, "eps": 1e-3}
    right = registry.get("rmsprop").plain("forward", inputs, params, "float32")
    return inputs, params, {**right, "buf": np.float32(0.1) * right["buf"]}


def adam() -> tuple[Inputs, dict[str, float], Inputs]:
    """A first step whose eps is not scaled with v, of a draw in which another eps fits better."""
    rng, size, one = np.random.default_rng(1011), 15, np.float32(1.0)
    param, grad = rng.uniform(-0.45, 0.45, size), rng.standard_normal(size)
    grad = (grad * 10.0 ** rng.uniform(-5.0, -1.0)).astype(np.float32)
    grad[: rng.integers(0, 4)] = 0.0
    grad[3] *= np.float32(10.0 ** rng.uniform(-3.0, 0.0))
    inputs = {"param": param.astype(np.float32), "grad": grad}
    inputs |= dict.fromkeys(("m", "v", "vmax"), np.zeros_like(grad))
    lr, beta1, beta2, eps = map(np.float32, (0.1, 0.9, 0.999, 1e-8))
    m, v = grad * (one - beta1), grad * grad * (one - beta2)
    rate = lr * np.sqrt(one - beta2) / (one - beta1)
    moved = inputs["param"] - rate * m / (np.sqrt(v) + eps)
    params = {"lr": 0.1, "beta1": float(beta1), "beta2": float(beta2), "eps": float(eps)}
    return inputs, {**params, "step": 1}, {"param": moved, "m": m, "v": v, "vmax": v}


@pytest.mark.parametrize(
    ("step", "output", "cause", "form"),
    [(rmsprop, "buf", "scale_factor", "lr_in_momentum"), (adam, "param", "eps_hat", "eps_hat")],
)
def test_a_framework_s_own_form_is_told(step: Any, output: str, cause: str, form: str) -> None:
    inputs, params, outputs = step()
    for own, named in (((), cause), ((form,), form)):
        question = CapturedQuestion(
            Place(0, "update", "weight"), step.__name__, "forward", inputs, params, outputs, "?",
            own=own,
        )  # fmt: skip
        wrong = [judgement for judgement in _judged(question, {}) if judgement.wrong]
        told = [(judgement.output, judgement.cause, judgement.declared) for judgement in wrong]
        assert told == [(output, named, bool(own))]


def test_tensors_that_do_not_go_together_are_not_sampled() -> None:
    a, wide = np.ones(4, np.float32), np.ones(4)
    fine = [(name, {"param": a, "m": a}, {"param": a}) for name in "ab"]
    _refuse_mixed(fine)
    for other, why in ((wide, "several dtypes"), (a[:3], "tensors of c have several sizes")):
        param = other if other is wide else a
        parts = [*fine, ("c", {"param": param, "m": other}, {"param": param})]
        with pytest.raises(NotJudged, match=why):
            _refuse_mixed(parts)


def test_weights_that_are_copied_behind_an_update_change() -> None:
    held = [SimpleNamespace(parameter=lambda name, when, x=x: x) for x in np.arange(3.0)]
    ranks = (SimpleNamespace(steps=steps, tensors=held.__getitem__) for steps in ((0,), (0, 1)))
    assert [changes(rank, ["w"]) for rank in ranks] == [False, True]


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-160, 1.0, 1e200, np.nan])
def test_a_norm_neither_overflows_nor_vanishes(size: float) -> None:
    assert norm(size * np.array([3.0, 0.0, 4.0])) == pytest.approx(5.0 * size, nan_ok=True)
