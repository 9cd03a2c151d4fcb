"""A model: an algorithm in the working precision whose bits are compared with a kernel's.

Every LayerNorm model starts from a `LayerNormTask`: the inputs as rows in the working precision
(float32 for narrower formats), with the way back to the caller's shapes and format.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.records.words import Direction

Array = npt.NDArray[Any]
Run = Callable[[Mapping[str, Any], Mapping[str, Any], Direction, "Format | str"], dict[str, Array]]


@dataclass(frozen=True)
class Model:
    """One algorithm, runnable.

    name       short and unique: "torch CPU", "naive variance"
    cause      that it embodies ("naive_variance"), with its details; None for a mere order
    statement  one sentence that says what the algorithm does, ready to quote
    run        run(inputs, params, direction, format) -> {output name: array}, in a framework's
               shapes and dtype; empty where the model does not apply
    """

    name: str
    cause: str | None
    statement: str
    run: Run
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerNormTask:
    """LayerNorm's inputs as contiguous rows in the working precision; absent ones are None.

    x, dy (rows, n) · weight, bias (n,) · all of dtype `kind`, float32 or float64
    """

    x: Array
    dy: Array | None
    weight: Array | None
    bias: Array | None
    eps: float
    threads: int
    leading: tuple[int, ...]
    normalized: tuple[int, ...]
    format: Format

    @property
    def kind(self) -> Any:
        """The working precision, as a scalar type."""
        return self.x.dtype.type

    @property
    def narrow(self) -> bool:
        """Whether the format is narrower than the working precision."""
        return self.format.p < formats.BINARY32.p

    @property
    def cotangent(self) -> Array:
        if self.dy is None:
            raise ValueError("The inputs have no dy: a backward pass needs the gradient of y.")
        return self.dy

    @property
    def scale(self) -> Array:
        """weight, or ones."""
        return np.ones(self.x.shape[1], self.kind) if self.weight is None else self.weight

    @property
    def shift(self) -> Array:
        """bias, or zeros."""
        return np.zeros(self.x.shape[1], self.kind) if self.bias is None else self.bias

    def stored(self, values: Array) -> Array:
        """Values rounded to the format and back to the working precision."""
        return values.astype(self.format.storage).astype(values.dtype) if self.narrow else values

    def answer(self, **arrays: Array) -> dict[str, Array]:
        """The outputs by name in the caller's shapes, rounded to the format."""
        full_shape = (*self.leading, *self.normalized)
        shapes = {"y": full_shape, "dx": full_shape, "mean": self.leading, "rstd": self.leading}
        return {
            name: values.astype(self.format.storage).reshape(shapes.get(name, self.normalized))
            for name, values in arrays.items()
        }

    def gradients(self, dx: Array, dweight: Array, dbias: Array) -> dict[str, Array]:
        """The backward outputs, with gradients of the affine parameters that are present."""
        affine = {"dweight": (self.weight, dweight), "dbias": (self.bias, dbias)}
        present = {
            name: gradient
            for name, (parameter, gradient) in affine.items()
            if parameter is not None
        }
        return self.answer(dx=dx, **present)


def read(
    inputs: Mapping[str, Any], params: Mapping[str, Any], format: Format | str
) -> LayerNormTask:
    """The task from inputs (x, weight, bias, dy) and params (eps, normalized_shape, threads).

    `threads` (default 1) is how many threads the kernel ran with: some sums depend on it.
    Raises ValueError where normalized_shape does not end x's shape.
    """
    target = formats.get(format)
    kind = np.float64 if target.p > formats.BINARY32.p else np.float32
    x = np.asarray(inputs["x"])
    wanted = params.get("normalized_shape")
    sizes = (wanted,) if isinstance(wanted, int | np.integer) else wanted
    normalized = x.shape[-1:] if sizes is None else tuple(int(size) for size in sizes)
    if not normalized or x.shape[x.ndim - len(normalized) :] != normalized or 0 in normalized:
        raise ValueError(f"normalized_shape {normalized} does not end x's shape {x.shape}.")
    n = math.prod(normalized)

    def rows(name: str, shape: tuple[int, ...]) -> Array | None:
        value = inputs.get(name)
        if value is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray(np.asarray(value).astype(kind).reshape(shape))

    leading = x.shape[: x.ndim - len(normalized)]
    matrix = (math.prod(leading), n)
    x_rows = rows("x", matrix)
    assert x_rows is not None
    return LayerNormTask(
        x=x_rows,
        dy=rows("dy", matrix),
        weight=rows("weight", (n,)),
        bias=rows("bias", (n,)),
        eps=float(params.get("eps", 1e-5)),
        threads=int(params.get("threads", 1)),
        leading=leading,
        normalized=normalized,
        format=target,
    )


def of_task(answers: Callable[..., dict[str, Array]]) -> Callable[..., dict[str, Array]]:
    """`Model.run`, after any options, of answers(*options, task, whether forward)."""

    @functools.wraps(answers)
    def run(*given: Any) -> dict[str, Array]:
        *options, inputs, params, direction, format = given
        with np.errstate(all="ignore"):
            return answers(*options, read(inputs, params, format), direction == "forward")

    return run
