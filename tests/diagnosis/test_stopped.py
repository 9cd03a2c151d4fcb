"""A kernel that stops at a row and leaves the others unwritten is named, with the row."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import refkernels

Array = npt.NDArray[Any]


def softmax(x: Array) -> Array:
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        result: Array = e / e.sum(axis=-1, keepdims=True)
    return result


def stopped_at(row: int, rows: int = 64) -> tuple[Array, Array]:
    """x with a row that is masked as a whole, and a softmax that leaves what it had before from
    there on."""
    rng = np.random.default_rng(row)
    x, before = rng.standard_normal((2, rows, 12)).astype(np.float32)
    x[row] = -np.inf
    y = softmax(x)
    y[row:] = softmax(before)[row:]
    return x, y


@pytest.mark.parametrize("left", ["stale", "zeros"])
def test_the_rows_after_a_masked_one_are_unwritten(left: str) -> None:
    x, y = stopped_at(37)
    if left == "zeros":
        y[37:] = 0
    explanation = refkernels.explain("softmax", {"x": x}, {"y": y})
    assert (explanation.cause, explanation.confidence) == ("stopped_early", "proven")
    assert explanation.candidates[0].details == {"first": 37, "rows": 64}
    assert "writes nothing from row 37 on, of 64" in explanation.summary


@pytest.mark.parametrize(("row", "rows"), [(5, 12), (60, 64)])
def test_few_rows_cannot_tell(row: int, rows: int) -> None:
    x, y = stopped_at(row, rows)
    explanation = refkernels.explain("softmax", {"x": x}, {"y": y})
    assert (explanation.cause, explanation.confidence) == ("stopped_early", "consistent")


def test_rows_that_grow_are_not_unwritten() -> None:
    """Without subtracting the maximum, all rows from one on overflow; one of them is masked."""
    rng = np.random.default_rng(2)
    x = (rng.standard_normal((64, 12)) + 3 * np.arange(64)[:, None]).astype(np.float32)
    with np.errstate(all="ignore"):
        y = np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
    assert np.isnan(y[40]).all()
    explanation = refkernels.explain("softmax", {"x": x}, {"y": y})
    assert explanation.cause != "stopped_early"


def test_without_a_reason_to_stop_it_is_not_proven() -> None:
    x, y = stopped_at(37)
    x[37] = x[36]
    explanation = refkernels.explain("softmax", {"x": x}, {"y": y})
    assert explanation.cause != "stopped_early"


def test_unwritten_rows_may_hold_what_an_earlier_call_left_rightly() -> None:
    x, y = stopped_at(37)
    y[45:50] = softmax(x)[45:50]  # 22 of the last 27 rows are wrong, and no other
    explanation = refkernels.explain("softmax", {"x": x}, {"y": y})
    assert (explanation.cause, explanation.confidence) == ("stopped_early", "matched")
    assert explanation.candidates[0].details == {"first": 37, "rows": 64}
