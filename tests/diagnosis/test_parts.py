"""Missing parts of sums, and means of parts, are named from the outputs alone."""

from typing import Any

import numpy as np
import pytest

import refkernels

X = np.random.default_rng(11).standard_normal((16, 1000)).astype(np.float32)


def without(start: int, stop: int) -> Any:
    kept = X.copy()
    kept[:, start:stop] = 0
    return kept


def explained(op: str, inputs: Any, output: str, got: Any) -> tuple[str | None, Any]:
    explanation = refkernels.explain(op, inputs, {output: got})
    return explanation.cause, dict(explanation.candidates[0].details)


@pytest.mark.parametrize(("start", "stop"), [(128, 256), (0, 7), (999 - 64, 999), (500, 501)])
def test_the_range_that_a_sum_lacks_is_found(start: int, stop: int) -> None:
    expected = "part_of_sum_left_out", {"n": 1000, "start": start, "stop": stop}
    kept = without(start, stop)
    assert explained("sum", {"x": X}, "y", kept.sum(axis=1)) == expected
    assert explained("mean", {"x": X}, "y", kept.sum(axis=1) / np.float32(1000)) == expected


def test_the_range_that_a_matmul_lacks_is_found() -> None:
    b = np.random.default_rng(12).standard_normal((1000, 9)).astype(np.float32)
    expected = "part_of_sum_left_out", {"n": 1000, "start": 100, "stop": 164}
    assert explained("matmul", {"a": X, "b": b}, "c", without(100, 164) @ b) == expected


def test_means_of_parts_and_of_padded_rows_are_named() -> None:
    starts = np.arange(0, 1000, 64)
    sizes = np.array([64] * 15 + [40], np.float32)
    means = (np.add.reduceat(X, starts, axis=1) / sizes).mean(axis=1, dtype=np.float32)
    assert explained("mean", {"x": X}, "y", means) == ("mean_of_block_means", {"block": 64})
    padded = refkernels.explain("mean", {"x": X}, {"y": X.sum(axis=1) / np.float32(1024)})
    assert padded.cause == "scale_factor"
    assert padded.candidates[0].details["named"] == "x.shape[1] / 1024, to which it is padded"


def test_a_narrow_accumulator_of_a_sum_is_named() -> None:
    x = X.astype(np.float16)
    cause = explained("sum", {"x": x}, "y", np.add.accumulate(x, axis=1)[:, -1])[0]
    assert cause in ("fp16_accumulation", "narrow_intermediates")  # a sum has no others


def test_one_sum_names_no_range() -> None:
    got = without(128, 256)[:1].sum(axis=1)
    assert explained("sum", {"x": X[:1]}, "y", got)[0] != "part_of_sum_left_out"
