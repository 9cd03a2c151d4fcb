"""Runs whose ops exceed their bounds are not called the same, whatever their curves."""

import dataclasses

import pytest

from refkernels import registry
from refkernels.alignment.curves import CurveTest
from refkernels.alignment.local import Judgement, LocalTruth
from refkernels.alignment.matching import Matched
from refkernels.alignment.question import Place
from refkernels.alignment.verdict import decide

CURVE = CurveTest(1.0, 0, 0.6, 1 / 210, 19, 40, False, 0.5, None, None, None)
RIGHT = Judgement(
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
