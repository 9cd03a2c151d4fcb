"""The probe, copied alone into a folder, in each framework: same bits, complete records."""

import ast
import functools
import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from captured import apart

import refkernels.capture
from refkernels.alignment import align
from refkernels.alignment.run import Run, StepTensors
from refkernels.alignment.tensors import norm
from refkernels.reporting.alignment import page

FRAMEWORKS = ("torch", "paddle", "oneflow", "mindspore")
NAMES = [pytest.param(name, marks=pytest.mark.framework(name)) for name in FRAMEWORKS]
OPTIMIZERS = ("sgd", "adamw")  # as small_runs trains
STEPS = 4
CHOSEN = (0, 1, 2)
LAYERS = ("embedding", "linear", "gelu", "layernorm")
SmallRuns = Callable[[str], Any]
Trained = Callable[[str, str], Any]


@pytest.fixture(scope="module")
def trained(small_runs: SmallRuns) -> Trained:
    """trained(framework, optimizer): what was printed with and without the probe, and the run."""

    @functools.cache
    def get(framework: str, optimizer: str) -> Any:
        folder, printed, log = small_runs(framework)
        off, on = printed["tiny_training.py"][OPTIMIZERS.index(optimizer) :: len(OPTIMIZERS)][:2]
        run = Run.read(folder / optimizer)
        return SimpleNamespace(on=on, off=off, run=run, rank=run.first, log=log)

    return get


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("framework", NAMES)
def test_the_probe_changes_no_bit(framework: str, optimizer: str, trained: Trained) -> None:
    training = trained(framework, optimizer)
    assert training.on["losses"] == training.off["losses"]
    assert training.on["hashes"] == training.off["hashes"]
    assert len(set(training.on["hashes"])) == STEPS


@pytest.mark.parametrize("framework", NAMES)
def test_the_probe_needs_its_framework_and_numpy_only(framework: str, trained: Trained) -> None:
    on, off = trained(framework, OPTIMIZERS[0]).on, trained(framework, OPTIMIZERS[-1]).off
    assert "refkernels" not in on["modules"]
    assert "capture" not in off["modules"]
    roots = [{name.split(".")[0] for name in side["modules"]} for side in (on, off)]
    beside = roots[0] - roots[1]
    assert beside == {"capture"} | (beside & {"fnmatch", "_random"})


@pytest.mark.parametrize("framework", NAMES)
def test_sizes_are_known_before_and_after_the_first_step(framework: str, trained: Trained) -> None:
    log = trained(framework, "sgd").log.splitlines()
    before, after = [line for line in log if "capture sgd" in line]
    assert all(words in before for words in ("3 steps are chosen", "are free"))
    assert "step 0 takes" in after


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("framework", NAMES)
def test_every_step_leaves_a_line(framework: str, optimizer: str, trained: Trained) -> None:
    training = trained(framework, optimizer)
    assert training.run.remarks == ()
    lines = training.rank.lines
    assert [line.step for line in lines] == list(range(STEPS))
    assert [line.captured for line in lines] == [True, True, True, False]
    assert [float(line.loss).hex() for line in lines] == training.on["losses"]
    assert {line.loss_dtype for line in lines} == {"float32"}
    assert {line.updates for line in lines} == {1}
    for name in ("parameters_hash", "gradients_hash", "batch_hash"):
        assert len({getattr(line, name) for line in lines}) == STEPS
    assert lines[0].values == {"scale": 1.0}
    grouped = optimizer == "adamw" and framework != "paddle"
    rates = (1e-3, 2e-3) if grouped else (1e-3 if optimizer == "adamw" else 0.01,)
    np.testing.assert_allclose(lines[0].lr, rates, rtol=1e-7)


@pytest.mark.framework("torch")
def test_frameworks_agree_on_the_hash_of_a_batch(trained: Trained) -> None:
    runs = [trained(framework, "sgd").rank.lines for framework in FRAMEWORKS]
    assert len({tuple((line.batch_hash, *line.rows) for line in lines) for lines in runs}) == 1
    import tiny_training

    ids, targets = tiny_training.IDS[0, 0], tiny_training.TARGETS[0, 0]
    row = ids.tobytes() + targets.tobytes() + (ids > 2).astype(np.int64).tobytes()
    assert runs[0][0].rows[0] == hashlib.sha256(row).hexdigest()[:16]


@pytest.mark.parametrize("framework", NAMES)
def test_layers_come_in_the_order_of_their_first_call(framework: str, trained: Trained) -> None:
    rank = trained(framework, "sgd").rank
    assert list(rank.layers) == ["embed", "mix", "act", "norm", "head"]
    assert [layer.calls for layer in rank.layers.values()] == [1, 2, 1, 1, 1]
    assert rank.layers["norm"].hyperparameters["eps"] == 1e-5
    assert list(rank.layers["norm"].hyperparameters["normalized_shape"]) == [6]
    assert rank.layers["act"].hyperparameters["approximate"] in ("none", False)
    (bias,) = [parameter for parameter in rank.parameters.values() if not parameter.trainable]
    assert (bias.name, bias.group) == ("head.bias", None)
    weights = [p for layer in rank.layers.values() for p in layer.parameters.values()]
    assert sorted(weights) == sorted(rank.parameters)
    assert all(rank.not_captured)


def _called(tensors: StepTensors) -> list[Any]:
    places = ("embed", 0), ("mix", 0), ("act", 0), ("mix", 1), ("norm", 0), ("head", 0)
    return [tensors.calls(layer)[index] for layer, index in places]


@pytest.mark.parametrize("step", CHOSEN)
@pytest.mark.parametrize("framework", NAMES)
def test_values_pass_from_layer_to_layer(framework: str, step: int, trained: Trained) -> None:
    """embed's output goes to two consumers; its cotangent is the sum of their parts, in float32."""
    import tiny_training

    tensors, same = trained(framework, "sgd").rank.tensors(step), np.testing.assert_array_equal
    embed, first, act, second, norm, head = _called(tensors)
    for before, after in ((embed, first), (first, act), (act, second), (norm, head)):
        same(after.inputs["0"], before.outputs["0"])
    same(norm.inputs["0"], second.outputs["0"] + embed.outputs["0"])
    assert set(embed.inputs) == {"0"}
    same(embed.inputs["0"], tiny_training.IDS[step % 6])
    same(tensors.file.get("batch/targets"), tiny_training.TARGETS[step % 6])
    embed, first, act, second, norm, head = _called(trained(framework, "adamw").rank.tensors(step))
    for before, after in ((first, act), (act, second), (second, norm), (norm, head)):
        same(before.cotangents["0"], after.input_gradients["0"])
    same(embed.cotangents["0"], first.input_gradients["0"] + norm.input_gradients["0"])
    assert embed.input_gradients == {}


@pytest.mark.usefixtures("judged_once")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("framework", NAMES)
def test_layers_and_update_are_what_was_recorded(
    framework: str, optimizer: str, trained: Trained
) -> None:
    """A layer that is called twice has the gradient of both calls; an update has the momentum, the
    betas and the decay of each weight."""
    alignment = align(trained(framework, optimizer).run, steps=[1])
    assert alignment.verdict.suspects == (), page.headline(alignment.to_dict())
    judged = {(one.op, one.place.stage) for one in alignment.local[0].judgements if not one.wrong}
    layers = {(op, stage) for op in LAYERS for stage in ("forward", "backward")}
    assert judged >= layers
    assert {op for op, stage in judged if stage == "update"} <= {"sgd", "momentum", "adamw"}
    assert any(stage == "update" for _, stage in judged) or optimizer == "adamw"


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("framework", NAMES)
def test_steps_follow_from_one_another(framework: str, optimizer: str, trained: Trained) -> None:
    rank = trained(framework, optimizer).rank
    words = {"sgd": {"buf"}, "adamw": {"m", "v"}}[optimizer]
    for name, parameter in rank.parameters.items():
        for step in CHOSEN[1:]:
            last, now = rank.tensors(step - 1), rank.tensors(step)
            before = now.parameter(name)
            assert before.shape == parameter.shape
            np.testing.assert_array_equal(before, last.parameter(name, "after"))
            if not parameter.trainable:
                np.testing.assert_array_equal(before, now.parameter(name, "after"))
                continue
            state = now.state(name)
            assert words <= set(state)
            assert set(state) <= words | {"step", "beta1_power", "beta2_power"}
            for word, value in last.state(name, "after").items():
                np.testing.assert_array_equal(value, state[word])


@pytest.mark.parametrize("framework", NAMES)
def test_clipping_is_recorded_between_backward_and_update(framework: str, trained: Trained) -> None:
    rank = trained(framework, "sgd").rank
    tensors = rank.tensors(0)
    trainable = [name for name, value in rank.parameters.items() if value.trainable]

    def size(when: str) -> float:
        gradients = [tensors.gradient(name, when) for name in trainable]
        return math.hypot(*(norm(gradient) for gradient in gradients if gradient is not None))

    clipped = "clipped" if framework == "paddle" else "update"
    assert size("backward") > 1
    assert abs(size(clipped) - 0.5) < 1e-5
    assert size("update") == pytest.approx(rank.lines[0].gradient_norm, rel=1e-14)


@pytest.mark.parametrize("framework", NAMES)
def test_perturb_moves_one_weight_by_one_ulp(framework: str, small_runs: SmallRuns) -> None:
    folder = small_runs(framework).folder
    plain, moved, again = (Run.read(folder / name).first for name in ("sgd", "moved", "again"))
    assert plain.perturbed is None
    assert moved.perturbed == again.perturbed
    assert moved.perturbed["seed"] == 7
    ((name, index, before, after),) = apart(plain.tensors(0).file, moved.tensors(0).file)
    assert name == f"parameters/{moved.perturbed['parameter']}/before"
    assert list(index) == moved.perturbed["index"]
    assert float(before) == float.fromhex(moved.perturbed["before"])
    assert float(after) == float.fromhex(moved.perturbed["after"])
    assert abs(before.view(np.int32) - after.view(np.int32)) == 1
    assert plain.initial_parameters != moved.initial_parameters == again.initial_parameters


@pytest.mark.parametrize("framework", [NAMES[1], NAMES[2]])
def test_a_compiled_model_trains_on_and_is_named(framework: str, small_runs: SmallRuns) -> None:
    folder, printed, _ = small_runs(framework)
    losses = printed["graph_training.py"]
    assert losses[0] > losses[1] > losses[2]
    rank = Run.read(folder / "graph").first
    assert [line.loss for line in rank.lines] == losses
    assert len({line.parameters_hash for line in rank.lines}) == 3
    assert tuple(n for n in rank.layers if rank.tensors(0).calls(n)) == ()
    words = {
        "paddle": "0: not recorded, inside paddle.jit.to_static.",
        "oneflow": "used by their weights alone, or not used): 0, 1.",
    }
    assert any(words[framework] in text for text in rank.not_captured)
    assert [line.updates for line in rank.lines] == [1 if framework == "paddle" else 0] * 3


def test_the_file_is_python_3_8() -> None:
    source = Path(str(refkernels.capture.__file__)).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))
    assert "pickle" not in source.replace("Nothing is pickled", "")


@pytest.mark.framework("mindspore")
def test_an_input_that_needs_no_gradient_has_none(small_runs: SmallRuns) -> None:
    rank = Run.read(small_runs("mindspore").folder / "words" / "closed").first
    assert rank.lines[1].loss < rank.lines[0].loss
    (call,) = rank.tensors(1).calls("(root)")
    assert set(call.inputs) == set(call.cotangents) == {"0"}
    assert not call.input_gradients
