"""Every function refuses an invalid question in the same sentence."""

import numpy as np
import pytest

import refkernels
from refkernels import question
from refkernels.testing import assert_kernel

X = np.ones((2, 3), np.float32)
GOOD = {"op": "layernorm", "inputs": {"x": X}, "params": {"eps": 1e-5}, "direction": "forward"}
REFUSED = {
    "an unknown op": {"op": "layernrom"},
    "an op that is not a name": {"op": 3},
    "an unknown direction": {"direction": "up"},
    "a direction that is not text": {"direction": None},
    "inputs without names": {"inputs": [X]},
    "an unknown input": {"inputs": {"x": X, "w": X}},
    "a missing input": {"inputs": {"weight": X}},
    "an input that is None": {"inputs": {"x": None}},
    "an input that is not an array of floats": {"inputs": {"x": np.arange(3)}},
    "an input's name that is not text": {"inputs": {"x": X, 1: X}},
    "params without names": {"params": [1e-5]},
    "an unknown param": {"params": {"epsilon": 1e-5}},
    "a param that is a text": {"params": {"eps": "1e-5"}},
}


def refusal(ask, **changes):
    with pytest.raises((TypeError, ValueError)) as failure:
        ask(**{**GOOD, **changes})
    return type(failure.value), str(failure.value)


@pytest.mark.parametrize("changes", REFUSED.values(), ids=REFUSED)
def test_assert_kernel_and_explain_refuse_a_question_in_the_same_sentence(changes):
    refused = refusal(question.read, **changes)
    assert refused == refusal(assert_kernel, outputs=X, **changes)
    assert refused == refusal(refkernels.explain, outputs=X, **changes)
    assert refused[1].endswith(".")
    assert "\n" not in refused[1]


def test_absent_inputs_are_left_out_and_the_others_are_arrays_in_the_ops_order():
    bias, weight = [0.0, 1.0, 2.0], np.ones(3, np.float32)
    inputs = {"bias": bias, "nothing": None, "weight": weight, "x": X}
    op, arrays, params = question.read("layernorm", inputs, None, "forward")
    assert (op.name, list(arrays), params) == ("layernorm", ["x", "weight", "bias"], {})
    assert arrays["bias"].tolist() == bias
