"""explain on every op that is a formula: no form is blamed, every fault is named."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from formula_suite import OPS, QUESTIONS, READ, first, questions
from hunting import HUNT, one_in, one_way
from once import bits, once

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.explain import explain_kernel, one_kernel
from refkernels.diagnosis.fit import fit_to_truth
from refkernels.metrology import outputs
from refkernels.op import Direction
from refkernels.ops.formulas import Formulas

EVERY_FORM = ("softmax", "rms_norm")
READINGS = ("evaluate", "form_bounds", "condition", "computed", "certified", "bounded")
KEPT: dict[str, dict[Any, Any]] = {}


@pytest.fixture(autouse=True)
def _formulas_answer_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault of an op is explained by trying all of them on the same arrays: what these answer
    is kept until the next op."""
    name = request.node.callspec.params["name"]
    if name not in KEPT:
        KEPT.clear()
    kept = KEPT.setdefault(name, {})
    for reading in READINGS:
        monkeypatch.setattr(Formulas, reading, once(getattr(Formulas, reading), kept, _question))
    monkeypatch.setattr(outputs, "ask", once(outputs.ask, kept, _question))


def _question(arguments: tuple[Any, ...]) -> Any:
    """Of an op's formulas, or of an op."""
    return arguments[0].name, bits(arguments[1:])


@pytest.mark.parametrize(("name", "direction"), one_way(READ))
def test_no_form_is_blamed(name: str, direction: Direction) -> None:
    """With the sums of a model that explain knows, and with others. Formats, forms and orders take
    turns on one question of one pass, an explanation takes a second; those of two ops are all
    asked. Kernels of every op: tests/diagnosis/test_evidence.py."""
    op, turn, count = OPS[name], [*OPS].index(name), 0
    assert op.definition is not None
    forms = list(op.definition.of(direction).forms.values())
    chosen = range(QUESTIONS // 2) if HUNT > 1 else (turn % QUESTIONS,)
    cases = list(questions(name, direction, 10))
    for number, (dtype, inputs, _) in enumerate((cases[k] for k in chosen), turn):
        every = itertools.product(forms, ("pairwise", "random"))
        one = [(forms[number % len(forms)], ("pairwise", "random")[number // len(forms) % 2])]
        answers = set()
        for formula, order in every if name in EVERY_FORM else one:
            count += 1
            answer = op.definition.computed(direction, formula, inputs, {}, dtype, order=order)
            bits = b"".join(array.tobytes() for array in answer.values())
            if bits in answers:
                continue
            answers.add(bits)
            problem, got = one_kernel(name, inputs, answer, None, direction)
            explanation = explain_kernel(problem, got)
            exact = {key: np.asarray(problem.truth.reference[key]) for key in got}
            left = [~np.isfinite(to_float64(y)) & np.isfinite(exact[key]) for key, y in got.items()]
            overflows = any(array.any() for array in left)
            allowed = ("rounding", "correctly_rounded", "ill_conditioned")
            allowed += ("range_limited",) * overflows
            assert explanation.verdict in allowed
            assert explanation.cause in (None, "summation_order"), explanation.cause
    assert count >= len(chosen)


BOTH_WAYS = HUNT > 1
# No case has so many classes that it shows: tests/loss_ref/test_differentiated_maximum.py.
ELSEWHERE = ("maximum_differentiated", "padding_as_same")  # no case of conv1d shows that one
PLANTED = [  # forward where it shows there, unless both ways are asked for
    (name, direction, number)
    for name, direction in READ
    for number, fault in enumerate(OPS[name].definition.faults)
    if getattr(fault, direction) is not None
    and fault.cause not in ELSEWHERE
    and (BOTH_WAYS or direction == "forward" or fault.forward is None)
]


def cause(planted: tuple[str, Direction, int]) -> str:
    name, _, number = planted
    return OPS[name].definition.faults[number].cause


FAULTS = one_in(len(PLANTED), PLANTED, cause)  # each on one op; `make all-tests` tries all


@pytest.mark.parametrize(
    ("name", "direction", "number"),
    FAULTS,
    ids=[f"{fault[0]}-{fault[1]}-{cause(fault)}" for fault in FAULTS],
)
def test_every_fault_is_named(name: str, direction: Direction, number: int) -> None:
    """On the first case where it is named, in other formats if not in float32: it is the cause, or
    may be the reason of a factor, or is one of several that fit where none is proven; and no other
    than a part of it was proven before."""
    op = OPS[name]
    assert op.definition is not None
    fault = op.definition.faults[number]
    usual = sorted(op.cases(), key=lambda case: case.build("float32")[1] not in ({}, op.params))
    for dtype, case in itertools.product(("float32", "bfloat16", "float64"), usual):
        if dtype in fault.right_in or dtype not in case.dtypes or direction not in case.directions:
            continue
        arrays, params = case.build(dtype)
        inputs = {key: arrays[key] for key in op.takes(direction) if key in arrays}
        if sum(array.size for array in inputs.values()) > 20_000:
            continue
        how = (direction, getattr(fault, direction), inputs, params, dtype)
        outputs = op.definition.computed(*how, order="pairwise")
        right = op.definition.computed(direction, first(op, direction), *how[2:], order="pairwise")
        if all(outputs[key].tobytes() == right[key].tobytes() for key in outputs):
            continue  # it is not there
        outputs = {**right, **fault.changed(outputs)}
        problem, answer = one_kernel(name, inputs, outputs, params, direction)
        if all(_ordinary(problem, output, got) for output, got in answer.items()):
            continue  # it does not show
        explanation = explain_kernel(problem, answer)
        evidence = explanation.candidates[0].evidence
        reasons = evidence.survivors if explanation.cause == "scale_factor" and evidence else ()
        fit = [c.cause for c in explanation.candidates if c.confidence == "consistent"]
        fit = fit if explanation.confidence == "consistent" else []
        if fault.cause in (explanation.cause, *reasons, *fit):
            return
        parts = {part for item in (fault.details or {}).items() for part in item}
        assert explanation.confidence != "proven" or explanation.cause in parts
    pytest.fail(f"{fault.cause} is named nowhere")


def _ordinary(problem: Any, output: str, got: Any) -> bool:
    fit = fit_to_truth(problem, output, got)
    assert fit is not None
    return fit.ordinary
