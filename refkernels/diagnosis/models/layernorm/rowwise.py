"""LayerNorm's question as rows in float64, and its outputs under other statistics.

With a kernel's mean m and rstd s of each row:
    y = d s weight + bias,   dx = s (t - mean(t) - d s^2 mean(t d)),   t = dy weight, d = x - m
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from refkernels.diagnosis.hypothesis import Details, Variant, moved
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem

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

    def take(self, chosen: Array) -> Rows:
        """Some of the rows."""
        return replace(
            self,
            x=self.x[chosen],
            dy=None if self.dy is None else self.dy[chosen],
            mean=self.mean[chosen],
            variance=self.variance[chosen],
        )

    def cast(self, kind: type) -> Rows:
        """The rows in another precision."""
        with np.errstate(over="ignore"):
            return replace(
                self,
                x=self.x.astype(kind),
                dy=None if self.dy is None else self.dy.astype(kind),
                weight=self.weight.astype(kind),
                bias=self.bias.astype(kind),
            )

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
    rstd: Doubles,
    mean: Doubles | None = None,
    spread: Mapping[str, Doubles] | None = None,
) -> Iterator[Variant]:
    """The outputs with another rstd, and perhaps another mean, in every row: (R, 1) each. `spread`:
    how far the kernel's own statistics may be from these, by "mean" and "rstd"."""
    mean = rows.mean if mean is None else mean
    spreads = spread or {}
    with np.errstate(all="ignore"):
        arrays = (forward if problem.direction == "forward" else backward)(rows, mean, rstd)
        width = spreads.get("mean", 0.0) * np.abs(rstd) + np.abs(rows.x - mean) * spreads.get(
            "rstd", 0.0
        )
        width = width * np.abs(rows.weight)
    for output, (values, sizes) in arrays.items():
        if output in rows.asked:
            more = width if output == "y" else 0.0
            yield variant(cause, details, problem, output, values, sizes, more)


def forward(rows: Rows, mean: Doubles, rstd: Doubles) -> dict[str, tuple[Doubles, Doubles]]:
    """Each output, with the sizes of its terms."""
    scaled = (rows.x - mean) * rstd * rows.weight
    sizes = np.abs(scaled) + np.abs(rows.bias) + np.abs(mean * rstd * rows.weight)
    return {
        "y": (scaled + rows.bias, sizes),
        "mean": (mean, np.abs(mean) + np.abs(rows.x).max(axis=1, initial=0.0, keepdims=True)),
        "rstd": (rstd, np.abs(rstd)),
    }


def backward(
    rows: Rows,
    mean: Doubles,
    rstd: Doubles,
    kept: int | None = None,
    divisor: int | None = None,
    through_mean: int = 1,
    through_root: Doubles | float = 1.0,
) -> dict[str, tuple[Doubles, Doubles]]:
    """The gradients, with the sizes of their terms. kept: the number of lanes in the sums over a
    row; divisor: what these are divided by; through_mean: 0 where no gradient passes through the
    mean; through_root: what the gradient through the deviation is multiplied by."""
    assert rows.dy is not None
    n = rows.n if divisor is None else divisor
    t, xhat = rows.dy * rows.weight, (rows.x - mean) * rstd
    of_t = t[:, :kept].sum(axis=1, keepdims=True) / n * through_mean
    projection = (t * xhat)[:, :kept].sum(axis=1, keepdims=True) / n * through_root
    products = rows.dy * xhat
    sizes = rstd * (np.abs(t) + np.abs(of_t) + np.abs(xhat * projection))
    return {
        "dx": (rstd * (t - of_t - xhat * projection), sizes),
        "dweight": (products.sum(axis=0), np.abs(products).sum(axis=0)),
    }


def variant(
    cause: str,
    details: Details,
    problem: Problem,
    output: str,
    values: Doubles,
    sizes: Doubles,
    more: Doubles | float = 0.0,
) -> Variant:
    """One output's values, known to a few float64 roundings of terms of these sizes, and `more`."""
    shape = problem.truth.reference[output].shape
    with np.errstate(all="ignore"):
        spread = (sizes * _FLOAT64 + more).reshape(shape)
    return Variant(cause, details, moved(problem, output, values.reshape(shape), spread))
