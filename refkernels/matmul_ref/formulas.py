"""Products as formulas: tests compare the certified tiers with them, and cones follow from them.

    c[b, i, j] = sum over k of a[b, i, k] b[b, k, j]
    y[i, o] = sum over k of x[i, k] weight[o, k] + bias[o]

A product's leading axes that both operands have are rows; those of a alone form the letter q, those
of b alone the letter p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from refkernels.matmul_ref.contraction import promoted
from refkernels.op import Direction
from refkernels.ops import Prepared, formulas_of
from refkernels.ops.letters import Signature

_FORWARD = Signature.parse("a[... q i k], b[... p k j] -> c[... q p i j]")
_BACKWARD = _FORWARD.backward({"dc": "c"}, {"da": "a", "db": "b"})


def _matmul(xp: Any, a: Any, b: Any) -> Any:
    rows, q, i, k = a.shape
    p, j = b.shape[1], b.shape[3]
    return xp.matmul(xp.reshape(a, (rows, q, 1, i, k)), xp.reshape(b, (rows, 1, p, k, j)))


def _prepare_matmul(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """Leading axes grouped by the operands that have them; operands of one axis as matrices."""
    a, b = inputs["a"], inputs["b"]
    wide_a, wide_b, batch, shape = promoted(a, b)
    lengths = [
        [1] * (len(batch) - operand.ndim + 2) + [*operand.shape[:-2]]
        for operand in (wide_a, wide_b)
    ]
    owners = ["both" if m == n else "a" if n == 1 else "b" for m, n in zip(*lengths, strict=True)]
    common, of_a, of_b = (
        [axis for axis, owner in enumerate(owners) if owner == wanted]
        for wanted in ("both", "a", "b")
    )
    ordered = {
        "a": _Axes(common, (of_a,), lengths[0], wide_a.shape[-2:], a.shape),
        "b": _Axes(common, (of_b,), lengths[1], wide_b.shape[-2:], b.shape),
        "c": _Axes(common, (of_a, of_b), batch, (wide_a.shape[-2], wide_b.shape[-1]), shape),
    }
    moved = {name: ordered[name[-1]].moved(array) for name, array in inputs.items()}
    signature = _FORWARD if direction == "forward" else _BACKWARD
    return Prepared(moved, params, lambda name, array: ordered[name[-1]].restored(array), signature)


class _Axes:
    """The order of one array's axes: those of both operands, each group as one axis, the matrix."""

    def __init__(
        self,
        common: list[int],
        groups: tuple[list[int], ...],
        lengths: Sequence[int],
        matrix: tuple[int, ...],
        shape: tuple[int, ...],
    ) -> None:
        self.order = [*common, *(axis for group in groups for axis in group)]
        ones = [axis for axis in range(len(lengths)) if axis not in self.order]
        self.order += ones
        self.apart = (*(lengths[axis] for axis in self.order), *matrix)
        self.lengths, self.matrix, self.shape = tuple(lengths), matrix, shape
        joined = (math.prod(lengths[axis] for axis in group) for group in groups)
        self.together = (*(lengths[axis] for axis in common), *joined, *matrix)

    def moved(self, array: Any) -> Any:
        matrix = (len(self.lengths), len(self.lengths) + 1)
        wide = array.reshape(self.lengths + self.matrix)
        return wide.transpose((*self.order, *matrix)).reshape(self.together)

    def restored(self, array: Any) -> Any:
        back = [*np.argsort(self.order), len(self.order), len(self.order) + 1]
        return array.reshape(self.apart).transpose(back).reshape(self.shape)


def _linear(xp: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    rows, features = x.shape[0], weight.shape[1]
    product = xp.matmul(xp.reshape(x, (1, *x.shape)), xp.transpose(weight, (0, 2, 1)))
    y = xp.reshape(product, (rows, features))
    return y if bias is None else y + bias


def _bias_first(xp: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    if bias is not None:
        x = xp.concatenate([xp.broadcast(xp.number(1), (x.shape[0], 1)), x], axis=1)
        weight = xp.concatenate([xp.reshape(bias, (1, -1, 1)), weight], axis=2)
    return _linear(xp, x, weight)


def _prepare_linear(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """A bias of zeros in the backward pass, which always gives its gradient."""
    if direction == "forward":
        return Prepared(inputs, params)
    weight = inputs["weight"]
    return Prepared({**inputs, "bias": np.zeros(weight.shape[0], weight.dtype)}, params)


MATMUL = formulas_of(
    "matmul",
    "a[... i k], b[... k j] -> c[... i j]",
    forms={"sum": _matmul},
    prepare=_prepare_matmul,
)
LINEAR = formulas_of(
    "linear",
    "x[... k], weight[o k], bias[o]? -> y[... o]",
    forms={"sum": _linear, "bias_first": _bias_first},
    prepare=_prepare_linear,
)
