"""Conversions that cut bits off are distinguished from faults that imitate their bias, and right
ones are not mistaken for them. (Each fault alone, in every op and format: test_explain_benchmark.)
REFKERNELS_HUNT multiplies the right kernels of each format that are explained."""

from typing import Any

import faults
import numpy as np
import numpy.typing as npt
import planted
import pytest
import slips
from hunting import HUNT, one_in

import refkernels
from refkernels.arithmetic import formats
from refkernels.diagnosis.edits import reductions

Array = npt.NDArray[Any]
SEEDS = 3 * HUNT
BFLOAT16 = np.dtype(planted.BFLOAT16)


def layernorm(dtype: Any, seed: int, eps: float = 1e-5, **how: Any) -> tuple[dict, dict]:
    """Inputs, and a right kernel's answer in float32."""
    rng = np.random.default_rng(seed)
    inputs = faults.norm_inputs(rng, (24, 64), dtype)
    wide = {name: array.astype(np.float32) for name, array in inputs.items()}
    return inputs, planted.Kernel(rng).layernorm(wide, eps, **how)


def test_eps_outside_the_root_is_not_taken_for_truncation() -> None:
    for seed in one_in(3, range(6)):
        inputs, wide = layernorm(BFLOAT16, seed, eps=0.25, outside=True)
        outputs = {"y": wide["y"].astype(BFLOAT16)}
        explanation = refkernels.explain("layernorm", inputs, outputs, {"eps": 0.25})
        assert explanation.cause == "eps_outside_sqrt"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_rounding_to_nearest_is_not_taken_for_truncation(dtype: str) -> None:
    storage = formats.get(dtype).storage
    named: set[str | None] = set()
    kernels = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng([7, seed])
        shape = (int(rng.integers(1, 9)), int(rng.integers(2, 70)))
        build = (faults._right_linear, faults._right_norm, faults._right_function)[seed % 3]
        kernel = build(rng, shape, storage)
        direction: Any = kernel.direction
        explanation = refkernels.explain(
            kernel.op, kernel.inputs, kernel.outputs, kernel.params, direction
        )
        named.add(explanation.cause)
        kernels += 1
    assert kernels == SEEDS
    assert named <= {None, "summation_order", "bias_first"}


@pytest.mark.parametrize("output", ["mean", "rstd"])
def test_truncated_statistics_are_named(output: str) -> None:
    for dtype in (BFLOAT16, np.dtype(np.float16)):
        rng = np.random.default_rng(3)
        inputs = faults.norm_inputs(rng, (96, 64), dtype, 1.0)
        x = inputs["x"].astype(np.float32)
        mean, rstd = planted.Kernel(rng).statistics(x, "two_pass", 1e-5)
        right = {"mean": mean[:, 0], "rstd": rstd[:, 0]}[output]
        cut = refkernels.explain("layernorm", inputs, {output: slips.cut(right, dtype)})
        assert cut.cause == "truncated_output"
        near = refkernels.explain("layernorm", inputs, {output: right.astype(dtype)})
        assert near.cause in (None, "summation_order")


def test_the_numbers_of_a_padded_variance_are_those_of_the_kernel() -> None:
    number = list(faults.FAULTS).index("padded_variance")
    build = faults.FAULTS["padded_variance"][0][0]
    kernel = build(faults.generator(number, 0, (48, 200), 0), (48, 200), np.dtype(np.float32))
    explanation = refkernels.explain(kernel.op, kernel.inputs, kernel.outputs)
    n = kernel.inputs["x"].shape[1]
    assert explanation.candidates[0].details == {"n": n, "padded": 128}
    assert f"128 lanes where the row has {n}" in explanation.summary


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 100, 1000])
def test_a_row_that_fills_its_blocks_has_no_padding(n: int) -> None:
    assert all(length > n for length in reductions.paddings(n))
    assert (1 << (n - 1).bit_length() in reductions.paddings(n)) == (n & (n - 1) != 0)
