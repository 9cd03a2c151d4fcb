"""What an op refuses, in a sentence that says why: one table of changes to a question that it
answers. (Wrong values of every param: test_refused_params; wrong shapes: test_wrong_inputs.)"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from refkernels import registry


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def whole(*shape: int) -> Any:
    return np.zeros(shape, np.int64)


GROUPS = {"a": ones(2, 6, dtype=np.int8), "b": ones(6, 4, dtype=np.int8)}
GIVEN: dict[str, dict[str, Any]] = {
    "matmul": {"a": ones(2, 3), "b": ones(3, 5)},
    "linear": {"x": ones(2, 3), "weight": ones(4, 3), "bias": ones(4)},
    "scaled_matmul": {
        "a": ones(2, 3, dtype=np.int8), "b": ones(3, 4, dtype=np.int8), "scale_a": np.float32(1),
        "scale_b": np.float32(1),
    },
    "grouped_matmul": {"a": ones(2, 4), "b": ones(3, 4, 5), "experts": whole(2)},
    "linear_attention": {"q": ones(2, 9, 4), "k": ones(2, 9, 4), "v": ones(2, 9, 3)},
    "selective_scan": {
        "x": ones(5, 3, 2), "dt": ones(5, 3), "A": ones(3), "B": ones(5, 1, 2), "C": ones(5, 1, 2)
    },
    "ctc_loss": {"x": ones(1, 5, 3), "target": whole(1, 2) + 1},
    "layernorm": {"x": ones(2, 3)},
    "rms_norm": {"x": ones(2, 3)},
    "batch_norm": {"x": ones(3, 4, 5)},
    "group_norm": {"x": ones(3, 4, 5)},
    "softmax": {"x": ones(2, 3)},
    "sum": {"x": ones(2, 3, 4)},
    "var": {"x": ones(2, 3, 4)},
    "cross_entropy": {"x": ones(2, 3), "target": whole(2)},
    "mse": {"x": ones(2), "target": ones(2)},
    "attention": {"q": ones(2, 4, 3, 5), "k": ones(2, 2, 7, 5), "v": ones(2, 2, 7, 5)},
    "rotary": {"x": ones(2, 4, 10), "position": np.arange(4)},
    "conv2d": {
        "x": ones(2, 6, 5, 5), "weight": ones(4, 3, 3, 3), "bias": ones(4), "groups": 2
    },
    "clip_by_global_norm": {"grads": ones(3), "tensor": np.array([0, 0, 1])},
    "clip_by_norm": {"grads": ones(3), "tensor": np.array([0, 0, 1])},
    "dropout": {"x": ones(3), "mask": ones(3, dtype=bool)},
    "adam": {name: ones(1) for name in ("param", "grad", "m", "v")},
    "hypot": {"a": ones(3), "b": ones(3)},
    "sin": {"x": ones(2)},
}  # fmt: skip
LLAMA = {"rope_type": "llama3", "factor": 2.0}
SHAPES: list[tuple[str, dict[str, Any], str]] = [  # refused with a ValueError
    ("matmul", {"b": ones(4, 5)}, "(2, 3) and b (4, 5)"),
    ("matmul", {"a": np.float32(1)}, "at least one axis"),
    ("matmul", {"a": ones(2, 2, 3), "b": ones(4, 3, 3)}, "broadcast"),
    ("matmul", {"dc": ones(2, 2)}, "(2, 5)"),
    ("linear", {"weight": ones(3, 2)}, "out_features"),
    ("linear", {"bias": ones(3)}, "(4,)"),
    ("linear", {"dy": ones(2, 3)}, "(2, 4)"),
    ("scaled_matmul", {"scale_a": ones(3)}, "it must be a number, or"),
    ("scaled_matmul", {"b": ones(2, 3, dtype=np.int8)}, "(K, N)"),
    ("scaled_matmul", {**GROUPS, "scale_a": ones(2, 3), "scale_b": ones(2, 4)}, "scale_a has"),
    ("scaled_matmul", {**GROUPS, "scale_b": ones(4, 4)}, "scale_a has shape"),
    ("grouped_matmul", {"experts": np.array([0, 3])}, "experts goes from 0 to 3: b has 3"),
    ("linear_attention", {"v": ones(2, 8, 3)}, "whose t is 8"),
    ("selective_scan", {"B": ones(5, 2, 2), "C": ones(5, 2, 2)}, "multiple of g"),
    ("ctc_loss", {"target": whole(1, 2)}, "target has the label 0, which is the blank"),
    ("layernorm", {"x": np.float64(1.0)}, "at least one axis"),
    ("layernorm", {"x": ones(2, 0)}, "row of length 0"),
    ("layernorm", {"normalized_shape": 2}, "last axes"),
    ("layernorm", {"normalized_shape": ()}, "last axes"),
    ("layernorm", {"weight": ones(2)}, "weight has shape (2,)"),
    ("layernorm", {"bias": ones(1, 3)}, "bias has shape (1, 3)"),
    ("layernorm", {"dy": ones(3, 2)}, "gradient of y"),
    ("rms_norm", {"weight": ones(2)}, "weight has shape"),
    ("batch_norm", {"x": ones(5)}, "must be (N, C, ...)"),
    ("batch_norm", {"weight": ones(2)}, "weight has shape"),
    ("group_norm", {"num_groups": 3}, "num_groups is 3"),
    ("softmax", {"axis": 2}, "x has shape (2, 3): it has no axis 2."),
    ("softmax", {"x": np.float32(1.0)}, "no axis"),
    ("softmax", {"dy": ones(3)}, "dy has shape (3,) and x (2, 3)"),
    ("sum", {"axis": 3}, "has no axis 3"),
    ("sum", {"axis": (0, 0)}, "twice"),
    ("sum", {"axis": ()}, "None stands for all"),
    ("sum", {"dy": ones(4)}, "dy has shape (4,) and the result (2, 3)"),
    ("var", {"ddof": -1}, "ddof"),
    ("cross_entropy", {"target": whole(3)}, "target has shape"),
    ("mse", {"target": ones(3)}, "target has shape"),
    ("attention", {"k": ones(2, 2, 7, 4)}, "q[... m d]"),
    ("attention", {"q": ones(2, 3, 3, 5)}, "a multiple of k's"),
    ("attention", {"q": ones(5)}, "it must be q[... m d]"),
    ("attention", {"k": ones(2, 2, 0, 5), "v": ones(2, 2, 0, 5)}, "no key for q"),
    ("attention", {"mask": ones(3, 6)}, "does not broadcast"),
    ("attention", {"lengths": np.array([[8], [1]])}, "lengths has 8, and k has 7 keys"),
    ("attention", {"dy": ones(2, 4, 3, 4)}, "dy has shape (2, 4, 3, 4) and y (2, 4, 3, 5)"),
    ("rotary", {"x": ones(2, 4, 9)}, "an even number of at most 9, not 9"),
    ("rotary", {"dim": 12}, "an even number of at most 10, not 12"),
    ("rotary", {"position": np.arange(3)}, "do not broadcast"),
    ("rotary", {"position": np.array(2**60)}, "beyond 2^53"),
    ("rotary", {"x": np.float32(1)}, "it must be x[... d]"),
    ("rotary", {"scaling": {"rope_type": "longrope"}}, "rope_type is one of default, linear"),
    ("rotary", {"scaling": LLAMA}, "scaling has no low_freq_factor"),
    ("rotary", {"scaling": {"rope_type": "linear", "factor": 0.0}}, "not above 0"),
    ("rotary", {"scaling": "{"}, "it must be a dict"),
    ("conv2d", {"stride": 0}, "at least 1"),
    ("conv2d", {"stride": [1, 2, 3]}, "one for each of 2 axes"),
    ("conv2d", {"padding": "full"}, "'same', 'valid' or numbers"),
    ("conv2d", {"padding": -1}, "at least 0"),
    ("conv2d", {"groups": 4}, "groups is 4, and x has 6 channels"),
    ("conv2d", {"groups": 1}, "in 1 groups: weight.shape[1] is 6"),
    ("conv2d", {"dilation": 9}, "spans 19 places of an axis that has 5"),
    ("conv2d", {"weight": ones(4, 6, 3)}, "must have 4 axes"),
    ("conv2d", {"bias": ones(5)}, "y has 4 channels"),
    ("clip_by_global_norm", {"norm_type": 1.0}, "2 or inf"),
    ("clip_by_norm", {"tensor": np.array([0, 0])}, "of the same length"),
    ("clip_by_norm", {"tensor": np.array([-1, 0, 0])}, "below its own length"),
    ("dropout", {"mask": ones(2, dtype=bool)}, "they must be equal"),
    ("adam", {"step": 0}, "at least 1"),
    ("adam", {"grad": ones(2)}, "grad has shape"),
    ("hypot", {"b": ones(1)}, "they must be equal"),
    ("sin", {"dy": ones(3)}, "(3,)"),
]
TYPES: list[tuple[str, dict[str, Any], str]] = [  # refused with a TypeError
    ("matmul", {"b": whole(3, 5)}, "b has dtype int64"),
    ("scaled_matmul", {"a": ones(2, 3, dtype=np.int16)}, "a has dtype int16, but an operand is"),
    ("scaled_matmul", {"scale_a": ones(2, dtype=np.int16)}, "scale_a has dtype int16"),
    ("layernorm", {"x": whole(3)}, "dtype int64"),
    ("layernorm", {"dy": None}, "dy is a NoneType"),
    ("attention", {"keep": ones(3, 7)}, "keep has dtype float32"),
    ("rotary", {"position": np.arange(4.0)}, "whole numbers"),
    ("dropout", {"mask": ones(3)}, "truth values"),
    ("sin", {"x": np.ones(2, np.complex128)}, "complex128"),
]
ROWS = [(*row, ValueError) for row in SHAPES] + [(*row, TypeError) for row in TYPES]


@pytest.mark.parametrize(
    ("name", "change", "said", "error"), ROWS, ids=[f"{op}-{'-'.join(new)}" for op, new, *_ in ROWS]
)
def test_what_does_not_fit_is_refused_in_a_sentence(
    name: str, change: dict[str, Any], said: str, error: type[Exception]
) -> None:
    op, given = registry.get(name), {**GIVEN[name], **change}
    params = {key: given.pop(key) for key in op.params if key in given}
    direction = "backward" if op.cotangent in change else "forward"
    with pytest.raises(error, match=re.escape(said)) as caught:
        op.evaluate(direction, given, params)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", GIVEN)
def test_the_question_that_is_changed_is_answered(name: str) -> None:
    op, given = registry.get(name), dict(GIVEN[name])
    params = {key: given.pop(key) for key in op.params if key in given}
    assert op.evaluate("forward", given, params)
