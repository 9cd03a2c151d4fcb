"""Kernels of sqrt, which must be rounded correctly, that only nearly are."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import refkernels
from refkernels import registry

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
def test_a_few_results_that_are_only_neighbours_are_an_approximation(
    dtype: str, wrong: int
) -> None:
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
