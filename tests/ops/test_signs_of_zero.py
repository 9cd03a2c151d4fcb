"""The sign of a zero is demanded where the definition determines it, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hunting import one_in

from refkernels import registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.judging.challenges import Drawer
from refkernels.op import Op
from refkernels.testing import assert_kernel
from refkernels.truth import Truth

ODD = (  # C99, Annex F: f(-0) = -0; x f(x) and x / f(x) for f(0) > 0
    "sqrt", "sin", "tan", "asin", "atan", "sinh", "tanh", "expm1", "log1p", "erf", "sinpi",
    "silu", "mish", "softsign", "hardswish",
)  # fmt: skip
FREE = (  # some right form adds: x / 2 + (x / 2) erf, e^x - 1
    "gelu", "gelu_tanh", "elu", "selu", "log", "acos",
)  # fmt: skip
X = np.array([-0.0, 0.0, 1.0, 0.5] * 3, np.float32)
Question = tuple[dict[str, Any], dict[str, Any]]


def with_zeros(op: Op, seed: int) -> Iterator[Question]:
    """Small cases of an op with zeros of both signs among their numbers."""
    rng, found = np.random.default_rng(seed), 0
    for case in op.cases():
        if "float32" not in case.dtypes or "forward" not in case.directions or found == 3:
            continue
        arrays, params = case.build("float32")
        inputs = {name: arrays[name] for name in op.inputs if name in arrays}
        if any(isinstance(a, list) or a.size > 2000 for a in inputs.values()):
            continue
        for name, array in inputs.items():
            if array.dtype.kind == "f":
                places = rng.choice([0, 1, 2], array.shape, p=[0.7, 0.2, 0.1])
                inputs[name] = np.choose(places, [array, np.float32(-0.0), np.float32(0.0)])
        found += 1
        yield inputs, {**op.params, **params}


def rounded(op: str, x: Any) -> Any:
    truth = Truth(registry.get(op), "forward", {"x": x}, {}, BINARY32)
    return truth.reference["y"].round(BINARY32)[0]


def signs_violated(op: Op, got: Any, question: Question) -> Any:
    """Where an answer has the wrong sign of zero, by output."""
    broken = {}
    for invariant in op.invariants:
        if invariant.name == "sign_of_zero" and invariant.output in got:
            broken[invariant.output] = invariant.violated(got[invariant.output], *question)
    return broken


@pytest.mark.parametrize("op", registry.ops().values(), ids=lambda op: op.name)
def test_no_form_is_blamed_for_its_signs_of_zero(op: Op) -> None:
    questions = one_in(3, with_zeros(op, 3))
    assert questions or op.name.startswith("clip_by")
    for question in questions:
        with np.errstate(all="ignore"):
            answers = [op.plain("forward", *question, BINARY32)]
            if op.formulas is not None:
                answers += [
                    op.formulas.computed("forward", form, *question, BINARY32, order=order)
                    for form in op.formulas.forward.forms.values()
                    for order in ("sequential", "pairwise")
                ]
        for answer in answers:
            assert not any(where.any() for where in signs_violated(op, answer, question).values())


@pytest.mark.parametrize("op", ODD)
def test_a_kernel_that_loses_the_sign_is_refused_and_told_where(op: str) -> None:
    right = rounded(op, X)
    assert np.signbit(right[0])
    assert_kernel(op, {"x": X}, right)
    with pytest.raises(AssertionError, match=r"3 of 12 elements .* IEEE 754(.|\n)*y\[0\] = 0.0"):
        assert_kernel(op, {"x": X}, np.where(X == 0, np.float32(0.0), right))


@pytest.mark.parametrize("op", FREE)
def test_the_sign_of_a_zero_that_a_form_adds_is_free(op: str) -> None:
    x = np.abs(X[2:3]) if op in ("log", "acos") else X
    right = rounded(op, x)
    assert (right == 0).any()
    for zero in (0.0, -0.0):
        assert_kernel(op, {"x": x}, np.where(right == 0, np.float32(zero), right))


def test_products_and_moved_zeros_keep_their_sign_and_sums_lose_it() -> None:
    rows = np.array([[-0.0, 3.0], [0.0, -2.0], [-0.0, -0.0]], np.float32)
    got = {"y": np.array([[0.0], [0.0], [0.0]], np.float32)}
    for name, wrong in (("prod", [True, True, False]), ("max", [False, False, True])):
        op = registry.get(name)
        where = signs_violated(op, {"y": got["y"][:, 0]}, ({"x": rows}, {**op.params, "axis": -1}))
        assert where["y"].tolist() == wrong, name
    for name in ("sum", "mean", "cumsum"):
        op = registry.get(name)
        for zero in (0.0, -0.0):
            y = np.full(rows.shape if name == "cumsum" else 3, zero, np.float32)
            where = signs_violated(op, {"y": y}, ({"x": rows}, {**op.params, "axis": -1}))
            assert not where["y"].any()
    table, dropout = registry.get("embedding"), registry.get("dropout")
    inputs = {"weight": rows, "indices": np.array([2, 0])}
    moved = np.array([[0.0, -0.0], [-0.0, 3.0]], np.float32)
    where = signs_violated(table, {"y": moved}, (inputs, table.params))
    assert where["y"].tolist() == [[True, False], [False, False]]
    kept = {"x": rows, "mask": np.array([[True, True], [False, True], [False, True]])}
    for zero in (0.0, -0.0):  # what is dropped may be 0 or x times 0
        y = np.array([[-0.0, 6.0], [zero, -4.0], [zero, -0.0]], np.float32)
        assert not signs_violated(dropout, {"y": y}, (kept, dropout.params))["y"].any()


def test_the_quick_judge_asks_for_minus_zero() -> None:
    """Of every function, in the first round."""
    for op in ("sin", "hardswish", "gelu"):
        for seed in range(8):
            rng = np.random.default_rng(seed)
            challenges = list(Drawer(registry.get(op), "forward", "float32").round(rng, 0))
            special = [c.inputs["x"] for c in challenges if c.family == "special"]
            assert special
            assert any(np.any((x == 0) & np.signbit(x)) for x in special), (op, seed)
