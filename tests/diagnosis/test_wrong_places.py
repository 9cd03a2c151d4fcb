"""An explanation says which elements are wrong, whatever the cause."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunting import one_in
from numpy_kernels import softmax
from planting import named

from refkernels import explain, registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.reporting.answer.sentences import summary
from refkernels.truth import Truth


def right(name: str) -> tuple[dict[str, Any], dict[str, Any], str, Any]:
    """Inputs, params, an output's name and its correctly rounded numbers, of a small case."""
    op = registry.get(name)
    for case in op.cases():
        arrays, params = case.build("float32")
        inputs = {key: arrays[key] for key in op.inputs if key in arrays}
        if "float32" not in case.dtypes or sum(a.size for a in inputs.values()) > 20_000:
            continue
        truth = Truth(op, "forward", inputs, {**op.params, **params}, BINARY32)
        for output, exact in truth.reference.items():
            got = exact.round(BINARY32)[0]
            if got.size > 15 and np.isfinite([got, truth.bound()[output]]).all():
                return inputs, params, output, got
    pytest.skip("no case with many finite elements")


@pytest.mark.parametrize("name", one_in(6, registry.ops()))
def test_one_wrong_element_is_named_by_its_index(name: str) -> None:
    inputs, params, output, got = right(name)
    place = np.unravel_index(got.size // 3, got.shape)
    got[place] = np.float32(3.0) * got[place] + np.float32(100.0)
    explanation = explain(name, inputs, {output: got}, params)
    index = [int(i) for i in place]
    wrong = explanation.evidence["outputs"][output]["wrong"]
    assert (wrong["elements"], wrong["of"], wrong["first"]) == (1, got.size, [index])
    told = f"{output}[{', '.join(map(str, index))}]"
    assert f"only {told} is wrong, of {got.size:,} elements" in explanation.summary
    assert f"只有 {told} 错误" in summary(explanation.to_dict(), "zh")


def test_one_element_of_1961_off_by_a_thousandth_is_named() -> None:
    x = np.random.default_rng(0).standard_normal((37, 53)).astype(np.float32)
    y = Truth(registry.get("softmax"), "forward", {"x": x}, {"axis": -1}, BINARY32)
    got = y.reference["y"].round(BINARY32)[0]
    got[3, 5] *= np.float32(1.001)
    assert "only y[3, 5] is wrong, of 1,961 elements" in explain("softmax", {"x": x}, got).summary


@pytest.mark.parametrize(
    ("index", "told"),
    [
        (np.s_[3, 8:16], "8 of 1,961 elements are wrong, all of y[3, 8:16]"),
        (np.s_[3:5], "106 of 1,961 elements are wrong, all of y[3:5, 0:53]"),
        (np.s_[3, 8:16:3], "all within y[3, 8:15], the first of them y[3, 8], y[3, 11], y[3, 14]"),
        (np.s_[::12, ::13], "the first of them y[0, 0], y[0, 13], y[0, 26]"),
    ],
)
def test_a_slice_of_wrong_elements_is_named(index: Any, told: str) -> None:
    x = np.random.default_rng(0).standard_normal((37, 53)).astype(np.float32)
    y = np.tanh(x.astype(np.float64)).astype(np.float32)
    y[index] = 0.5 * y[index] + np.float32(0.1)
    assert told in explain("tanh", {"x": x}, y).summary


def test_where_every_element_is_wrong_the_sentence_is_as_short_as_before() -> None:
    x = np.linspace(0.5, 2.0, 20, dtype=np.float32)
    explanation = explain("exp", {"x": x}, np.exp(x) + np.float32(1.0))
    assert explanation.evidence["outputs"]["y"]["wrong"]["elements"] == 20
    assert "elements are wrong" not in explanation.summary


Array = npt.NDArray[Any]


def stopped_at(row: int, rows: int = 64) -> tuple[Array, Array]:
    """x with a row that is masked as a whole, and a softmax that leaves what it had before from
    there on."""
    rng = np.random.default_rng(row)
    x, before = rng.standard_normal((2, rows, 12)).astype(np.float32)
    x[row] = -np.inf
    with np.errstate(invalid="ignore"):
        y = softmax(x)
    y[row:] = softmax(before)[row:]
    return x, y


@pytest.mark.parametrize("left", ["stale", "zeros"])
def test_the_rows_after_a_masked_one_are_unwritten(left: str) -> None:
    x, y = stopped_at(37)
    if left == "zeros":
        y[37:] = 0
    explanation = explain("softmax", {"x": x}, {"y": y})
    assert (explanation.cause, explanation.confidence) == ("stopped_early", "proven")
    assert explanation.candidates[0].details == {"first": 37, "rows": 64}
    assert "writes nothing from row 37 on, of 64" in explanation.summary


@pytest.mark.parametrize(("row", "rows"), [(5, 12), (60, 64)])
def test_few_rows_cannot_tell(row: int, rows: int) -> None:
    x, y = stopped_at(row, rows)
    assert named("softmax", {"x": x}, {"y": y})[:2] == ("stopped_early", "consistent")


def test_rows_that_grow_are_not_unwritten() -> None:
    """Without subtracting the maximum, all rows from one on overflow; one of them is masked."""
    rng = np.random.default_rng(2)
    x = (rng.standard_normal((64, 12)) + 3 * np.arange(64)[:, None]).astype(np.float32)
    with np.errstate(all="ignore"):
        y = np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
    assert np.isnan(y[40]).all()
    assert explain("softmax", {"x": x}, {"y": y}).cause != "stopped_early"


@pytest.mark.parametrize("computed", [False, True])
def test_without_a_reason_to_stop_it_is_not_proven(computed: bool) -> None:
    """Nor of NaNs, which what leaves the format's range gives."""
    x, y = stopped_at(37)
    x[37], y[37:] = x[36 + computed], np.nan if computed else y[37:]
    assert explain("softmax", {"x": x}, {"y": y}).cause != "stopped_early"


def test_unwritten_rows_may_hold_what_an_earlier_call_left_rightly() -> None:
    x, y = stopped_at(37)
    y[45:50] = softmax(x)[45:50]  # 22 of the last 27 rows are wrong, and no other
    told = {"first": 37, "rows": 64}
    assert named("softmax", {"x": x}, {"y": y}) == ("stopped_early", "matched", told)
