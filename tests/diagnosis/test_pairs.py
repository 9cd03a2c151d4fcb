"""A difference is charged to the kernel whose own error accounts for it, never to a right one."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hunting import HUNT
from numpy_kernels import cut, gelu_in_steps, layernorm, linear, normal, softmax

import refkernels
from refkernels.diagnosis.hypothesis import HARMLESS


def tanh_form(x: Any) -> Any:
    kind = x.dtype.type
    z = kind(math.sqrt(2 / math.pi)) * (x + kind(0.044715) * x * x * x)
    return kind(0.5) * x * (kind(1) + np.tanh(z))


@pytest.mark.parametrize("op", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("size", [1, 3])
def test_of_two_gelus_the_one_that_computes_the_other_is_blamed(op: str, size: int) -> None:
    cause, culprit = {"gelu": ("tanh_gelu", "port"), "gelu_tanh": ("erf_gelu", "torch")}[op]
    for seed in range(HUNT):
        x = np.float32(size) * np.random.default_rng(seed).standard_normal(500).astype(np.float32)
        outputs = {"torch": {"y": gelu_in_steps(x)}, "port": {"y": tanh_form(x)}}
        for names in (["torch", "port"], ["port", "torch"]):
            kernels = {name: outputs[name] for name in names}
            (difference,) = refkernels.explain(op, {"x": x}, kernels).differences.values()
            assert difference.cause == cause
            assert difference.details["shares"]["y"][culprit] > 0.99


X, WEIGHT, BIAS = normal(24, 64), normal(10, 64, seed=1), normal(10, seed=2)
LAYER = {"x": X, "weight": WEIGHT, "bias": BIAS}
NORM = {"x": X, "weight": normal(64, seed=1), "bias": normal(64, seed=2)}


WRONG: dict[str, tuple[Any, ...]] = {  # op, inputs, right, wrong
    "missing_bias": ("linear", LAYER, linear, lambda x, weight, bias: linear(x, weight)),
    "scale_factor": ("linear", LAYER, linear, lambda **a: 1.5 * linear(**a)),
    "sign_error": ("linear", LAYER, linear, lambda **a: -linear(**a)),
    "permuted": ("linear", LAYER, linear, lambda **a: np.roll(linear(**a), 5, 0)),
    "unbiased_variance": ("layernorm", NORM, layernorm, partial(layernorm, ddof=1)),
    "eps_differs": ("layernorm", NORM, layernorm, partial(layernorm, eps=0.0123)),
    "wrong_axes": ("softmax", {"x": X}, softmax, partial(softmax, axis=0)),
}


@pytest.mark.parametrize("cause", WRONG)
def test_beside_a_planted_fault_the_right_kernel_is_never_blamed(cause: str) -> None:
    op, inputs, right, wrong = WRONG[cause]
    pair = {name: {"y": kernel(**inputs)} for name, kernel in (("right", right), ("wrong", wrong))}
    for names in (["wrong", "right"], ["right", "wrong"]):
        explanation = refkernels.explain(op, inputs, {name: pair[name] for name in names})
        assert explanation.kernels["right"].cause in (None, *HARMLESS)
        (difference,) = explanation.differences.values()
        assert difference.cause == explanation.kernels["wrong"].cause == cause
        assert difference.details["shares"]["y"]["wrong"] > 0.5


def test_half_an_ulp_more_is_less_than_the_sums_of_the_right_one_err() -> None:
    right = linear(**LAYER)
    wide = linear(**{name: array.astype(np.float64) for name, array in LAYER.items()})
    kernels = {"wrong": {"y": cut(wide, np.float32)}, "right": {"y": right}}
    explanation = refkernels.explain("linear", LAYER, kernels)
    assert explanation.kernels["wrong"].cause == "truncated_output"
    (difference,) = explanation.differences.values()
    assert difference.details["shares"]["y"]["wrong"] < 0.5
    assert difference.cause is None
