"""Fast functions of a GPU: an H100's answers, from CUDA C with --use_fast_math and from Triton; and
kernels of sqrt, which must be rounded correctly, that only nearly are."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import refkernels
from refkernels import registry
from refkernels.contexts.special_functions import FAST, cos, ex2, rcp, sin

F = np.float32
KEPT = json.loads(Path(__file__).with_name("special_functions_of_an_h100.json").read_text())
ALL = FAST | {
    "tan": (lambda x: sin(x) * rcp(cos(x)),),
    "reciprocal": (rcp,),
    "sigmoid": (lambda x: rcp(F(1) + ex2(-x * F(1.442695))),),
    "silu": (lambda x: x * rcp(F(1) + ex2(-x * F(1.442695))),),
}
ORDINARY = {"exp2", "reciprocal", "rsqrt", "sigmoid", "silu"}  # these err by what rounding gives


def answers(op: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    x, y = (np.frombuffer(bytes.fromhex(KEPT[op][name]), ">u4").astype("u4") for name in "xy")
    return x.view(F), y.view(F)


@pytest.mark.parametrize("op", KEPT)
def test_every_bit_of_a_fast_function_is_known(op: str) -> None:
    x, y = answers(op)
    for function in ALL[op]:
        np.testing.assert_array_equal(function(x).view("u4"), y.view("u4"))


@pytest.mark.parametrize("op", sorted(KEPT.keys() - ORDINARY))
def test_a_fast_function_is_proven(op: str) -> None:
    x, y = answers(op)
    explanation = refkernels.explain(op, {"x": x}, {"y": y})
    assert (explanation.cause, explanation.confidence) == ("special_function_unit", "proven")


@pytest.mark.parametrize("op", ["exp", "tanh", "sin"])
def test_another_function_is_none_of_a_gpu(op: str) -> None:
    """Right, or with errors of its own: 2^-18 of each result."""
    x, _ = answers(op)
    right = getattr(np, op)(x.astype(np.float64))
    off = 1 + 2.0**-18 * np.random.default_rng(0).uniform(-1, 1, x.shape)
    for y in (right.astype(F), (right * off).astype(F)):
        candidates = refkernels.explain(op, {"x": x}, {"y": y}).candidates
        assert "special_function_unit" not in {c.cause for c in candidates if c.confidence}


Array = npt.NDArray[Any]


def question(dtype: str, n: int = 800) -> tuple[Array, Array, Array]:
    """x, sqrt(x), and the other float next to the exact root."""
    x = np.random.default_rng(41).uniform(0.5, 8.0, n).astype(dtype)
    root = registry.get("sqrt").forward(x)
    y = np.sqrt(x)
    low_part = (root.hi - y.astype(np.float64)) + root.lo
    other = np.where(low_part > 0, np.nextafter(y, np.inf), np.nextafter(y, y.dtype.type(0)))
    return x, y, other


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wrong", [1, 3, 40])
def test_a_few_neighbours_of_roots_are_an_approximation(dtype: str, wrong: int) -> None:
    """As of MKL's vmsSqrt and vmdSqrt on Intel's processors, which PyTorch calls."""
    x, y, other = question(dtype)
    y[5 : 5 + 2 * wrong : 2] = other[5 : 5 + 2 * wrong : 2]
    explanation = refkernels.explain("sqrt", {"x": x}, {"y": y})
    assert explanation.verdict == "exceeds_bound"
    assert (explanation.cause, explanation.confidence) == ("fast_approximation", "consistent")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_truncated_results_are_named(dtype: str) -> None:
    x, y, other = question(dtype)
    explanation = refkernels.explain("sqrt", {"x": x}, {"y": np.minimum(y, other)})
    assert (explanation.cause, explanation.confidence) == ("truncated_output", "proven")
    assert not any(c.cause == "truncated_output" for c in refkernels.explain(
        "sqrt", {"x": x}, {"y": np.where(np.arange(y.size) % 90 == 5, other, y)}
    ).candidates if not c.ruled_out)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_flipped_bit_is_no_approximation(dtype: str) -> None:
    x, y, _ = question(dtype)
    y[7] *= 1.5
    explanation = refkernels.explain("sqrt", {"x": x}, {"y": y})
    assert explanation.cause == "corrupted_elements"
