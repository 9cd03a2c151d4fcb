"""A fault planted in a training is named from captures of its first steps, in float32."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captured import answer, run_script
from hunting import one_in
from typer.testing import CliRunner

from refkernels.alignment import Alignment, align, updates
from refkernels.alignment.comparison import departure
from refkernels.alignment.local import LocalJudgement, judge_run
from refkernels.alignment.matching import matched
from refkernels.alignment.run import Run
from refkernels.cli.app import app
from refkernels.reporting.alignment import page

pytestmark = [pytest.mark.framework("torch"), pytest.mark.usefixtures("judged_once")]
# name: run to compare with, step, topic, what the headline says
PLANTED: dict[str, tuple[str, int, str, str]] = {
    "layernorm_eps": ("right", 0, "layer", "eps is 1e-12 in A and 1e-05 in B"),
    "tanh_gelu_declared": ("right", 0, "layer", "is gelu in A and gelu\\_tanh in B"),
    "tanh_gelu": ("right", 0, "forward", "tanh approximation of GELU instead of erf (proven)"),
    "attention_scale": ("right", 0, "forward", "takes 0.176776695 in A and 0.03125 in B"),
    "layernorm_eps_hidden": ("right", 0, "forward", "it uses eps = 1e-05 ("),
    "label_smoothing": ("right", 0, "layer", "label\\_smoothing is 0 in A and 0.1 in B"),
    "loss_sum": ("right", 0, "layer", "reduction is mean in A and sum in B"),
    "tied_gradient_dropped": ("right", 0, "gradient", "after the loss: B leaves out `add`"),
    "gradient_times_8": ("right", 0, "backward", "in B is 8 times that of A"),
    "no_bias_correction": ("plain_adam", 0, "update", "not correct the bias of m and v (proven)"),
    "adam_eps_hat": ("plain_adam", 0, "update", "adds eps to sqrt(v) before v is corrected"),
    "adam_eps_inside": ("plain_adam", 0, "update", "inside the root"),
    "steps_kept": ("right", 0, "optimizer", "a state that the optimizer begins this step with"),
    "adam_eps": ("right", 0, "optimizer", "eps of"),
    "momentum_nesterov": ("sgd", 0, "optimizer", "nesterov of"),
    "momentum_dampening": ("sgd", 0, "optimizer", "dampening of"),
    "decay_on_excluded": ("right", 0, "optimizer", "is 0 in A and 0.01 in B"),
    "coupled_decay": ("right", 0, "optimizer", "type is AdamW in A and Adam in B"),
    "clip_left_out": ("right", 0, "clip", "B leaves them unchanged"),
    "clip_each_group": ("right", 0, "clip", "B scales them by one factor for each parameter group"),
    "clip_each_parameter": ("right", 0, "clip", "by one factor for each parameter, as clipping"),
    "clip_but_first": ("right", 0, "clip", "for all parameters but bias, as clipping"),
    "clip_at_one": ("right", 0, "clip", "for all parameters, as clipping at 1 would"),
    "late_schedule": ("right", 1, "schedule", "B is one step late"),
    "stale_batch": ("right", 1, "data", "B is one step late"),
    "halves_sum": ("clip_left_out", 0, "gradient", "B takes the sum over 2 parts of the batch"),
    "masked_means": ("masked", 0, "gradient", "different numbers of tokens (16, 6)"),
    "loss_scale_left_in": ("clip_left_out", 0, "backward", "a loss scale of 65536 that B does not"),
    "clip_before_unscale": ("scaled", 0, "clip", "the threshold of B is 1/65536 of the other's"),
    "ranks_sum": ("ranks_mean", 0, "clip", "B takes the sum over 2 ranks instead of their mean"),
    "ranks_own": ("ranks_mean", 0, "clip", "in B each of 2 ranks keeps its own gradient"),
    "ranks_masked_means": ("masked", 0, "clip", "different numbers of tokens (16, 6)"),
    "ranks_same_shard": ("ranks_mean", 0, "ranks", "rank 0 and rank 1 read the same rows"),
}
ALIKE = (  # the same training: moved by an ulp, by another hand, scaled, in parts, on ranks
    ("right", "perturbed"),
    ("plain_adam", "right_adam"),
    ("right", "scaled"),
    ("scaled", "right"),
    ("clip_left_out", "scaled_by_8"),
    ("scaled_by_8", "clip_left_out"),
    ("clip_left_out", "scaled_by_3"),
    ("scaled_by_3", "scaled_by_6"),
    ("clip_left_out", "halves_right"),
    ("masked", "masked_right"),
    ("clip_left_out", "ranks_mean"),
    ("masked", "ranks_masked"),
    ("ranks_masked", "masked"),
)

TRIED = one_in(6, PLANTED, lambda name: PLANTED[name][2])  # of each topic
PAIRS = one_in(5, ALIKE)
CURVES = ("right", "perturbed", "late_schedule")  # whose losses are compared, in more steps
READ = (
    *CURVES, "adam_eps", "adam_eps_inside", "tanh_gelu", "plain_adam", "clip_left_out",
    "clip_each_group", "clip_each_parameter", "clip_but_first",
)  # fmt: skip


def invoked(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    bases = (PLANTED[name][0] for name in TRIED)
    names = dict.fromkeys((*READ, *TRIED, *bases, *(name for pair in PAIRS for name in pair)))
    given = [name if name in CURVES else f"{name}:3" for name in names]
    returned = run_script("torch", folder, "planted_training.py", "12:1", *given)
    assert set(answer(returned)) == set(names)
    return folder


@pytest.mark.parametrize("name", TRIED)
def test_a_planted_definition_is_named_with_its_step(name: str, runs: Path) -> None:
    base, step, topic, headline = PLANTED[name]
    alignment = align(runs / base, runs / name, steps=[0])
    assert alignment.verdict.word == "different"
    assert alignment.verdict.first is not None
    assert (alignment.verdict.first.step, alignment.verdict.first.topic) == (step, topic)
    assert headline in page.headline(alignment.to_dict())
    assert page.headline(alignment.to_dict(), "zh").startswith("**定义不同。**")


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_what_differs_in_rounding_only_is_not_blamed(a: str, b: str, runs: Path) -> None:
    """Calls decide, but for runs that compute on other parts of the batch."""
    alignment = align(runs / a, runs / b, steps=[0])
    decides = alignment.traced is not None and alignment.traced.decides
    assert alignment.verdict.word == ("same" if decides else "undecidable")
    assert decides or "unseen" in [reason.word for reason in alignment.verdict.reasons]
    assert decides or "masked" in a + b or "ranks" in a + b
    assert not any(judged.wrong for local in alignment.local for judged in local.judgements)
    judged = {judgement.op for judgement in alignment.local[0].judgements}
    assert judged >= {"linear", "layernorm", "gelu", "softmax", "embedding", "cross_entropy"}


@pytest.mark.parametrize("name", ["plain_adam", "adam_eps_inside"])
def test_a_sample_of_an_update_is_judged_as_the_whole(
    name: str, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.read(runs / name)
    whole, sample = (_updates(run, most, monkeypatch) for most in (2**17, 1000))
    assert all(judgement.elements < 4000 for judgement in sample)
    for full, part in zip(whole, sample, strict=True):
        assert full.elements > 4000
        assert (full.output, full.wrong, full.cause) == (part.output, part.wrong, part.cause)
        assert full.over_bound / 2 < part.over_bound <= full.over_bound


def test_the_one_wrong_element_of_an_update_is_in_every_sample(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = Run.read(runs / "plain_adam").first
    kept, name = rank.tensors(0), "blocks.1.up.weight"
    after = np.array(kept.parameter(name, "after"))
    after[77, 5] = np.nextafter(after[77, 5], 9.0) + 40 * np.spacing(after[77, 5])

    def parameter(of: str, when: str = "before") -> Any:
        return after if (of, when) == (name, "after") else type(kept).parameter(kept, of, when)

    monkeypatch.setattr(kept, "parameter", parameter)
    (judgement,) = (j for j in _updates(Run(runs, (rank,)), 1000, monkeypatch) if j.wrong)
    assert (judgement.output, judgement.worst) == ("param", name)


def _updates(run: Run, most: int, monkeypatch: pytest.MonkeyPatch) -> list[LocalJudgement]:
    monkeypatch.setattr(updates, "_MOST", most)
    judgements = judge_run(run, (0,)).judgements
    return [judgement for judgement in judgements if judgement.place.stage == "update"]


def test_one_run_is_compared_with_its_own_declaration(runs: Path) -> None:
    assert align(runs / "right", steps=[0]).verdict.word == "undecidable"
    verdict = align(runs / "adam_eps_inside", steps=[0]).verdict
    assert (verdict.word, verdict.first and verdict.first.run) == ("different", "A")
    of_users = align(runs / "tanh_gelu", steps=[0]).verdict  # its class GELU is its own
    assert (of_users.word, of_users.reasons[0].details) == ("undecidable", {"types": "GELU"})


def test_clipping_is_read_from_gradients(runs: Path) -> None:
    names = "right", "clip_left_out", *READ[-3:]
    clips = {name: align(runs / name, steps=[0]).clips[0] for name in names}
    scopes = [clip.scope if clip else "" for clip in clips.values()]
    assert scopes == ["global", "none", "group", "tensor", "global"]
    assert [clip.left_out for clip in clips.values() if clip][-2:] == [(), ("bias",)]
    threshold = clips["right"] and clips["right"].threshold
    assert threshold == pytest.approx((0.5, 0.5), rel=2.0**-9)


def test_null_directions_are_listed(runs: Path) -> None:
    """Attention does not depend on its key's bias."""
    directions = align(runs / "right", steps=[0]).null_directions[0]
    assert set(directions) == {"blocks.0.key.bias", "blocks.1.key.bias"}
    right, moved = (Run.read(runs / name) for name in ("right", "perturbed"))
    for name in directions:  # of layers in one run, where functions stand for them in the other
        dict.pop(right.first.layers, name.removesuffix(".bias"))
    assert departure(right, moved, matched(right.first, moved.first), {}) is None


def test_curves_are_compared_with_null_runs(runs: Path, tmp_path: Path) -> None:
    """Null runs by hand: the losses of a run, moved as rounding moves them."""
    rng, nulls = np.random.default_rng(1), []
    for number in range(19):
        folder = shutil.copytree(runs / "right", tmp_path / str(number))
        path = folder / "rank_0" / "steps.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            line["loss"] *= 1.0 + 1e-7 * rng.standard_normal()
            line["loss_hex"] = float(line["loss"]).hex()
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        nulls.append(folder)
    same = align(runs / "right", runs / "perturbed", nulls=nulls, steps=[0])
    assert getattr(same.curve, "runs", 0) == 19
    assert same.verdict.word == "same"
    assert page.headline(same.to_dict()).startswith("**Same definition, rounding only.**")
    late = align(runs / "right", runs / "late_schedule", nulls=nulls, steps=[0])
    curve: Any = late.curve
    assert (curve.extreme, curve.p_normal < 1e-6) == (True, True)


def test_the_command_prints_the_verdict_and_ends_by_its_status(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    result = invoked("align", runs / "right", runs / "adam_eps", "--step", "0", "--out", folder)
    assert (result.exit_code, "Different definition" in result.stdout) == (1, True)
    assert {path.name for path in folder.iterdir()} == {
        "alignment.html", "alignment.zh.html", "alignment.md", "alignment.zh.md", "alignment.json",
    }  # fmt: skip
    record = json.loads((folder / "alignment.json").read_text())
    assert record["verdict"]["word"] == "different"
    alone = invoked("align", runs / "right", "--step", "0", "--json")
    assert alone.exit_code == 0
    assert json.loads(alone.stdout)["verdict"]["word"] == "undecidable"


def test_a_map_settles_what_order_does_not(runs: Path, tmp_path: Path) -> None:
    names = tmp_path / "map.json"
    names.write_text('{"blocks.0.act": "blocks.1.act"}')
    words = "align", runs / "right", runs / "perturbed", "--map", names
    result = invoked(*words, "--step", "0", "--json")
    assert json.loads(result.stdout)["matched"]["layers"]["blocks.0.act"] == "blocks.1.act"
    names.write_text('{"nowhere": "blocks.1.act"}')
    result = invoked(*words)
    assert (result.exit_code, "nowhere" in result.stderr) == (2, True)


def test_alignment_is_a_record(runs: Path) -> None:
    alignment = align(runs / "right", runs / "tanh_gelu", steps=[0])
    assert isinstance(alignment, Alignment)
    assert json.loads(json.dumps(alignment.to_dict(), allow_nan=False)) == alignment.to_dict()
