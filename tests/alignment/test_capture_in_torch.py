"""Trainings accumulate, skip, nest, share, clip and stop: the probe changes no bit of any."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captured import answer, run_script

from refkernels.alignment.layers import read_layers
from refkernels.alignment.run import CaptureError, Rank, Run
from refkernels.alignment.updates import moved_outside, read_updates

pytestmark = pytest.mark.framework("torch")
SAME_BITS = (
    "plain", "only", "every", "in_place", "bfloat16", "double", "batch_norm", "dropout",
    "functional", "tied", "attention", "nested", "accumulated", "skipped", "twice", "changed",
    "scheduled", "mixed_precision", "checkpointed", "scripted", "compiled",
    "whole_model_is_a_layer", "used_again", "averaged",
)  # fmt: skip
OTHERS = ("watched", "without_optimizer", "raised", "killed", "full_disk", "refused")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("situations")


@pytest.fixture(scope="module")
def returned(folder: Path) -> dict[str, Any]:
    outcome = run_script("torch", folder, "torch_situations.py", *SAME_BITS, *OTHERS)
    return answer(outcome)


@pytest.fixture
def rank_of(returned: dict[str, Any], folder: Path) -> Any:
    def get(name: str) -> Rank:
        assert name in returned
        return Run.read(folder / name).first

    return get


@pytest.mark.parametrize("name", SAME_BITS)
def test_the_probe_changes_no_bit(name: str, returned: dict[str, Any], rank_of: Any) -> None:
    assert returned[name] == {"same": True, "distinct": 7 if name == "every" else 3}
    rank = rank_of(name)
    assert rank.complete
    assert rank.remarks == ()
    assert len(rank.steps) == 3


def test_the_options_only_and_every_bound_what_is_written(rank_of: Any) -> None:
    rank = rank_of("only")
    assert tuple(n for n in rank.layers if rank.tensors(0).calls(n)) == ("first",)
    assert [layer.recorded for layer in rank.layers.values()] == [True, False, False]
    assert "Left out by only=: middle, last." in rank.not_captured
    assert rank.tensors(0).parameter("last.weight") is not None
    assert rank_of("every").steps == (0, 3, 6)


def test_outputs_are_those_before_a_change_in_place(rank_of: Any) -> None:
    rank = rank_of("in_place")
    tensors = rank.tensors(0)
    (first,), (relu,) = tensors.calls("first"), tensors.calls("middle")
    assert (first.outputs["0"] < 0).any()
    np.testing.assert_array_equal(relu.inputs["0"], first.outputs["0"])
    np.testing.assert_array_equal(relu.outputs["0"], np.maximum(first.outputs["0"], 0))
    passed = np.where(first.outputs["0"] > 0, relu.cotangents["0"], 0)
    np.testing.assert_array_equal(first.cotangents["0"], passed)
    assert relu.input_gradients == {}
    assert any("middle changes its input in place" in text for text in rank.not_captured)


def test_narrow_and_wide_formats_keep_their_bits(rank_of: Any) -> None:
    for name, dtype in (("bfloat16", "bfloat16"), ("double", "float64")):
        rank = rank_of(name)
        tensors = rank.tensors(0)
        w, g = tensors.parameter("last.weight"), tensors.gradient("last.weight")
        arrays = w, g, tensors.calls("last")[0].outputs["0"]
        assert {str(array.dtype) for array in arrays} == {dtype}
        assert tensors.gradient("last.weight", "backward").tobytes() == g.tobytes()
        wide = w.astype(np.float64) - 0.1 * g.astype(np.float64)
        after = tensors.parameter("last.weight", "after").astype(np.float64)
        room = 3 * 2.0 ** -(8 if name == "bfloat16" else 53)
        assert np.all(np.abs(after - wide) <= room * (np.abs(w.astype(float)) + np.abs(wide)))


def test_buffers_are_recorded_around_the_step(rank_of: Any) -> None:
    rank = rank_of("batch_norm")
    assert rank.layers["middle"].buffers["running_mean"] == "middle.running_mean"
    tensors = rank.tensors(0)
    before, after = (tensors.buffer("middle.running_mean", when) for when in ("before", "after"))
    batch = tensors.calls("middle")[0].inputs["0"].astype(np.float64).mean(axis=0)
    assert not before.any()
    np.testing.assert_allclose(after, 0.1 * batch, rtol=1e-5)
    assert int(tensors.buffer("middle.num_batches_tracked", "after")) == 1


def test_functional_calls_are_named(rank_of: Any) -> None:
    rank = rank_of("functional")
    words = " ".join(rank.not_captured)
    assert "aten.gelu (1)" in words
    assert "view" not in words
    assert "Never called through their own forward" in words
    assert rank.layers["middle"].calls == 0


def test_a_tied_weight_is_listed_once_and_a_model_of_one_layer_is_named(rank_of: Any) -> None:
    rank, one = rank_of("tied"), rank_of("whole_model_is_a_layer")
    assert list(rank.parameters) == ["first.weight", "first.bias", "last.bias"]
    assert rank.layers["last"].parameters["weight"] == "first.weight"
    assert one.layers["(root)"].parameters == {"weight": "weight", "bias": "bias"}
    assert tuple(n for n in one.layers if one.tensors(0).calls(n)) == ("(root)",)


def test_layers_with_weights_of_their_own_are_layers(rank_of: Any) -> None:
    """MultiheadAttention has a child that it never calls, and takes one tensor three times."""
    rank = rank_of("attention")
    assert list(rank.layers)[:2] == ["first", "attend"]
    assert rank.layers["attend"].hyperparameters["num_heads"] == 2
    (call,) = rank.tensors(0).calls("attend")
    assert set(call.inputs) == {"0", "1", "value"}
    assert call.scalars == {"need_weights": False}
    assert set(call.input_gradients) == {"0"}
    (missed,) = [text for text in rank.not_captured if text.startswith("Never called")]
    assert missed.endswith("attend.out_proj, unused.")


def test_nested_arguments_are_found_by_their_path(rank_of: Any) -> None:
    (call,) = rank_of("nested").tensors(0).calls("inner")
    assert set(call.inputs) == {"0.0", "0.1.x", "more"}
    assert call.scalars == {"1": 2.0}
    assert set(call.outputs) == {"a", "b.0"}
    assert set(call.cotangents) == {"a", "b.0"}


def test_scaled_unscaled_and_clipped_gradients_are_distinguished(rank_of: Any) -> None:
    """The update receives clip / scale of what backward left, in each weight alike."""
    tensors = rank_of("mixed_precision").tensors(0)
    assert str(tensors.calls("last")[0].outputs["0"].dtype) == "bfloat16"
    ratios = []
    for name in ("first.weight", "last.weight"):
        left, received = tensors.gradient(name, "backward"), tensors.gradient(name)
        nonzero = received != 0
        ratios += list(left[nonzero].astype(np.float64) / received[nonzero])
    assert min(ratios) > 65536
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)


def test_a_recomputed_forward_is_a_further_call(rank_of: Any) -> None:
    first, again = rank_of("checkpointed").tensors(0).calls("first")
    np.testing.assert_array_equal(first.outputs["0"], again.outputs["0"])
    assert (set(first.cotangents), set(again.cotangents)) == ({"0"}, set())


def test_updates_are_counted_and_weights_moved_by_others_named(rank_of: Any) -> None:
    assert [line.updates for line in rank_of("skipped").lines] == [1, 0, 1]
    assert any("Step 1: no update" in text for text in rank_of("skipped").not_captured)
    held = [rank_of("skipped").tensors(1).parameter("first.weight", w) for w in ("before", "after")]
    assert [weight is None for weight in held] == [False, True]
    assert [line.updates for line in rank_of("twice").lines] == [2, 2, 2]
    assert any("several updates" in text for text in rank_of("twice").not_captured)
    moved = {name: [*moved_outside(rank_of(name))] for name in ("plain", "twice", "averaged")}
    averaged = [(step, "", ["first.weight"]) for step in (1, 2)]
    assert moved == {"plain": [], "twice": [], "averaged": averaged}


def test_schedules_and_changes_are_recorded(rank_of: Any) -> None:
    assert [line.lr for line in rank_of("scheduled").lines] == [(0.1,), (0.05,), (0.025,)]
    changes = [line.changed for line in rank_of("changed").lines]
    assert changes == [None, ({"momentum": 0.5},), ({"momentum": 0.5},)]


def test_watched_functions_are_recorded_as_layers(returned: dict[str, Any], rank_of: Any) -> None:
    assert returned["watched"]["same"]
    rank = rank_of("watched")
    assert rank.steps == (1,)
    assert list(rank.layers) == ["first", "middle", "last", "norm", "loss"]
    assert rank.layers["loss"].type == "cross_entropy"
    assert "label_smoothing" in rank.layers["loss"].signature
    assert rank.layers["norm"].hyperparameters["eps"] == 1e-3
    (norm,), (loss,) = (rank.tensors(1).calls(name) for name in ("norm", "loss"))
    np.testing.assert_array_equal(loss.inputs["0"], norm.outputs["0"])
    np.testing.assert_array_equal(norm.cotangents["0"], loss.input_gradients["0"])
    assert loss.inputs["1"].tolist() == [0, 1, -100, 1]
    assert loss.scalars == {"label_smoothing": 0.1}
    assert loss.cotangents["0"] == 1
    assert float(loss.outputs["0"]) == rank.lines[1].loss


def test_compiled_layers_are_named(rank_of: Any) -> None:
    assert "middle: not recorded, a TorchScript module." in rank_of("scripted").not_captured
    assert not rank_of("scripted").layers["middle"].recorded
    rank = rank_of("compiled")
    assert "_orig_mod.first: not recorded, inside torch.compile." in rank.not_captured
    assert tuple(n for n in rank.layers if rank.tensors(0).calls(n)) == ()
    assert rank.tensors(0).parameter("_orig_mod.first.weight", "after") is not None


def test_without_optimizer_the_weights_are_recorded_once(rank_of: Any) -> None:
    rank = rank_of("without_optimizer")
    assert (rank.optimizer, rank.lines[0].updates) == (None, 0)
    assert rank.tensors(0).parameter("first.weight") is not None
    assert rank.tensors(0).gradient("first.weight", "backward") is not None


def test_everything_is_restored_when_the_block_ends(returned: dict[str, Any], rank_of: Any) -> None:
    assert returned["raised"] == {"forwards": 0, "hooks": 0}
    rank = rank_of("raised")
    assert (rank.complete, rank.steps) == (False, (0, 1))
    assert "KeyError ended the capture in step 2." in rank.not_captured


def test_a_killed_run_leaves_whole_steps_only(returned: dict[str, Any], rank_of: Any) -> None:
    assert returned["killed"]["status"] == 9 << 8
    rank = rank_of("killed")
    assert (rank.complete, rank.steps) == (False, (0, 1))
    assert [line.step for line in rank.lines] == [0, 1]


def test_a_full_disk_stops_the_capture_alone(returned: dict[str, Any], rank_of: Any) -> None:
    report = returned["full_disk"]
    assert "choose fewer steps, or bound them with only=" in report["entry"]
    assert report["same"]
    rank = rank_of("full_disk")
    assert (rank.complete, rank.steps) == (True, (0, 3))
    assert "only 0.0 kB are free" in rank.lines[1].reason
    assert "could not be written" in rank.lines[2].reason
    with pytest.raises(CaptureError, match="has no tensors of step 1; it has 0, 3"):
        rank.tensors(1)


def test_bad_arguments_are_refused_in_a_sentence(returned: dict[str, Any]) -> None:
    words = {
        "model": "object is not a layer of torch, paddle, oneflow or mindspore",
        "steps": "steps=-1: give whole numbers from 0",
        "only": "matches none of the 3 layers, such as 'first'",
        "rank": "rank 3 is not among 1 processes",
        "perturb": "the model has no trainable weight in floating point",
        "loss": "loss has 2 elements: give one number",
        "loss_word": "loss is a str: give a number or a tensor",
        "exists": "already holds a run: choose another folder, or remove it",
        "taken": "use another name than 'first'",
        "uncallable": "watch: 'int' is neither a function nor a layer",
        "outside": "belongs inside the `with Capture(...)` block",
    }
    assert set(returned["refused"]) == set(words)
    for name, sentence in words.items():
        assert sentence in returned["refused"][name]


def test_a_chosen_step_takes_six_times_the_weights_on_disk(tmp_path: Path) -> None:
    """Weights, two words of state and gradients, and a quarter for one layer of each kind; what the
    second step begins with is in the first one's file, and of what it leaves there is a part."""
    costs = answer(run_script("torch", tmp_path, "costly_training.py", "1"))
    assert 5.0 < costs["times_weights"][0] < 6.0
    assert 2.0 < costs["times_weights"][1] < 3.0
    rank = Run.read(tmp_path / "costs").first
    tensors, kinds = rank.tensors(1), ("linear1", "linear2", "self_attn", "norm1")
    left = [item.name for item in read_layers(rank, 1, tensors) if "no room" in str(item)]
    assert {f"6.{kind}" for kind in kinds} <= {*left} == {*tensors.listed("left_out")}
    assert all(map(tensors.calls, ("0", "7", *(f"1.{kind}" for kind in kinds))))
    (head,) = tensors.calls("7") if "7" in tensors.listed("items") else ()
    assert head.outputs["0"].shape == head.cotangents["0"].shape == (1, 128, 4000)
    exact = head.inputs["0"].astype(float) @ tensors.parameter("7.weight").T.astype(float)
    exact += tensors.parameter("7.bias")
    assert np.linalg.norm(head.outputs["0"] - exact) < 2.0**-20 * np.linalg.norm(exact)
    over = replace(rank.layers["7"], type="Softmax", hyperparameters={"dim": 0}, parameters={})
    (item,) = read_layers(replace(rank, layers={"7": over}), 1, tensors)
    assert "depends on more rows than are kept" in str(item)
    *_, state = read_updates(rank, rank.lines[1], tensors)
    assert ({*state.outputs}, state.inputs["m"].size > 4096) == ({"m", "v"}, True)
    terms = 0.9 * state.inputs["m"].astype(float), 0.1 * state.inputs["grad"].astype(float)
    assert np.all(abs(state.outputs["m"] - sum(terms)) <= 2.0**-22 * sum(map(abs, terms)))
