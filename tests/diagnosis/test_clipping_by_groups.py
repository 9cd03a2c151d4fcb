"""Groups of parameters clipped by norms of their own: found from the outputs."""

import itertools
from typing import Any

import numpy as np
import pytest
from hunting import one_way

from refkernels import explain
from refkernels.arithmetic import formats
from refkernels.clip_ref import clip_by_norm

TENSOR = np.repeat(np.arange(5), [5, 98, 100, 7, 40])
GRADS = np.random.default_rng(5).standard_normal(TENSOR.size).astype(np.float32)


def clipped(groups: list[int], most: float, way: str) -> Any:
    """Rounded once from the truth."""
    number = np.unique(groups, return_inverse=True)[1][TENSOR]
    exact = clip_by_norm(GRADS, number, max_norm=most, way=way)
    return exact.round(formats.get("float32"))[0].astype(np.float32)


def explained(op: str, got: Any, most: float) -> tuple[str | None, Any]:
    explanation = explain(
        op, {"grads": GRADS, "tensor": TENSOR}, {"clipped": got}, {"max_norm": most}
    )
    return explanation.cause, dict(explanation.candidates[0].details)


@pytest.mark.parametrize("op", ["clip_by_global_norm", "clip_by_norm"])
@pytest.mark.parametrize(
    ("groups", "said", "most"),
    [
        ([0, 0, 1, 1, 1], "0, 1; 2, 3, 4", 1.0),
        ([0, 1, 0, 1, 1], "0, 2; 1, 3, 4", 1.0),
        ([0, 1, 1, 2, 2], "0; 1, 2; 3, 4", 3.0),  # the first is left alone
    ],
)
def test_the_groups_are_named(op: str, groups: list[int], said: str, most: float) -> None:
    way = "eps" if op == "clip_by_global_norm" else "max"
    expected = "clipped_per_group", {"groups": said}
    assert explained(op, clipped(groups, most, way), most) == expected


def test_each_tensor_and_all_together_keep_their_names() -> None:
    alone, together = list(range(5)), [0] * 5
    assert (
        explained("clip_by_global_norm", clipped(alone, 1.0, "eps"), 1.0)[0] == "clipped_per_tensor"
    )
    assert explained("clip_by_norm", clipped(together, 1.0, "max"), 1.0)[0] == "clipped_globally"
    assert explained("clip_by_global_norm", clipped(together, 1.0, "eps"), 1.0)[0] is None


def test_factors_that_no_norm_gives_make_no_groups() -> None:
    """Two factors, but not those of the norms: another cause, or none."""
    got = clipped([0, 0, 1, 1, 1], 1.0, "eps") * np.float32(1.25)
    assert explained("clip_by_global_norm", got, 1.0)[0] != "clipped_per_group"


COUNTS = ["1, 1, 0, 1, 1", "0, 1, 1, 1, 1", "1, 1, 1, 0, 0", "8, 8, 8, 1, 1", "1, 1, 1, 1, 2"]


@pytest.mark.parametrize(("counts", "way"), one_way(itertools.product(COUNTS, ("eps", "max"))))
def test_the_norm_of_other_tensors_is_named(counts: str, way: str) -> None:
    squares = np.bincount(TENSOR, np.square(GRADS.astype(np.float64)))
    norm = np.float32(np.sqrt(np.array([*map(int, counts.split(", "))]) @ squares))
    factor = np.float32(1.0) / (norm + np.float32(1e-6 if way == "eps" else 0.0))
    inputs, params = {"grads": GRADS, "tensor": TENSOR}, {"max_norm": 1.0, "way": way}
    for outputs in ({"clipped": GRADS * factor}, {"clipped": GRADS * factor, "norm": norm}):
        explanation = explain("clip_by_global_norm", inputs, outputs, params)
        # One norm cannot tell it from an edit of the sum that leaves out the same tensor.
        fitting = [c for c in explanation.candidates if not c.ruled_out]
        named = {c.details["counts"] for c in fitting if c.cause == "norm_of_other_tensors"}
        assert named == {counts}
        assert explanation.confidence == "consistent" or "norm" in outputs


def test_a_right_norm_and_an_arbitrary_one_are_no_norm_of_other_tensors() -> None:
    norm = np.float32(np.linalg.norm(GRADS.astype(np.float64)))
    inputs = {"grads": GRADS, "tensor": TENSOR}
    for factor, right in ((1 / (norm + np.float32(1e-6)), True), (np.float32(0.0777), False)):
        got = {"clipped": GRADS * factor}
        explanation = explain("clip_by_global_norm", inputs, got, {"max_norm": 1.0})
        assert (explanation.verdict in ("rounding", "correctly_rounded")) == right
        assert explanation.cause != "norm_of_other_tensors"


def test_one_tensor_has_no_other_tensors() -> None:
    """Its norm is every norm: by twice its norm, it is half as large: no more is known."""
    grads = np.random.default_rng(7).standard_normal(50).astype(np.float32)
    inputs = {"grads": grads, "tensor": np.zeros(50, np.int64)}
    clipped = grads / np.float32(2.0 * np.linalg.norm(grads))
    explanation = explain("clip_by_global_norm", inputs, {"clipped": clipped})
    assert (explanation.verdict, explanation.cause) == ("exceeds_bound", "scale_factor")
