"""Conversions that cut bits off are distinguished from faults that imitate their bias, and right
ones are not mistaken for them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hunting import HUNT
from numpy_kernels import cut, layernorm, normal

import refkernels
from refkernels.arithmetic import formats
from refkernels.diagnosis.edits import reductions

BF16, F16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
AFFINE = {"x": normal(24, 64), "weight": normal(64, seed=1), "bias": normal(64, seed=2)}


def cast(inputs: dict[str, Any], to: Any, then: Any = None) -> dict[str, Any]:
    """The inputs in a format, in the storage of another."""
    return {name: array.astype(to).astype(then or to) for name, array in inputs.items()}


def test_eps_outside_the_root_is_not_taken_for_truncation() -> None:
    y = layernorm(**cast(AFFINE, BF16, np.float32), eps=0.25, outside=True).astype(BF16)
    explanation = refkernels.explain("layernorm", cast(AFFINE, BF16), {"y": y}, {"eps": 0.25})
    assert explanation.cause == "eps_outside_sqrt"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_rounding_to_nearest_is_not_taken_for_truncation(dtype: str) -> None:
    """(Kernels of every op: test_evidence.)"""
    storage = formats.get(dtype).storage
    kind = np.float64 if dtype == "float64" else np.float32
    for seed in range(HUNT):
        rng = np.random.default_rng(seed)
        x, weight = (rng.standard_normal((n, 70)).astype(storage) for n in (9, 5))
        rows = {"x": x.astype(kind), "weight": weight[0].astype(kind)}
        answers = {
            "linear": ({"x": x, "weight": weight}, rows["x"] @ weight.T.astype(kind)),
            "layernorm": ({"x": x, "weight": weight[0]}, layernorm(**rows)),
            "tanh": ({"x": x}, np.tanh(rows["x"])),
        }
        for op, (inputs, y) in answers.items():
            explanation = refkernels.explain(op, inputs, {"y": y.astype(storage)})
            assert explanation.cause in (None, "summation_order", "bias_first")


@pytest.mark.parametrize("output", ["mean", "rstd"])
def test_truncated_statistics_are_named(output: str) -> None:
    for dtype in (BF16, F16):
        inputs = {"x": (normal(96, 64) + 1).astype(dtype)}
        x = inputs["x"].astype(np.float32)
        right = x.mean(-1) if output == "mean" else 1 / np.sqrt(x.var(-1) + np.float32(1e-5))
        truncated = refkernels.explain("layernorm", inputs, {output: cut(right, dtype)})
        assert truncated.cause == "truncated_output"
        near = refkernels.explain("layernorm", inputs, {output: right.astype(dtype)})
        assert near.cause in (None, "summation_order")


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 100, 1000])
def test_a_row_that_fills_its_blocks_has_no_padding(n: int) -> None:
    assert all(length > n for length in reductions.paddings(n))
    assert (1 << (n - 1).bit_length() in reductions.paddings(n)) == (n & (n - 1) != 0)
