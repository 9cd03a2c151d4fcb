"""An op's output as sums of products, whatever the op: out = A B (+ bias).

c = a b · y = x weight^T + bias · da = dc b^T · db = a^T dc · dx = dy weight · dweight = dy^T x ·
dbias = 1^T dy. Leading axes are rows like any other where only one factor has them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from refkernels.diagnosis.problem import Array, Arrays, Problem

OPS = ("matmul", "linear")


@dataclass(frozen=True)
class Product:
    """a (M, K), b (K, N), bias (N,) or None; `shape` is that of the output, M N elements."""

    a: Array
    b: Array
    bias: Array | None
    shape: tuple[int, ...]

    @property
    def terms(self) -> int:
        """K: how many products an element is the sum of."""
        return int(self.a.shape[1])


def of(problem: Problem, output: str) -> Product | None:
    """The product that an output is; None for other ops, for batches of both factors, and for
    sums of nothing."""
    if problem.op.name not in OPS:
        return None
    shape = problem.truth.reference[output].shape
    pair = (_linear if problem.op.name == "linear" else _matmul)(problem.inputs, output)
    if pair is None:
        return None
    a, b = pair
    bias = problem.inputs.get("bias") if output == "y" else None
    if 0 in a.shape or 0 in b.shape or len(a) * b.shape[1] != math.prod(shape):
        return None
    return Product(np.ascontiguousarray(a), np.ascontiguousarray(b), bias, shape)


def _linear(inputs: Arrays, output: str) -> tuple[Array, Array] | None:
    x = _rows(inputs["x"])
    if output == "y":
        return x, inputs["weight"].T
    dy = _rows(inputs["dy"])
    if output == "dbias":
        return np.ones((1, len(dy)), dy.dtype), dy
    return (dy, inputs["weight"]) if output == "dx" else (dy.T, x)


def _matmul(inputs: Arrays, output: str) -> tuple[Array, Array] | None:
    a, b = inputs["a"], inputs["b"]
    if b.ndim != 2 or a.ndim < 2:
        return None
    if output == "c":
        return _rows(a), b
    dc = _rows(inputs["dc"])
    return (dc, b.T) if output == "da" else (_rows(a).T, dc)


def _rows(array: Array) -> Array:
    return array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
