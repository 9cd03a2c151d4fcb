"""Small runs of every framework: names of the states of optimizers, what no capture shows, and
weights that Paddle keeps transposed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hunting import one_in

from refkernels.alignment import align
from refkernels.alignment.matching import oriented
from refkernels.alignment.run import Run
from refkernels.reporting.alignment import page

SmallRuns = Callable[[str], Any]
AGREE = "tensors that {}'s layers recorded agree with what"
ADAM = {"m", "v", "vmax"}
POWERS = {"beta1_power", "beta2_power"}
STATES = {  # of each weight, and of the optimizer
    "torch": {
        "sgd": ({"buf"}, set()),
        "plain": (set(), set()),
        "adam": (ADAM | {"step"}, set()),
        "adagrad": ({"accum", "step"}, set()),
        "rmsprop": ({"accum", "mean", "buf", "step"}, set()),
    },
    "oneflow": {
        "sgd": ({"buf"}, {"step"}),
        "plain": (set(), {"step"}),
        "adam": (ADAM, {"step"}),
        "lamb": ({"m", "v"}, {"step"}),
        "adagrad": ({"accum"}, {"step"}),
        "rmsprop": ({"accum", "mean"}, {"step"}),
    },
    "paddle": {
        "decayed": ({"m", "v"} | POWERS, set()),
        "sgd": ({"buf"}, set()),
        "plain": (set(), set()),
        "adam": (ADAM | POWERS, set()),
        "lamb": ({"m", "v"} | POWERS, set()),
        "adagrad": ({"accum"}, set()),
        "rmsprop": ({"accum", "mean", "buf"}, set()),
        "groups": ({"m", "v"} | POWERS, set()),
    },
    "mindspore": {
        "sgd": ({"buf", "stat"}, {"step"}),
        "momentum": ({"buf"}, {"step"}),
        "closed": ({"buf"}, {"step"}),
        "adam": (ADAM, POWERS | {"step"}),
        "adagrad": ({"accum"}, {"step"}),
        "rmsprop": ({"accum", "mean", "buf"}, {"step"}),
        "experimental": (ADAM, {"step"}),
        "scheduled": ({"buf", "stat"}, {"step"}),
    },
}
SHARED = {
    "sgd": {"momentum": 0.9, "weight_decay": 0.1},
    "adam": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "amsgrad": True},
    "rmsprop": {"rho": 0.8},
    "adagrad": {},
}
EACH = pytest.mark.parametrize("framework", [
    pytest.param(framework, marks=pytest.mark.framework(framework)) for framework in STATES
])  # fmt: skip


@pytest.mark.usefixtures("judged_once")
@EACH
def test_names_are_those_of_the_oracles(framework: str, small_runs: SmallRuns) -> None:
    folder, printed, _ = small_runs(framework)
    folder, names = folder / "words", printed["optimizer_words.py"]
    assert set(names) == set(STATES[framework])
    for name in names:
        rank = Run.read(folder / name).first
        assert rank.remarks == ()
        tensors = rank.tensors(1)
        of_weight, of_all = STATES[framework][name]
        for parameter in rank.parameters:
            assert set(tensors.state(parameter, "after")) == of_weight, name
            assert tensors.gradient(parameter) is not None
            assert np.any(tensors.parameter(parameter) != tensors.parameter(parameter, "after"))
        assert set(tensors.state("", "after")) == of_all, name
        group = rank.optimizer.groups[0]
        for key, value in SHARED.get(name, {}).items():
            assert group.hyperparameters[key] == pytest.approx(value, rel=1e-6), (name, key)
        assert group.hyperparameters["lr"] == pytest.approx(0.1, rel=1e-6)
        assert all(isinstance(word, str) for word in group.hyperparameters)
    for name in one_in(3, names):
        alignment = align(folder / name, steps=[1])
        assert alignment.verdict.word != "different", page.headline(alignment.to_dict())
        assert any(one.place.stage == "update" for one in alignment.local[0].judgements), name
    if framework in ("paddle", "oneflow"):
        headline = page.headline(align(folder / "adam", steps=[0]).to_dict())
        assert "holds hyper-parameters in float32" in headline
    if framework == "paddle":
        rank = Run.read(folder / "groups").first
        assert [line.lr for line in rank.lines] == [(0.1, 0.05)] * 2
        assert [g.hyperparameters["weight_decay"] for g in rank.optimizer.groups] == [0.3, 0.01]
        decayed = Run.read(folder / "decayed").first.optimizer
        assert decayed.hyperparameters["weight_decay_by"] == "L2Decay"
        for name, decay in (("decayed", 0.25), ("lamb", 0.01)):
            group = Run.read(folder / name).first.optimizer.groups[0]
            assert (group.hyperparameters["weight_decay"], group.exempt) == (decay, ("bias",))
    if framework == "mindspore":
        rates = [line.lr[0] for line in Run.read(folder / "scheduled").first.lines]
        np.testing.assert_allclose(rates, [0.1, 0.09], rtol=1e-6)


@pytest.mark.usefixtures("judged_once")
@EACH
def test_class_weights_and_functional_dropout_are_not_another_definition(
    framework: str, small_runs: SmallRuns
) -> None:
    folder = small_runs(framework).folder
    weighted = align(folder / "weighted")
    assert weighted.verdict.word != "different", page.headline(weighted.to_dict())
    judged = {(judgement.op, judgement.verdict) for judgement in weighted.local[0].judgements}
    losses = {op for op, verdict in judged if verdict in ("rounding", "correctly_rounded")}
    assert losses >= {"cross_entropy", "nll", "bce_with_logits"}
    first, second, sure = (Run.read(folder / name) for name in ("drops_1", "drops_2", "sure"))
    for run, drawn in ((first, True), (sure, False)):
        draws = run.first.draws
        assert (draws.outside, draws.before, draws.layers) == (drawn, False, ())
    alignment = align(first, second)
    assert alignment.verdict.word == "undecidable", page.headline(alignment.to_dict())
    assert align(sure, sure).verdict.word != "different"


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
@pytest.mark.parametrize(("name", "port", "said"), [
    ("sgd", "sgd", AGREE), ("sgd", "square", AGREE), ("sgd", "bare", "`add`"),
    ("bare", "sgd", "its sum with embedding"),
])  # fmt: skip
def test_torch_and_paddle(name: str, port: str, said: str, small_runs: SmallRuns) -> None:
    """One training with a square weight, a weight moved by an ulp, and a layer that a function may
    stand for; another without a sum; whichever run is in torch."""
    run, other = (small_runs(api).folder / of for api, of in (("torch", name), ("paddle", port)))
    run = Run.read(run)
    one, *_ = run.first.layers.values()
    run.first.layers["soft"] = replace(one, name="soft", type="Softmax", parameters={})
    for pair, layered in (((run, other), "B"), ((other, run), "A")):
        alignment = align(*pair, steps=[0])
        headline = page.headline(alignment.to_dict())
        assert alignment.verdict.word == ("undecidable" if said is AGREE else "different"), headline
        assert said.format(layered) in headline, headline
