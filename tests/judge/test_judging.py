"""The parts of a judge: its inputs, its decoys, its cells, its words."""

from __future__ import annotations

import json
import math
import sys
import warnings
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import odd_kernels
import pytest
from command_helpers import said
from hunting import one_in
from listing import SEED
from presence import compiled

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.frameworks import catalog, cells, environments
from refkernels.judging import precision, questions, running
from refkernels.judging.challenges import Drawer
from refkernels.judging.data import Filling
from refkernels.judging.examination import Examinations, KernelExamination
from refkernels.judging.folder import NOT_JUDGED
from refkernels.judging.judge import judge as verdict_on
from refkernels.judging.judgement import VERDICTS
from refkernels.judging.questions import KernelDomain
from refkernels.judging.running import JudgedKernel
from refkernels.judging.standard import Challenge
from refkernels.judging.wrong_answers import Shown, decoy_of
from refkernels.programs.spread import StatisticalWarning
from refkernels.reporting.judging.views import because, lines
from refkernels.reporting.words import judgement as words
from refkernels.testing import judge

RIGHT = Path(__file__).parent / "right"
ODD = Path(__file__).with_name("odd_kernels.py")
QUICK: dict[str, Any] = {"level": "quick", "seed": SEED, "causes": False, "mutants": False}
judging = import_module("refkernels.judging.judge")  # the module, not the function


def drawn(op: str, dtype: str = "float32") -> list[Challenge]:
    """The first round, without what is too large for many answers."""
    challenges = Examinations().of(registry.get(op), "forward", dtype, SEED).round(0)
    return [challenge for challenge in challenges if challenge.family != "long"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_partial_sums_of_the_exact_family_stay_below_two_to_the_p(dtype: str) -> None:
    (challenge,) = (one for one in drawn("matmul", dtype) if one.family == "exact")
    a, b = (challenge.inputs[name].astype(np.float64) for name in ("a", "b"))
    largest = np.max(np.abs(a) @ np.abs(b))
    p = max(formats.get(dtype).p, formats.BINARY32.p)
    assert 0 < largest <= min(2.0**p, formats.get(dtype).max)
    narrower = a.astype(np.float16) if dtype == "float32" else a.astype(np.float32)
    assert dtype in ("float16", "bfloat16") or not np.any(narrower == a)


def test_a_product_of_one_term_is_held_to_a_few_roundings() -> None:
    (challenge,) = [challenge for challenge in drawn("matmul") if challenge.family == "one_hot"]
    standard = challenge.standard()
    exact = np.abs(np.asarray(standard.reference["c"]))
    u = formats.BINARY32.u
    assert np.all(standard.bound()["c"] <= 14 * u * exact + 2.0**-140)
    assert np.all(standard.bound()["c"] >= 12.9 * u * exact)  # what a product of split floats needs


def test_a_broken_property_is_shown_where_it_is_broken() -> None:
    hard = [challenge for challenge in drawn("gelu") if challenge.family == "hard"]
    (challenge,) = [one for one in hard if np.any(one.inputs["x"] == formats.BINARY32.max)]
    x, right = challenge.inputs["x"], challenge.standard().rounded["y"]
    wrong = np.where(x == formats.BINARY32.max, np.float32(np.inf), right)
    fault: Any = challenge.fault({"y": wrong})
    assert fault.details["got"] == "inf"
    assert x[tuple(fault.details["index"])] == formats.BINARY32.max


@pytest.mark.parametrize("op", ["cross_entropy", "nll"])
def test_no_class_outside_the_range_is_asked(op: str) -> None:
    challenges = drawn(op)
    assert len(challenges) > 8
    for challenge in challenges:
        target = challenge.inputs["target"]
        ignored = target == challenge.params["ignore_index"]
        assert np.all(ignored | ((target >= 0) & (target < challenge.inputs["x"].shape[1])))


def test_the_first_question_has_every_optional_input_of_the_cases() -> None:
    drawer = Drawer(registry.get("cross_entropy"), "forward", "float32")
    first = drawer.typicals(np.random.default_rng(0))
    assert first
    assert all("weight" in challenge.inputs for challenge in first)
    without = replace(drawer, domain=KernelDomain(frozenset({"weight"})))
    axes = {c.inputs["x"].ndim for c in without.typicals(np.random.default_rng(0))}
    assert axes == {2, 3}
    plane = replace(drawer, domain=KernelDomain(frozenset({"weight"}), axes=frozenset({2})))
    asked = plane.round(np.random.default_rng(0), 0)
    shapes = [one.inputs["x"].ndim for one in asked if one.family != "hard"]
    assert len(shapes) > 6
    assert set(shapes) == {2}


@pytest.mark.parametrize(("kernel", "avoids"), [("erf_gelu", False), ("float64_gelu", True)])
def test_a_right_kernel_of_a_form_that_loses_digits_is_told_of_another(
    kernel: str, avoids: bool
) -> None:
    judgement = verdict_on(f"{RIGHT}/gelu.py:{kernel}", **QUICK)
    assert judgement.right
    assert (judgement.avoidable is None) == avoids
    for lang, clause in (("en", "avoidable: "), ("zh", "可避免：")):
        text = "\n".join(lines(judgement.to_dict(), "", lang))
        assert (clause in text) == (not avoids)
        assert ("x erfc(-x / sqrt 2) / 2" in text) == (not avoids)


def test_the_first_calls_change_each_input_alone_and_integers_too() -> None:
    for op in ("matmul", "cross_entropy", "embedding"):
        calls = KernelExamination(registry.get(op), "forward", "float32", 5).calls.challenges[:14]
        first, (many, other) = calls[0].inputs, (c.floats.values() for c in calls[12:])
        assert sum(np.sum(a != b) for a, b in zip(many, other, strict=True)) == 1
        changed = {
            frozenset(n for n, array in call.inputs.items() if not np.array_equal(array, first[n]))
            for call in calls[:12]
        }
        main, *others = first
        assert frozenset(others) in changed, op
        assert {frozenset(), frozenset({main})} <= changed


def test_every_float_input_has_a_nan_somewhere() -> None:
    for op in ("layernorm", "matmul", "adamw"):
        challenges = [one for one in drawn(op) if one.family in ("special", "hard")]
        with_nan = {n for one in challenges for n, a in one.floats.items() if np.isnan(a).any()}
        assert with_nan == set(challenges[0].floats)


@pytest.mark.parametrize("op", ["layernorm", "batch_norm", "group_norm", "conv2d", "matmul"])
def test_shifted_numbers_have_one_large_mean_along_all_letters_of_a_row(op: str) -> None:
    roles = Drawer(registry.get(op), "forward", "float32").roles
    (shifted, *_) = [challenge for challenge in drawn(op) if challenge.family == "shifted"]
    x, axes = shifted.inputs[roles.first].astype(float), roles.related[roles.first]
    assert np.all(np.abs(x.mean(axes)) > 10.0 * x.std(axes))


def test_no_kernel_may_decline_the_calls_of_one_process() -> None:
    """Else one that keeps the classes of its first call would be asked no second one."""
    for op in one_in(2, ("cross_entropy", "nll", "embedding", "rotary", "clip_by_norm")):
        for seed in one_in(6, range(6)):
            examination = KernelExamination(registry.get(op), "forward", "float32", seed)
            first = examination.calls.challenges[0]
            assert (first.owed, np.ptp(first.inputs.get("target", [0, 1])) > 0) == (True, True), op
    cheat = f"{RIGHT.parent}/cheats/cross_entropy.py:targets_kept_cross_entropy"
    assert verdict_on(cheat, level="quick", seed=12, causes=False, mutants=False).score == 0.0


def test_a_seed_draws_the_same_inputs_again() -> None:
    drawer = Drawer(registry.get("softmax"), "forward", "float32")
    rounds = [list(drawer.round(np.random.default_rng(3), 0)) for _ in range(2)]
    assert len(rounds[0]) > 20
    for first, second in zip(*rounds, strict=True):
        assert first.name == second.name
        assert np.array_equal(first.inputs["x"], second.inputs["x"], equal_nan=True)


@pytest.mark.parametrize("op", ["conv2d", "attention", "matmul", "batch_norm"])
def test_shapes_make_no_more_work_than_their_round_allows(op: str) -> None:
    drawer = Drawer(registry.get(op), "forward", "float32")
    rng, seen = np.random.default_rng(3), set()
    for size, work in enumerate(questions.WORK):
        for _ in range(20):
            rows, letters = (), {}
            for name, shape in drawer.shapes.drawn(rng, size).items():
                argument = drawer.roles.arguments[name]
                own = len(argument.own)
                letters |= dict(zip(argument.own, shape[len(shape) - own :], strict=True))
                rows = shape[: len(shape) - own] if argument.rows else rows
            assert math.prod(rows) * math.prod(letters.values()) <= work
            seen |= {max(letters.values())}
    assert len(seen & set(questions.LENGTHS[2])) > 1
    tiles = [max(c.floats.values(), key=np.size).ndim for c in drawer.long(rng, 0)]
    assert op != "matmul" or 2 in tiles  # not batches alone


def test_odd_lengths_of_a_convolution_are_asked() -> None:
    odd = [challenge for challenge in drawn("conv2d") if challenge.family == "shapes"]
    shapes = [challenge.inputs[name].shape for challenge in odd for name in ("x", "weight")]
    for channels in (0, 1, 67):
        assert any(shape[1] == channels for shape in shapes)
    assert any(shape[-1] == 67 for shape in shapes)


@pytest.mark.parametrize(("op", "letter"), [("matmul", "k"), ("sum", "n")])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_bits_are_demanded_of_sums_that_are_longer_than_two_to_the_p(
    op: str, letter: str, dtype: str
) -> None:
    domain = KernelDomain(lengths={letter: (9001,)})
    drawer = Drawer(registry.get(op), "forward", dtype, domain)
    asked = drawer.round(np.random.default_rng(2), 0)
    (challenge,) = (challenge for challenge in asked if challenge.family == "exact")
    standard, name = challenge.standard(), challenge.op.outputs[0]
    assert next(iter(challenge.floats.values())).shape[-1] == 9001
    assert name in standard.exact
    right = standard.rounded[name]
    beside = np.nextafter(right, right.dtype.type(np.inf))
    fault: Any = challenge.fault({name: beside})
    assert challenge.fault({name: right}) is None
    assert fault.kind in ("wrong_bits", "wrong_bound")  # of the terms that are not 0


def test_no_bits_are_demanded_where_a_partial_sum_may_round() -> None:
    op = registry.get("matmul")
    inputs = {"a": np.full((2, 8192), 4095.0, np.float32), "b": np.ones((8192, 2), np.float32)}
    challenge = Challenge("exact", "", op, "forward", inputs, {}, exact=True)
    assert not challenge.standard().exact


@pytest.mark.parametrize("op", ["layernorm", "softmax", "matmul", "gelu"])
def test_arrays_without_rows_are_drawn_and_have_an_answer(op: str) -> None:
    empty = [one for one in drawn(op) if next(iter(one.floats.values())).shape[:1] == (0,)]
    assert empty
    for challenge in empty:
        assert challenge.has_answer
        assert challenge.fault(challenge.standard().rounded) is None


def test_a_gradient_whose_lengths_follow_from_others_is_asked_on_the_cases() -> None:
    drawer = Drawer(registry.get("conv1d"), "backward", "float32")
    assert not drawer.free
    assert drawer.typical(np.random.default_rng(0), 6).inputs.keys() >= {"dy", "x", "weight"}


@pytest.mark.parametrize("axes", [0, 2])
def test_leading_axes_are_as_many_as_a_kernel_takes(axes: int) -> None:
    domain = KernelDomain(axes=frozenset({axes}))
    for op, more in (("matmul", 2), ("softmax", 1), ("gelu", 0)):
        drawer = Drawer(registry.get(op), "forward", "float32", domain)
        drawn = [c for c in drawer.round(np.random.default_rng(0), 0) if c.family != "hard"]
        assert len(drawn) > 8
        assert {a.ndim for challenge in drawn for a in challenge.inputs.values()} == {axes + more}
    domain = KernelDomain(lengths={"k": (64,)})  # holds whatever else is drawn
    declared = Drawer(registry.get("matmul"), "forward", "float16", domain)
    asked = declared.round(np.random.default_rng(0), 0)
    assert {challenge.inputs["b"].shape[-2] for challenge in asked} == {64}


def test_a_gradient_summed_over_some_of_many_rows_is_refused() -> None:
    drawer = Drawer(registry.get("layernorm"), "backward", "float32")
    wide = next(drawer.wide(np.random.default_rng(0)))
    part = {n: a[:4096] if a.ndim > 1 else a for n, a in wide.inputs.items()}
    of_part = wide.op.plain("backward", part, wide.params, wide.format)
    fault: Any = wide.fault({**wide.standard().rounded, "dweight": of_part["dweight"]})
    assert (fault.kind, fault.details["output"]) == ("wrong_bound", "dweight")


def test_no_truth_is_computed_before_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    answer, standard = JudgedKernel.answer, Challenge.standard

    def answered(self: JudgedKernel, challenge: Challenge) -> Any:
        order.append(("answer", challenge.name))
        return answer(self, challenge)

    def recorded(self: Challenge, *arguments: Any) -> Any:
        order.append(("truth", self.name))
        return standard(self, *arguments)

    monkeypatch.setattr(JudgedKernel, "answer", answered)
    monkeypatch.setattr(Challenge, "standard", recorded)
    judge(f"{RIGHT.parent}/cheats/functions.py:identity_gelu", level="quick", seed=SEED)
    answers = {name: i for i, (kind, name) in reversed([*enumerate(order)]) if kind == "answer"}
    truths = {name: i for i, (kind, name) in reversed([*enumerate(order)]) if kind == "truth"}
    common = answers.keys() & truths.keys()
    assert len(common) > 8
    assert all(answers[name] < truths[name] for name in common)


def test_no_special_value_is_asked_where_a_model_gives_others() -> None:
    kernel = f"{RIGHT.parent}/cheats/softmax.py:nan_ignored_softmax"
    judged = verdict_on(kernel, finite=True, **QUICK)
    assert (judged.verdict, "finite_alone" in judged.flags) == ("right", True), judged.reasons


def asked_of(kernel: str, *limits: float) -> tuple[JudgedKernel, Challenge]:
    """A kernel of gelu in a process of its own, and a question."""
    spec, _ = catalog.target(kernel)
    drawer = Drawer(registry.get("gelu"), "forward", "float32")
    (challenge,) = drawer.typicals(np.random.default_rng(0))
    return JudgedKernel(spec.framework, environments.find(spec), "cpu", *limits), challenge


FORKED = """
import os, time
os.register_at_fork(after_in_child=lambda: time.sleep(3600))

def gelu(x):
    return x
"""


def test_a_kernel_whose_threads_die_in_a_fork_answers_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "COMPILING", 1.0)
    (tmp_path / "forked.py").write_text(FORKED, encoding="utf-8")
    running, challenge = asked_of(f"{tmp_path}/forked.py:gelu", 1.0)
    with running:
        assert running.answer(challenge).status == "ok"
        assert running.hung is None


@pytest.mark.parametrize("way", ["counted", "forkless", "unkept"])
def test_later_processes_are_forks_of_the_first_that_has_compiled(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first question makes two calls. Where a fork of its process dies, none is kept; one that
    cannot be kept makes the next calls."""
    monkeypatch.setattr(running, "STARTING", -1e9)
    kernel, challenge = asked_of(f"{ODD}:{way.replace('unkept', 'counted')}_gelu")
    kernel._keeps = way != "unkept"
    with kernel:
        replies = [kernel.answer(challenge)]
        kept = [kernel.calls([running.call_of(challenge, 1)] * 2) for _ in range(2)]
        assert {reply.status for reply in [*replies, *kept[0], *kept[1]]} == {"ok"}
        assert kernel.warm == (way == "counted")
        counts = [reply.outputs["y"].flat[0] for reply in (*replies, *kept[0], *kept[1])]
        later = [1, 2] if way == "unkept" else [3, 4]
        assert way == "forkless" or counts == [1, 3, 4, *later]


@pytest.mark.parametrize(
    ("function", "status"), [("slow", "timeout"), ("large", "oom"), ("killed", "killed")]
)
def test_what_a_loaded_machine_may_have_stopped_is_not_wrong(
    function: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if status == "timeout":  # which no other kernel here may be told, however slow the machine
        monkeypatch.setattr(cells, "COMPILING", 0.5)
        monkeypatch.setattr(judging, "JudgedKernel", partial(JudgedKernel, seconds=0.5))
    kernel = f"{ODD}:{function}_gelu"
    judgement = verdict_on(kernel, level="quick", seed=SEED)
    assert judgement.verdict == "not_enough_shown"
    assert {reason.kind for reason in judgement.reasons} == {"no_answer"}
    assert {reason.details["status"] for reason in judgement.reasons} == {status}


def test_settings_in_a_kernels_name_are_the_environment_of_its_process() -> None:
    name = f"{ODD}:under_settings_gelu"
    judgement = verdict_on(f"{name}@PLACES=3", **QUICK)
    told = because(judgement.to_dict()["reasons"], "en")
    assert len(told) == 1  # however many inputs showed it
    assert "there are 3 places) (call 1 of " in told[0]
    with pytest.raises(catalog.FrameworkError, match="has no flag num_threads"):
        verdict_on(f"{name}@num_threads=1", level="quick")


def test_a_verdict_names_what_a_kernel_does_not_take() -> None:
    for kernel, left_out, axes in (("plane_matmul", (), (0,)), ("bare_rms_norm", ("weight",), ())):
        judged = judge(f"{ODD}:{kernel}", level="quick", seed=SEED)
        found = judged.verdict, judged.left_out, judged.leading_axes
        assert found == ("right", left_out, axes), judged.reasons
        assert all(name in " ".join(lines(judged.to_dict(), "")) for name in left_out)


@pytest.mark.parametrize(
    ("function", "status", "reason"),
    [
        ("half_character_gelu", "error", "ValueError: \ufffdx"),
        ("signalled_gelu", "killed", "its process was ended by signal 35"),
        ("forging_gelu", "error", "its process sent something other than arrays"),
    ],
)
def test_every_reply_of_a_process_can_be_stored_in_a_file(
    function: str, status: str, reason: str
) -> None:
    if function == "signalled_gelu" and sys.platform != "linux":
        pytest.skip("a signal of Linux's")
    running, challenge = asked_of(f"{ODD}:{function}")
    with running:
        reply = running.answer(challenge)
        assert running.answer(challenge).status == status
    assert (reply.status, reply.reason) == (status, reason)
    reply.reason.encode()


def test_what_a_kernel_adds_to_a_library_replaces_nothing() -> None:
    with asked_of(f"{ODD}:twice@op=gelu")[0] as kernel:
        assert kernel._known(["json.mine", "json.tool.main"]) == ("json.tool.main",)


def test_a_case_of_einsum_without_axes_is_one_row() -> None:
    roles = Drawer(registry.get("einsum"), "backward", "float32").roles
    one = Filling(np.random.default_rng(0), {str(roles.first): ()}, roles, formats.BINARY32)
    assert [array.shape for array in one.mixed().values()] == [()]


def test_an_answer_to_empty_arrays_that_is_0_over_0_is_not_asked_for() -> None:
    attention, f32 = registry.get("attention"), np.float32

    def asked(m: int, d: int) -> Challenge:
        sizes = {"q": (2, m, d), "k": (2, 4, d), "v": (2, 4, 5)}
        inputs = {name: np.zeros(shape, f32) for name, shape in sizes.items()}
        return Challenge("shapes", "", attention, "forward", inputs, attention.params)

    assert not asked(3, 0).has_answer  # 0 / sqrt(0)
    assert asked(3, 1).has_answer
    assert asked(0, 1).has_answer  # an empty array


@pytest.mark.parametrize("way", ["forward", "backward"])
def test_a_query_without_keys_may_give_0_or_nan_and_no_other_query_may(way: Any) -> None:
    attention = registry.get("attention")
    (masked,) = [case for case in attention.cases() if case.parameters.get("of") == "row"]
    inputs, params = masked.build("float32")
    challenge = Challenge(
        "hard", "", attention, way, {n: inputs[n] for n in attention.takes(way) if n in inputs},
        {**attention.params, **params},
    )  # fmt: skip
    right = challenge.standard().rounded
    empty = ~inputs["keep"].any(-1)
    rows = {"y": empty, "dq": empty}
    rows |= dict.fromkeys(("dk", "dv"), np.ones(inputs["k"].shape[:-1], bool))  # of every key
    assert 0 < empty.sum() < empty.size
    right = {name: array for name, array in right.items() if name in rows}  # without lse
    nan = {name: np.where(rows[name][..., None], np.nan, a) for name, a in right.items()}
    assert challenge.fault(right) is None
    assert challenge.fault({n: a.astype(np.float32) for n, a in nan.items()}) is None
    first = attention.names(way)[0]
    assert challenge.fault({**right, first: np.full_like(right[first], np.nan)}) is not None


@pytest.mark.parametrize("row", [0.0, np.nan])
def test_a_query_whose_scores_are_all_infinite_gives_nan_or_0(row: float) -> None:
    attention, f32 = registry.get("attention"), np.float32
    q, k, v = (np.ones((2, 3, 4), f32) for _ in range(3))
    q[0, 1], v[..., 1] = -np.inf, 5.0
    challenge = Challenge(
        "special", "", attention, "forward", {"q": q, "k": k, "v": v}, attention.params
    )
    right = challenge.standard().rounded["y"]
    assert np.isnan(right[0, 1]).all()
    answer = right.copy()
    answer[0, 1] = row
    assert challenge.fault({"y": answer}) is None
    answer[1, 1] = row
    assert challenge.fault({"y": answer}) is not None


@pytest.mark.parametrize(
    ("op", "place"), [("mish", -np.inf), ("swiglu", -np.inf), ("softsign", np.inf)]
)
def test_a_product_with_an_infinity_may_be_nan_there_and_only_there(op: str, place: float) -> None:
    known = registry.get(op)
    inputs = {name: np.ones(3, np.float32) for name in known.takes("forward")}
    next(iter(inputs.values()))[...] = place, 1.0, -2.0
    challenge = Challenge("special", "", known, "forward", inputs, known.params)
    right = challenge.standard().rounded["y"]
    assert not np.isnan(right).any()
    assert challenge.fault({"y": right}) is None
    for i, wrong in enumerate((False, True, True)):
        answer = np.where(np.arange(3) == i, np.float32(np.nan), right)
        assert (challenge.fault({"y": answer}) is not None) == wrong


def test_a_gate_that_overflows_is_right_alone_and_not_in_a_product() -> None:
    a, b = (np.array([value, 1.0], np.float32) for value in (-89.0, 1e38))
    for op, inputs in (("silu", {"x": a}), ("swiglu", {"a": a, "b": b})):
        known = registry.get(op)
        challenge = Challenge("typical", "", known, "forward", inputs, known.params)
        answer = challenge.standard().rounded["y"].copy()
        answer[0] = 0.0  # a / (1 + e^-a) with an infinite exponential
        assert (challenge.fault({"y": answer}) is None) == (op == "silu")


def test_wrong_kernels_are_tried_as_long_as_time_allows() -> None:
    examination = KernelExamination(registry.get("gelu"), "forward", "float32", 5)
    challenges = examination.round(0)[:6]
    cut = examination.shown(challenges, seconds=-1.0)
    assert (cut.cut, cut.killed, cut.alive) == (True, (), ())
    assert cut.smallest["y"] > 0
    whole = KernelExamination(registry.get("gelu"), "forward", "float32", 5).shown(challenges)
    assert (whole.cut, len(whole.killed) > 3) == (False, True)


def test_a_bound_that_is_read_last_is_a_statistic_that_is_told(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    def shown(*_: Any) -> Shown:
        warnings.warn(StatisticalWarning("a program", ["y (convolution)"]), stacklevel=1)
        return Shown()

    monkeypatch.setattr(KernelExamination, "shown", shown)
    judgement = verdict_on(f"{RIGHT}/softmax.py:float64_softmax", **{**QUICK, "mutants": True})
    assert (judgement.right, judgement.widened, len(recwarn)) == (True, ("y (convolution)",), 0)


def test_rounds_go_on_while_too_little_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging.Course, "round", rounds := Mock())
    assert verdict_on(f"{RIGHT}/softmax.py:float64_softmax", **QUICK).verdict == "not_enough_shown"
    assert rounds.call_count == judging.ROUNDS


def test_rounds_end_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(judging.LEVELS, "default", judging.Level(3, 0.0, 1.0, 1e-9))
    show, kernel = Mock(), f"{RIGHT}/softmax.py:float64_softmax"
    judgement = verdict_on(kernel, seed=SEED, causes=False, progress=show)
    assert judgement.verdict == "right"
    assert 1 < show.call_count < show.call_args.args[1]  # a part of one round: enough is shown
    assert {"cut_short", "not_all_tried"} <= {*judgement.flags}


def test_a_verdict_names_what_of_its_inputs_a_kernel_declined() -> None:
    kernel = f"{RIGHT}/softmax.py:float64_softmax"
    judgement = verdict_on(kernel, **QUICK)
    assert "axis=0" in judgement.declined
    assert any(part.startswith("shapes: x (") and ", 0)" in part for part in judgement.declined)
    assert not set(judgement.declined) & set(judgement.families)


@pytest.mark.parametrize("seed", [0, 2])
def test_a_param_that_shows_in_a_case_alone_is_asked_there(seed: int) -> None:
    challenges = KernelExamination(registry.get("adamw"), "forward", "float32", seed).round(0)
    assert any(
        c.fault(c.op.plain("forward", c.inputs, {**c.params, "weight_decay": 1.01}, c.format))
        for c in challenges
        if c.params["weight_decay"] and c.family == "hard" and c.has_answer
    )


def test_an_output_that_is_not_an_array_is_not_in_lower_precision() -> None:
    (challenge,) = [challenge for challenge in drawn("layernorm") if challenge.family == "typical"]
    right = challenge.standard().rounded
    narrow = {n: formats.cast(a, formats.BINARY16).astype(a.dtype) for n, a in right.items()}
    model = precision.PrecisionModel(formats.BINARY16, "results")
    assert precision.explaining_model([(challenge, narrow)]) == model
    lists = {**narrow, "mean": (narrow["mean"],) * 2}
    assert precision.explaining_model([(challenge, lists)]) is None


def test_one_number_is_not_called_a_constant_and_an_empty_array_is_not_called_zeros() -> None:
    (challenge,) = [challenge for challenge in drawn("sum") if challenge.family == "typical"]
    for shape, decoy in (((), None), ((0,), None), ((3,), "answers_constant")):
        assert decoy_of([(challenge, {"y": np.ones(shape, np.float32)})]) == decoy


def test_every_output_is_no_narrower_than_its_inputs_and_never_left_out() -> None:
    (challenge,) = [challenge for challenge in drawn("layernorm") if challenge.family == "typical"]
    right = challenge.standard().rounded
    assert challenge.fault({"y": right["y"]}) is None
    narrow: Any = challenge.fault({**right, "mean": right["mean"].astype(np.float16)})
    lost: Any = challenge.fault({"y": right["y"]}, frozenset({"y", "rstd"}))
    assert (narrow.kind, narrow.details["output"]) == ("wrong_dtype", "mean")
    assert (lost.kind, lost.details["output"]) == ("wrong_missing", "rstd")


def test_every_reason_and_verdict_has_words_in_both_languages() -> None:
    assert words.VERDICT_WORDS["en"].keys() == words.VERDICT_WORDS["zh"].keys()
    assert words.VERDICT_WORDS["en"].keys() == {*VERDICTS, NOT_JUDGED}
    assert words.REASONS["en"].keys() == words.REASONS["zh"].keys()
    assert words.WORDS["en"].keys() == words.WORDS["zh"].keys()


def test_a_function_that_no_file_has_is_refused_in_a_sentence() -> None:
    with pytest.raises(TypeError, match=r"give FILE\.py:FUNCTION"):
        judge(lambda x: x, "gelu")
    with pytest.raises(ValueError, match="no level 'slow'"):
        judge(f"{RIGHT}/gelu.py:float64_gelu", level="slow")
    with pytest.raises(ValueError, match="no letter 'k'"):
        judge(f"{RIGHT}/softmax.py:exp2_softmax", lengths={"k": [3]}, level="quick")


def test_a_function_of_a_module_is_judged_in_its_file() -> None:
    judgement = judge(odd_kernels.twice, "gelu", level="quick", seed=SEED)
    assert (judgement.verdict, judgement.op) == ("wrong", "gelu")
    assert judge(odd_kernels.text_gelu, level="quick", seed=SEED).verdict == "wrong"


def test_the_command_prints_the_verdict_and_its_seed(tmp_path: Path) -> None:
    kernel = f"{Path(__file__).parent}/cheats/functions.py:tanh_for_erf_gelu"
    page = tmp_path / "page.md"
    options = f"--level quick --seed {SEED} --times --out {page}".split()
    command = ["judge", kernel, *options]
    result = said(*command, "--json")
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert record["verdict"] == "wrong"
    named = ("tanh_gelu", "function_for_another")  # by the case that failed first, of those in time
    assert record["cause"]["cause"] in named
    assert record["replay"].endswith(f"--seed {SEED} --level quick --times")
    assert "tanh" in page.read_text(encoding="utf-8")
    again = said(*command, "--lang", "zh")
    assert "有误" in again.output
    assert record["reasons"][0]["details"]["got"] in again.output


def test_a_sum_of_rows_in_c_is_right_for_any_number_of_axes(tmp_path: Path) -> None:
    source = """
    static void add(const float* x, float* y, long rows, long n, long left_out) {
        for (long r = 0; r < rows; r++) {
            double total = 0;
            for (long i = 0; i < n - left_out; i++) total += x[r * n + i];
            y[r] = (float)total;
        }
    }
    void sum(const float* x, float* y, long rows, long n) { add(x, y, rows, n, 0); }
    void short_sum(const float* x, float* y, long rows, long n) { add(x, y, rows, n, n > 200); }
    """
    abi = "abi=float32* x%2C float32* y[x_rows]%2C int64 x_rows%2C int64 x_last"
    library = compiled(source, tmp_path)
    both = (f"{library}:{name}@{abi}" for name in ("sum", "short_sum"))
    right, short = (verdict_on(kernel, "sum", level="quick", seed=SEED) for kernel in both)
    assert (right.verdict, right.leading_axes) == ("right", ()), right.reasons
    assert short.verdict == "wrong"
    assert short.cause is not None
    assert short.cause["cause"] == "dropped_tail"


def test_an_output_of_c_that_is_not_written_to_its_end_is_named(tmp_path: Path) -> None:
    source = """
    void half(const float* x, float* y, long n) { for (long i = 0; i < n - 1; i++) y[i] = x[i]; }
    void past(const float* x, float* y, long n) { for (long i = 0; i < n + 32; i++) y[i] = x[i]; }
    """
    library = compiled(source, tmp_path)
    abi = "abi=float32* x%2C float32* y%2C int64 n"
    both = (f"{library}:{name}@{abi}" for name in ("half", "past"))
    half, past = (verdict_on(kernel, "gelu", **QUICK) for kernel in both)
    assert "unwritten" in {reason.kind for reason in half.reasons}
    assert past.reasons[0].kind == "outside_memory"
