"""Runs whose ops exceed their bounds are not called the same, whatever their curves."""

import dataclasses

import pytest

from refkernels import registry
from refkernels.alignment.comparison import _Comparison, _resolved, coarse_places
from refkernels.alignment.curves import CurveTest
from refkernels.alignment.local import LocalJudgement, LocalTruth
from refkernels.alignment.matching import Matched
from refkernels.alignment.question import Place
from refkernels.alignment.verdict import decide

CURVE = CurveTest(1.0, 0, 0.6, 1 / 210, 19, 40, False, 0.5, None, None, None)
RIGHT = LocalJudgement(
    Place(0, "forward", "soft"), "softmax", "forward", "Softmax", "y", "rounding", False, 0.1, 1.0,
    9, "soft",
)  # fmt: skip
NONE = (None, None)


def test_an_op_beyond_its_bound_rules_out_the_verdict_same() -> None:
    beyond = dataclasses.replace(RIGHT, verdict="exceeds_bound", over_bound=3.0)
    narrow = dataclasses.replace(beyond, cause="tf32_inputs", confidence="proven")
    small = dataclasses.replace(beyond, cause="clipped_exponent", confidence="proven")
    small = dataclasses.replace(small, negligible=True)
    pair = Matched({"soft": "soft"}, {}, (), ())
    right = LocalTruth((RIGHT,), (), ())
    assert decide((), (right, right), NONE, pair, CURVE).word == "same"
    for judgement in (beyond, narrow, small):
        verdict = decide((), (right, LocalTruth((judgement,), (), ())), NONE, pair, CURVE)
        assert verdict.word == "undecidable"
        assert [reason.word for reason in verdict.reasons] == ["beyond"]


@pytest.mark.parametrize("name", [name for name, op in registry.ops().items() if op.definition])
def test_an_unstable_algorithm_is_not_another_definition(name: str) -> None:
    definition = registry.get(name).definition
    assert definition is not None
    wrong = dataclasses.replace(RIGHT, op=name, verdict="exceeds_bound", confidence="proven")
    for fault in definition.faults:
        if fault.unstable:
            assert not dataclasses.replace(wrong, cause=fault.cause, gross=True).redefined
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
