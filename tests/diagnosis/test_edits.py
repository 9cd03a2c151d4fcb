"""Edits of an op's program: their words, their identity, and what they do not prove."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hunting import HUNT
from numpy_kernels import normal, softmax

import refkernels
from refkernels import registry
from refkernels.contexts.graph import Node
from refkernels.diagnosis.edits import names, rules
from refkernels.diagnosis.edits.blocks import in_one_block
from refkernels.diagnosis.edits.catalogue import KeyOf
from refkernels.diagnosis.edits.findings import told
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.edits.solved import KINDS
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.ranking import _shared_details
from refkernels.reporting.words.causes import CAUSES


def explained(op: Any, inputs: Any, y: Any, params: Any = None, direction: Any = "forward") -> Any:
    outputs = {name: np.asarray(array).astype(np.float32) for name, array in y.items()}
    return refkernels.explain(op, inputs, outputs, params, direction)


@pytest.mark.parametrize("limit", [0.0, -0.5])
@pytest.mark.parametrize("op", ["softmax", "sum"])
def test_the_interval_of_a_limit_holds_it_whatever_float32_rounds(op: str, limit: float) -> None:
    """All elements of a row share the rounding of its sum, so they are off together."""
    for seed in range(HUNT):
        x = normal(16, 64, seed=seed)
        floored = np.maximum(x, np.float32(limit))
        y = softmax(floored) if op == "softmax" else floored.sum(-1)
        best = explained(op, {"x": x}, {"y": y}).candidates[0]
        assert (best.cause, best.confidence, best.details["value"]) == ("floored", "proven", limit)
        assert best.details["interval"][0] <= limit <= best.details["interval"][1]


def test_what_the_data_cannot_tell_apart_is_not_proven() -> None:
    """All cotangents are 0 in the first row's place: any edit that leaves 0 fits as well."""
    x, dy, target = normal(12, 9), normal(12, seed=3), np.arange(12) % 9
    dy[0] = 0.0
    inputs, none = {"dloss": dy, "x": x, "target": target}, {"reduction": "none"}
    found = explained("cross_entropy", inputs, {"dx": np.zeros((12, 9))}, none, "backward")
    assert found.confidence != "proven" or found.cause == "unwritten_elements"


def test_the_axis_of_a_formula_is_told_as_the_user_s() -> None:
    assert names.axis_of((2, 3, 40), (4, 3, 8, 5), -1) == 2  # rows are cut, an axis is split
    assert names.axis_of((1, 4, 9, 9), (49, 2, 2, 9), 1) == "1: (49, 2, 2, 9)"  # of patches


def test_every_edit_has_words() -> None:
    assert {kind for kind, _, _ in rules.RULES} | set(KINDS) | names.causes() <= set(CAUSES)


def test_second_edits_that_differ_are_told_by_the_first_of_them() -> None:
    members = [{"with": "eps_differs", "with_details": {"eps": eps}} for eps in (1.0, 2.0)]
    assert _shared_details(members[0], members) == members[0]


def test_what_is_not_zero_is_no_block() -> None:
    x = np.where(np.arange(96) < 64, np.float32(1), np.float32(-4)) + normal(16, 96) / 4
    y = x * np.clip(x + 3, 0, 6) / 6 * (1 + np.cos(np.arange(96)) / 8)
    asked = one_kernel("hardswish", {"x": x}, {"y": y.astype(np.float32)})
    assert (list(in_one_block(*asked)), asked[0].read["edits"]) == ([], 0)


def test_an_output_of_one_number_throughout_has_no_edit() -> None:
    """The first gradient for all would do, and so would a thousand other edits."""
    x = np.abs(normal(60)) + np.float32(0.2)
    found = explained("clip_by_value", {"grads": x}, {"clipped": x * 0 + 0.05}, {"max_value": 0.1})
    assert found.confidence != "proven" or found.cause in ("param_differs", "scale_factor")


def test_the_key_of_an_edit_s_own_nodes_reads_each_once() -> None:
    node = Node("input", (), "x", (3,))
    for _ in range(200):
        node = Node("multiply", (node, node), None, (3,))
    assert KeyOf({}.__getitem__).of_node(node) == KeyOf({}.__getitem__).of_node(node)


@pytest.mark.parametrize("way", ["softmax", "attention", "selu", "adafactor", "batch_norm welford"])
def test_every_edit_is_found_again_in_another_graph_of_its_formula(way: str) -> None:
    """Each has an identity of its own, and words."""
    op, _, form = way.partition(" ")
    arrays, params = next(iter(registry.get(op).cases())).build("float32")
    inputs = {name: arrays[name] for name in registry.get(op).takes("forward") if name in arrays}
    outputs = registry.get(op).plain("forward", inputs, params, "float32")
    problem = one_kernel(op, inputs, outputs, params)[0]
    ours, theirs = (Screen(problem, outputs, form) for _ in (1, 2))
    edits = rules.edits_of(ours.program)
    known = {(edit.identity(ours.program), edit.number) for edit in edits}
    assert len(known) == len(edits) > 20
    assert all(told(edit, ours)[0] for edit in edits)
    shared = [edit for edit in edits if edit.number or (edit.identity(ours.program), 1) in known]
    for edit in (*shared, *edits[::19]):
        found = ours.predicted(edit.changes)
        again = theirs.predicted(rules.again(edit, ours.program, theirs.program.graph))
        for name in found or {}:
            assert again is not None
            assert np.array_equal(found[name], again[name], equal_nan=True)
