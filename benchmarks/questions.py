"""Shapes and inputs of the kernels that `faults.py` and `slips.py` plant."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from planted import Array, Arrays, Planted

SHAPES = ((24, 64), (16, 129), (48, 200))  # rows, features
Builder = Callable[[np.random.Generator, tuple[int, int], np.dtype[Any]], Planted]
FLOAT16, FLOAT32, FLOAT64 = (np.dtype(name) for name in ("float16", "float32", "float64"))
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def normal(rng: np.random.Generator, *shape: int, dtype: Any = FLOAT32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def norm_inputs(
    rng: np.random.Generator,
    shape: tuple[int, int],
    dtype: Any,
    offset: float = 0.0,
    dy: bool = False,
) -> Arrays:
    rows, n = shape
    scale = np.exp(rng.uniform(-1, 1, (rows, 1)))
    inputs = {
        "x": (scale * (rng.standard_normal(shape) + offset)).astype(dtype),
        "weight": (1 + 0.5 * rng.standard_normal(n)).astype(dtype),
        "bias": normal(rng, n, dtype=dtype),
    }
    return {**inputs, "dy": normal(rng, *shape, dtype=dtype)} if dy else inputs


def linear_inputs(
    rng: np.random.Generator, shape: tuple[int, int], dtype: Any, square: bool = False
) -> Arrays:
    rows, k = shape
    out = k if square else 24
    return {
        "x": normal(rng, rows, k, dtype=dtype),
        "weight": normal(rng, out, k, dtype=dtype),
        "bias": normal(rng, out, dtype=dtype),
    }
