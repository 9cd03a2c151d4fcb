"""LayerNorm's question as rows in float64, and its outputs under other statistics.

With a kernel's mean m and rstd s of each row:
    y = d s weight + bias,   dx = s (t - mean(t) - d s^2 mean(t d)),   t = dy weight, d = x - m
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from refkernels.diagnosis.hypothesis import Details, Variant, moved
from refkernels.diagnosis.problem import Arrays, Doubles, Problem

_FLOAT64 = 2.0**-48  # relative to the terms: what a few float64 operations in sequence may lose


@dataclass(frozen=True)
class Rows:
    """The question as rows: x, dy (R, n), weight and bias (n,), m and v (R, 1). `asked`: the
    outputs that variants cover."""

    x: Doubles
    dy: Doubles | None
    weight: Doubles
    bias: Doubles
    mean: Doubles
    variance: Doubles
    eps: float
    asked: Collection[str]

    @property
    def n(self) -> int:
        return self.x.shape[1]

    @property
    def rstd(self) -> Doubles:
        with np.errstate(all="ignore"):
            result: Doubles = 1.0 / np.sqrt(self.variance + self.eps)
        return result


def of(problem: Problem, outputs: Arrays | None = None) -> Rows:
    """The rows, for variants of these outputs; by default of all outputs of the truth."""
    x = problem.inputs["x"].astype(np.float64)
    shape = normalized_shape(problem)
    n = math.prod(shape)
    rows = x.reshape(-1, n)
    weight, bias = problem.inputs.get("weight"), problem.inputs.get("bias")
    dy = problem.inputs.get("dy") if problem.direction == "backward" else None
    with np.errstate(over="ignore", invalid="ignore"):  # x near the end of float64's range
        mean = rows.mean(axis=1, keepdims=True)
        variance = np.square(rows - mean).mean(axis=1, keepdims=True)
    return Rows(
        rows,
        None if dy is None else dy.astype(np.float64).reshape(-1, n),
        np.ones(n) if weight is None else weight.astype(np.float64).reshape(-1),
        np.zeros(n) if bias is None else bias.astype(np.float64).reshape(-1),
        mean,
        variance,
        float(problem.params.get("eps", problem.op.params["eps"])),
        problem.truth.reference.keys() & (problem.truth.reference if outputs is None else outputs),
    )


def normalized_shape(problem: Problem) -> tuple[int, ...]:
    """The shape of the normalised axes; by default the last axis."""
    shape = problem.params.get("normalized_shape")
    if shape is None:
        return problem.inputs["x"].shape[-1:]
    return (int(shape),) if isinstance(shape, int) else tuple(shape)


def variants(
    cause: str,
    details: Details,
    problem: Problem,
    rows: Rows,
    mean: Doubles,
    rstd: Doubles,
    spreads: tuple[Doubles, Doubles],
) -> Iterator[Variant]:
    """The outputs with another mean and rstd in every row: (R, 1) each. `spreads`: how far the
    kernel's own may be from these."""
    of_mean, of_rstd = spreads
    with np.errstate(all="ignore"):
        arrays = (forward if problem.direction == "forward" else backward)(rows, mean, rstd)
        width = of_mean * np.abs(rstd) + np.abs(rows.x - mean) * of_rstd
        width = width * np.abs(rows.weight)
    for output, (values, sizes) in arrays.items():
        if output in rows.asked:
            shape = problem.truth.reference[output].shape
            with np.errstate(all="ignore"):
                spread = sizes * _FLOAT64 + (width if output == "y" else 0.0)
            answer = moved(problem, output, values.reshape(shape), spread.reshape(shape))
            yield Variant(cause, details, answer)


def forward(rows: Rows, mean: Doubles, rstd: Doubles) -> dict[str, tuple[Doubles, Doubles]]:
    """y, with the sizes of its terms."""
    scaled = (rows.x - mean) * rstd * rows.weight
    return {
        "y": (
            scaled + rows.bias,
            np.abs(scaled) + np.abs(rows.bias) + np.abs(mean * rstd * rows.weight),
        )
    }


def backward(rows: Rows, mean: Doubles, rstd: Doubles) -> dict[str, tuple[Doubles, Doubles]]:
    """The gradients, with the sizes of their terms."""
    assert rows.dy is not None
    t, xhat = rows.dy * rows.weight, (rows.x - mean) * rstd
    of_t = t.mean(axis=1, keepdims=True)
    projection = (t * xhat).mean(axis=1, keepdims=True)
    products = rows.dy * xhat
    sizes = rstd * (np.abs(t) + np.abs(of_t) + np.abs(xhat * projection))
    return {
        "dx": (rstd * (t - of_t - xhat * projection), sizes),
        "dweight": (products.sum(axis=0), np.abs(products).sum(axis=0)),
    }
