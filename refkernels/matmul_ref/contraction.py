"""Every answer of this family is one contraction: c[b, i, j] = sum_k left[b, i, k] right[b, k, j].

Products, their gradients and the affine layer differ only in shapes. This module checks the shapes
and brings them to that form, once for the oracle, the bound, the condition number and the plain
algorithm.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Contraction:
    """left (P, M, K), right (Q, K, N); batch element b takes left[left_index[b]] and
    right[right_index[b]]. `shape` is the answer's. `addend` (N,) is added to every row.
    `partials` > 1 says that a framework may store that many partial sums and then add them up.
    """

    left: Array
    right: Array
    left_index: npt.NDArray[np.int64]
    right_index: npt.NDArray[np.int64]
    shape: tuple[int, ...]
    addend: Array | None = None
    partials: int = 1

    @property
    def terms(self) -> int:
        """How many terms each answer sums: K, and one more for the addend."""
        return int(self.left.shape[2]) + (self.addend is not None)

    @property
    def batched_shape(self) -> tuple[int, int, int]:
        """(batch, M, N)."""
        return (len(self.left_index), self.left.shape[1], self.right.shape[2])


def of_matmul(a: Array, b: Array) -> Contraction:
    """c = a @ b with NumPy's rules: 1-d operands gain an axis and lose it again."""
    wide_a, wide_b, batch, shape = promoted(a, b)
    return _contract(wide_a, wide_b, batch, (), shape)


def of_matmul_backward(dc: Array, a: Array, b: Array) -> tuple[Contraction, Contraction]:
    """da = dc @ bᵀ and db = aᵀ @ dc, summed over the axes that a and b were broadcast along."""
    wide_a, wide_b, batch, shape = promoted(a, b)
    if dc.shape != shape:
        raise ValueError(
            f"dc has shape {dc.shape}, but a {a.shape} @ b {b.shape} has shape {shape}: "
            "a cotangent has the shape of the output."
        )
    wide_dc = dc.reshape(*batch, wide_a.shape[-2], wide_b.shape[-1])
    da = _contract(wide_dc, _transpose(wide_b), batch, _broadcast_axes(wide_a, batch), a.shape)
    db = _contract(_transpose(wide_a), wide_dc, batch, _broadcast_axes(wide_b, batch), b.shape)
    return da, db


def of_linear(x: Array, weight: Array, bias: Array | None) -> Contraction:
    """y = x @ weightᵀ + bias for x (..., in), weight (out, in), bias (out,)."""
    _check_linear(x, weight, bias)
    rows = x.reshape(1, math.prod(x.shape[:-1]), x.shape[-1])
    shape = (*x.shape[:-1], weight.shape[0])
    return Contraction(rows, weight.T[None], _zero(), _zero(), shape, addend=bias)


def of_linear_backward(
    dy: Array, x: Array, weight: Array, bias: Array | None
) -> tuple[Contraction, Contraction, Contraction]:
    """dx = dy @ weight, dweight = dyᵀ @ x, dbias = sum of dy over all its leading axes."""
    _check_linear(x, weight, bias)
    out, inner = weight.shape
    if dy.shape != (*x.shape[:-1], out):
        raise ValueError(
            f"dy has shape {dy.shape}, but linear of x {x.shape} and weight {weight.shape} has "
            f"shape {(*x.shape[:-1], out)}: a cotangent has the shape of the output."
        )
    count = math.prod(x.shape[:-1])
    slopes = dy.reshape(1, count, out)
    partials = max(math.prod(x.shape[:-2]), 1)
    ones = np.ones((1, 1, count), dy.dtype)
    dx = Contraction(slopes, weight[None], _zero(), _zero(), x.shape)
    factors = _transpose(slopes), x.reshape(1, count, inner)
    dweight = Contraction(*factors, _zero(), _zero(), weight.shape, partials=partials)
    dbias = Contraction(ones, slopes, _zero(), _zero(), (out,), partials=partials)
    return dx, dweight, dbias


def promoted(a: Array, b: Array) -> tuple[Array, Array, tuple[int, ...], tuple[int, ...]]:
    """Both operands with at least two axes, the batch shape and the answer's shape."""
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(
            f"matmul takes operands with at least one axis, but a has shape {a.shape} and b "
            f"{b.shape}: multiply by a scalar with *."
        )
    wide_a = a[None, :] if a.ndim == 1 else a
    wide_b = b[:, None] if b.ndim == 1 else b
    if wide_a.shape[-1] != wide_b.shape[-2]:
        raise ValueError(
            f"a has shape {a.shape} and b {b.shape}: the last axis of a ({wide_a.shape[-1]}) and "
            f"the {'only' if b.ndim == 1 else 'second to last'} axis of b ({wide_b.shape[-2]}) "
            "must have the same length."
        )
    try:
        batch = np.broadcast_shapes(wide_a.shape[:-2], wide_b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"a has shape {a.shape} and b {b.shape}: their leading axes {wide_a.shape[:-2]} and "
            f"{wide_b.shape[:-2]} do not broadcast; each pair must be equal or contain a 1."
        ) from None
    rows = () if a.ndim == 1 else (a.shape[-2],)
    columns = () if b.ndim == 1 else (b.shape[-1],)
    return wide_a, wide_b, batch, batch + rows + columns


def _check_linear(x: Array, weight: Array, bias: Array | None) -> None:
    if x.ndim == 0 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"x has shape {x.shape} and weight {weight.shape}: linear takes x (..., in_features) "
            "and weight (out_features, in_features)."
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"bias has shape {bias.shape} and weight {weight.shape}: bias must be "
            f"(out_features,) = {weight.shape[:1]}."
        )


def _contract(
    left: Array,
    right: Array,
    batch: tuple[int, ...],
    summed: tuple[int, ...],
    shape: tuple[int, ...],
) -> Contraction:
    """left @ right over the batch, with its `summed` axes as part of the contraction."""
    kept = tuple(axis for axis in range(len(batch)) if axis not in summed)
    kept_shape = tuple(batch[axis] for axis in kept)
    left, left_index = _fold(left, batch, kept, summed, summed_first=False)
    right, right_index = _fold(right, batch, kept, summed, summed_first=True)
    at = [np.broadcast_to(index, kept_shape).flatten() for index in (left_index, right_index)]
    partials = max(math.prod(batch[axis] for axis in summed), 1)
    return Contraction(left, right, at[0], at[1], shape, partials=partials)


def _fold(
    operand: Array,
    batch: tuple[int, ...],
    kept: tuple[int, ...],
    summed: tuple[int, ...],
    summed_first: bool,
) -> tuple[Array, npt.NDArray[np.int64]]:
    """The operand with three axes (kept, rows, columns), the summed axes inside the rows or the
    columns; and the index of each kept batch position's matrix, so that none is repeated."""
    depth = len(batch)
    operand = operand.reshape((1,) * (depth + 2 - operand.ndim) + operand.shape)
    rows, columns = operand.shape[-2:]
    kept_lengths = tuple(operand.shape[axis] for axis in kept)
    inside = math.prod(operand.shape[axis] for axis in summed)
    if summed_first:
        order, folded = (*kept, *summed, depth, depth + 1), (inside * rows, columns)
    else:
        order, folded = (*kept, depth, *summed, depth + 1), (rows, inside * columns)
    count = math.prod(kept_lengths)
    index = np.arange(count, dtype=np.int64).reshape(kept_lengths)
    return operand.transpose(order).reshape(count, *folded), index


def _broadcast_axes(operand: Array, batch: tuple[int, ...]) -> tuple[int, ...]:
    """The batch axes along which the operand was repeated."""
    missing = len(batch) - (operand.ndim - 2)
    return tuple(
        axis
        for axis, size in enumerate(batch)
        if size != 1 and (axis < missing or operand.shape[axis - missing] == 1)
    )


def _transpose(matrices: Array) -> Array:
    return np.swapaxes(matrices, -1, -2)


def _zero() -> npt.NDArray[np.int64]:
    return np.zeros(1, np.int64)
