"""A difference is charged to the kernel whose own error accounts for it, never to a right one."""

import math
from typing import Any

import faults
import numpy as np
import planted
import pytest
from hunting import HUNT, one_in

import refkernels
from refkernels import registry
from refkernels.diagnosis.hypothesis import HARMLESS

ERF = np.vectorize(math.erf, otypes=[np.float64])
ALONE = [cause for cause in faults.FAULTS if cause not in ("bias_first", "folded_normalisation")]


def erf_form(x: Any) -> Any:
    """As a library computes it in float32."""
    kind = x.dtype.type
    return kind(0.5) * x * (kind(1) + ERF(x * kind(math.sqrt(0.5))).astype(x.dtype))


def tanh_form(x: Any) -> Any:
    kind = x.dtype.type
    z = kind(math.sqrt(2 / math.pi)) * (x + kind(0.044715) * x * x * x)
    return kind(0.5) * x * (kind(1) + np.tanh(z))


@pytest.mark.parametrize("op", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("size", [1, 3])
def test_of_two_gelus_the_one_that_computes_the_other_function_is_blamed(
    op: str, size: int
) -> None:
    cause, culprit = {"gelu": ("tanh_gelu", "port"), "gelu_tanh": ("erf_gelu", "torch")}[op]
    for seed in range(HUNT):
        x = np.float32(size) * np.random.default_rng(seed).standard_normal(500).astype(np.float32)
        outputs = {"torch": {"y": erf_form(x)}, "port": {"y": tanh_form(x)}}
        for names in (["torch", "port"], ["port", "torch"]):
            kernels = {name: outputs[name] for name in names}
            (difference,) = refkernels.explain(op, {"x": x}, kernels).differences.values()
            assert difference.cause == cause
            assert difference.details["shares"]["y"][culprit] > 0.99


def right_answer(fault: planted.Planted) -> dict[str, Any] | None:
    """What a right kernel gives to the question of a planted fault."""
    kernel = planted.Kernel(np.random.default_rng(1))
    dtype = next(iter(fault.inputs.values())).dtype
    if fault.op == "layernorm":
        outputs = kernel.layernorm(fault.inputs)
    elif fault.op == "linear":
        backward = fault.direction == "backward"
        outputs = (
            kernel.linear_backward(fault.inputs) if backward else {"y": kernel.linear(fault.inputs)}
        )
    elif fault.op == "matmul":
        a, b = (v.astype(planted.working(v.dtype)) for v in fault.inputs.values())
        outputs = {"c": kernel.product(a, b).astype(fault.inputs["a"].dtype)}
    else:
        question = (fault.direction, fault.inputs, fault.params, ("rounding", dtype))
        exact = registry.get(fault.op).evaluate(*question)
        outputs = {name: exact[name].round(dtype)[0] for name in fault.outputs}
    return {name: outputs[name] for name in fault.outputs}


@pytest.mark.parametrize("cause", one_in(4, ALONE))
def test_beside_a_planted_fault_the_right_kernel_is_never_blamed(cause: str) -> None:
    number = ALONE.index(cause)
    build, dtypes = faults.FAULTS[cause][0]
    fault = build(faults.generator(number, 0, faults.SHAPES[0], 200), faults.SHAPES[0], dtypes[0])
    right = right_answer(fault)
    pair = {"wrong": fault.outputs, "right": right}
    for names in (["wrong", "right"], ["right", "wrong"]):
        kernels = {name: pair[name] for name in names}
        direction: Any = fault.direction
        explanation = refkernels.explain(fault.op, fault.inputs, kernels, fault.params, direction)
        assert explanation.kernels["right"].cause in (None, *HARMLESS)
        (difference,) = explanation.differences.values()
        if cause == "truncated_output":  # half an ulp more: less than the right one's own sums err
            assert difference.details["shares"]["y"]["wrong"] < 0.5
            assert difference.cause is None
            continue
        assert difference.cause == explanation.kernels["wrong"].cause
        assert difference.cause in (fault.cause, *fault.also)
        output = difference.details["output"]
        assert difference.details["shares"][output]["wrong"] > 0.5
