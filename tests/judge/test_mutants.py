"""Wrong kernels that the inputs of a judge refuse, and those that no inputs can refuse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hunting import one_in, seed_of

from refkernels import registry
from refkernels.judging import mutants
from refkernels.judging.examination import KernelExamination
from refkernels.judging.judgement import Judgement
from refkernels.op import DTYPES, Direction
from refkernels.ops.formula import Fault
from refkernels.reporting.judging.views import lines

RIGHT_SOMEWHERE = [
    (op, fault)
    for op in registry.ops()
    if (definition := registry.get(op).definition) is not None
    for fault in definition.faults
    if fault.right_in
]


def refusing(op: str, fault: Fault, dtype: str, number: int = 0) -> Iterator[str]:
    """The families whose challenges of a round refuse the wrong formula."""
    formula = fault.forward
    for challenge in KernelExamination(registry.get(op), "forward", dtype, 1).round(number):
        if (challenge.plain or challenge.family == "hard") and challenge.has_answer:
            with np.errstate(all="ignore"):
                if challenge.fault(mutants._computed(challenge, formula)):
                    yield challenge.family


@pytest.mark.parametrize(
    ("op", "fault"), RIGHT_SOMEWHERE, ids=[f"{op}-{fault.cause}" for op, fault in RIGHT_SOMEWHERE]
)
def test_a_fault_is_hidden_where_a_right_form_may_do_it_and_shown_elsewhere(
    op: str, fault: Fault
) -> None:
    for dtype in one_in(2, DTYPES, fault.right_in.__contains__):
        assert any(refusing(op, fault, dtype)) is (dtype not in fault.right_in), dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hidden_mutants_are_named_and_not_counted(dtype: str) -> None:
    examination = KernelExamination(registry.get("dropout"), "forward", dtype, 5)
    shown = examination.shown(examination.round(0))
    hidden = dtype == "float32"
    assert shown.hidden == (("float32_scale",) if hidden else ())
    assert ("float32_scale" in shown.killed) is not hidden
    assert shown.alive == ()
    known = "k.py:dropout", "dropout", "forward", dtype, "right"
    said = "\n".join(lines(Judgement(*known, 5, "quick", hidden=shown.hidden).to_dict(), ""))
    assert ("a right kernel may do it in float32: float32_scale" in said) is hidden


QUESTIONS = [(name, way) for name, op in registry.ops().items() for way in op.directions]
REFUSING = [("clip_by_norm", "forward"), ("dropout", "forward"), ("max", "backward")]


@pytest.mark.parametrize(("name", "direction"), dict.fromkeys([*REFUSING, *one_in(48, QUESTIONS)]))
def test_no_mutant_raises(name: str, direction: Direction) -> None:
    """Norm_type 2.02 and p = 1.008 are refused; no number is the largest of an empty tile."""
    op = registry.get(name)
    examination = KernelExamination(op, direction, "float32", seed_of(7))
    with np.errstate(all="ignore"):
        asked = [c for c in examination.round(0) if c.plain or c.family == "hard"]
        tried = one_in(4, (c for c in asked if c.has_answer), lambda c: c.family)
        assert examination.shown(tried, 2.0).killed


def test_an_edit_that_computes_the_same_is_no_mutant() -> None:
    examination = KernelExamination(registry.get("clip_by_global_norm"), "forward", "float32", 5)
    shown = examination.shown(examination.round(0))
    assert shown.alive == ()
    assert len(shown.killed) > 10
