"""What rules out the verdict "same": ops beyond their bounds, whatever the curves; a p-value beside
null runs that do not round as the runs do."""

import dataclasses
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from refkernels import registry
from refkernels.alignment import comparison
from refkernels.alignment.comparison import _compared_arrays, _Comparison, _resolved, coarse_places
from refkernels.alignment.local import LocalJudgement, LocalTruth
from refkernels.alignment.matching import Matched
from refkernels.alignment.noise import Noise, compared, representative
from refkernels.alignment.question import Place
from refkernels.alignment.run import Run
from refkernels.alignment.traced import CallComparison
from refkernels.alignment.verdict import decide
from refkernels.reporting.alignment import page
from refkernels.training import curves


def judged(
    op: str = "linear", plain: float = 0.5, bias: float = 0.0, n: int = 4096
) -> LocalJudgement:
    return LocalJudgement(
        Place(0, "forward", op, 0), op, "forward", op, "y", "rounding", False, 0.1, plain, n, op,
        bias,
    )  # fmt: skip


CURVE = curves.CurveTest(1.0, 0, 0.6, 1 / 210, 19, 40, False, 0.5, None, None, None)
RIGHT, NONE = judged("softmax"), (None, None)


def test_an_op_beyond_its_bound_rules_out_the_verdict_same() -> None:
    beyond = dataclasses.replace(RIGHT, verdict="exceeds_bound", over_bound=3.0)
    narrow = dataclasses.replace(beyond, cause="tf32_inputs", confidence="proven")
    small = dataclasses.replace(beyond, cause="clipped_exponent", confidence="proven")
    small = dataclasses.replace(small, negligible=True)
    pair = Matched({"softmax": "softmax"}, {}, (), ())
    right = LocalTruth((RIGHT,), (), ())
    assert decide((), (right, right), NONE, pair, CURVE).word == "same"
    for judgement in (beyond, narrow, small):
        verdict = decide((), (right, LocalTruth((judgement,), (), ())), NONE, pair, CURVE)
        assert verdict.word == "undecidable"
        assert [reason.word for reason in verdict.reasons] == ["beyond"]
    both, calls = [LocalTruth((narrow,), (), ())] * 2, CallComparison(0, (), True, ())
    assert decide((), (both[0], both[1]), NONE, pair, None, traced=calls).word == "same"
    assert decide((), (right, both[0]), NONE, pair, None, traced=calls).word == "undecidable"


@pytest.mark.parametrize("name", [name for name, op in registry.ops().items() if op.definition])
def test_an_unstable_algorithm_is_not_another_definition(name: str) -> None:
    definition = registry.get(name).definition
    assert definition is not None
    wrong = dataclasses.replace(RIGHT, op=name, verdict="exceeds_bound", confidence="proven")
    unstable = [fault.cause for fault in definition.faults if fault.unstable]
    for cause in ("sums_by_groups_rounded", *unstable):  # which is in 16 bits
        assert not dataclasses.replace(wrong, cause=cause, gross=True).redefined
    assert dataclasses.replace(wrong, cause="another_function").redefined


def test_a_layer_computed_in_a_narrower_format_is_not_where_two_definitions_part() -> None:
    """float64 values that float32 statistics made: they agree in half of float32's digits."""
    close = 2.0**-26.5
    pairs = [
        _Comparison("forward", "first", "outputs", 1e-7, None, close),
        _Comparison("forward", "norm", "outputs", 1e-7, None, close),
        _Comparison("backward", "first", "cotangents", 1e-5, None, close),
    ]
    norm = dataclasses.replace(
        RIGHT, place=Place(0, "forward", "ln"), op="layernorm", verdict="exceeds_bound",
        over_bound=9.0, apart=4.0**-12, cause="float32_statistics", confidence="proven",
    )  # fmt: skip
    guessed = dataclasses.replace(norm, confidence="consistent")
    pair = Matched({"norm": "ln"}, {}, (), ())
    local = [LocalTruth((judgement,), (), ()) for judgement in (RIGHT, norm)]
    coarse = coarse_places(local, pair)
    assert coarse == {(0, "forward", "norm"): 4.0**-12}
    assert coarse_places([LocalTruth((guessed,), (), ())], pair) == {}
    resolved = [pair.digits for pair in _resolved(pairs, 0, coarse)]
    assert resolved == [close, 2.0**-12, 2.0**-12]
    assert [pair.digits for pair in _resolved(pairs, 1, coarse)] == [close] * 3


def test_what_is_beside_a_mask_is_compared_and_masks_are_not() -> None:
    x = np.random.default_rng(2).standard_normal((3, 40))
    small, least = (np.where(x > 0.5, mask, 0.0) for mask in (-1e4, -np.inf))
    large = np.where(x > 1.5, -1e4 * x, x)  # is no mask: roundings beside it do not show
    same = (x + small, x + least), (large, large + 1e-5 * x[::-1]), (small - 1e4, 1.0 - 1e4 + small)
    for a, b in (*same, (x + small, 1.5 * x + least), (x + least, x), (x + small, x)):
        (pair,) = _compared_arrays("forward", "soft", "inputs", {"0": a}, {"0": b})
        assert pair.apart < 1e-3 or pair.apart > 0.3
        assert (pair.apart > 0.3) == all(b is not other for _, other in same)


@pytest.mark.parametrize("ids", [False, True])
def test_the_last_layer_that_agrees_is_told(ids: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for ids, which a layer may be told otherwise if its outputs agree."""
    of_norm = ("ids", "inputs") if ids else ("inputs",)
    forms = [("o", "ids", 0.4), ("o", "outputs", 0.0), *(("norm", what, 0.4) for what in of_norm)]
    pairs = [_Comparison("forward", *form, None, 1e-3) for form in forms]
    monkeypatch.setattr(comparison, "_comparisons", lambda *_: pairs)
    run, line = SimpleNamespace(first=None), SimpleNamespace(step=0)
    found = comparison._departure(run, run, (), Matched({}, {}, (), ()), line, line, {})
    told = page.suspect(dataclasses.asdict(found), page.words_of("en"))
    assert told.endswith("everything before it agrees" + ", up to the output of `o`" * (not ids))
    assert ("the input of `norm`, whole numbers, in B differs from A's by 0.4" in told) == ids


def test_runs_that_round_alike_leave_p_as_it_is() -> None:
    assert compared([[judged()], [judged()]], [[judged()]] * 2) == Noise(1.0, "linear (forward, y)")
    assert compared([[judged(plain=0.2)]], [[judged()]]).wider == 1.0


def test_smaller_null_errors_are_widened_and_much_smaller_ones_make_p_invalid() -> None:
    noise = compared([[judged()], [judged(plain=0.75)]], [[judged()]] * 2)
    assert (noise.wider, noise.invalid) == (1.5, "")
    assert compared([[judged(plain=2.1)]], [[judged()]]).invalid == "linear (forward, y)"
    assert compared([[judged()]], [[judged(plain=0.0)]]).invalid


def test_layers_of_one_op_are_taken_together() -> None:
    many = [judged(plain=0.3, n=300), judged(plain=0.4, n=300)]
    noise = compared([many], [[judged(plain=0.1)]])
    assert noise.wider == pytest.approx(np.sqrt((0.09 + 0.16) / 2) / 0.1)
    leaning = [judged(bias=3.0, n=100) for _ in range(4)]  # 6 standard deviations in all
    assert compared([leaning], [[judged()]]).invalid == "linear (forward, y)"
    assert not compared([leaning], [leaning]).invalid  # the null runs lean too
    assert not compared([leaning[:1]], [[judged()]]).invalid


def test_errors_beyond_rounding_and_too_few_errors_decide_nothing() -> None:
    wrong = dataclasses.replace(judged(plain=900.0), verdict="exceeds_bound")
    assert not compared([[wrong], [judged()]], [[judged()]] * 2).invalid
    assert not compared([[judged()]], [[judged("softmax")]]).known
    assert not compared([[judged(n=1, plain=50.0)]], [[judged()]]).known


def test_each_run_is_compared_with_null_runs_of_its_own_framework() -> None:
    leaning = [judged(bias=3.0, n=100) for _ in range(4)]
    assert compared([[judged()], leaning], [[judged()], leaning]).invalid == ""
    assert compared([leaning, [judged()]], [[judged()], leaning]).invalid == "linear (forward, y)"

    def null(framework: str, steps: tuple[int, ...]) -> Run:
        return cast("Run", SimpleNamespace(first=SimpleNamespace(framework=framework, steps=steps)))

    torch, silent, paddle = null("torch", (0,)), null("paddle", ()), null("paddle", (0,))
    assert representative("paddle", [torch, silent, paddle]) is paddle
    assert representative("torch", [torch, silent, paddle]) is torch
    assert representative("torch", [torch, *[paddle] * 3]) is None  # too few to speak for it
    assert representative("paddle", [torch, silent]) is None


def test_an_invalid_p_decides_nothing() -> None:
    local = LocalTruth((judged(),), (), (), True)
    runs = np.tile(np.linspace(3.0, 1.0, 10), (21, 1))
    curve = curves.of_pair(runs[0], runs[1], runs[2:])
    assert (curve.statistic, curve.p) == (0.0, 1.0)  # equal curves are no evidence
    for noise, word in ((None, "same"), (Noise(), "same"), (Noise(invalid="gelu"), "undecidable")):
        verdict = decide((), (local, local), NONE, Matched({}, {}, (), ()), curve, None, noise)
        assert verdict.word == word
    assert [reason.word for reason in verdict.reasons] == ["noise"]


@pytest.mark.parametrize("noisier", [1.5, 4.0])
def test_wider_null_runs_keep_the_rates_of_noisier_candidates(noisier: float) -> None:
    """Of Student's p, and of being the farthest of all; which noise alone raises."""
    rng = np.random.default_rng(8)
    base, rates = np.linspace(6.0, 3.0, 40), {1.0: [], noisier: []}
    for _ in range(300):
        noise = np.cumsum(rng.standard_normal((21, 40)), axis=1) * 1e-4
        noise[:2] *= noisier
        runs = base + noise
        for wider, verdicts in rates.items():
            test = curves.of_pair(runs[0], runs[1], runs[2:], wider=wider)
            assert test.p_normal is not None
            verdicts.append((test.p_normal < 0.05, test.extreme))
    plain, widened = (np.mean(verdicts, axis=0) for verdicts in rates.values())
    levels = np.array([0.05, 2 / 21])
    # Five standard deviations of 300 experiments.
    assert (widened < levels + 5 * np.sqrt(levels * (1 - levels) / 300)).all()
    assert plain[1] > 2 * widened[1]
    assert plain[0] > widened[0]
