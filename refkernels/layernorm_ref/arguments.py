"""The arguments of a LayerNorm, checked and laid out as rows, in the caller's dtypes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.blocks import read_only
from refkernels.arithmetic.scalars import as_count, as_eps
from refkernels.arithmetic.wording import shown

Rows = npt.NDArray[np.float64]
NormalizedShape = int | tuple[int, ...] | None
_ABSENT = object()
_CHUNK = 2**17  # elements: several float64 temporaries of this size stay in the cache


@dataclass(frozen=True)
class RowProblem:
    """x and dy as (rows, n) in their own dtypes; weight and bias as (n,) in float64, 1 and 0 where
    absent, and `given` as they came."""

    x: npt.NDArray[Any]
    weight: Rows
    bias: Rows
    eps: float
    shape: tuple[int, ...]
    leading: tuple[int, ...]
    normalized: tuple[int, ...]
    dtype: np.dtype[Any]
    given: dict[str, npt.NDArray[Any] | None]
    dy: npt.NDArray[Any] | None = None

    @property
    def cotangent(self) -> npt.NDArray[Any]:
        assert self.dy is not None
        return self.dy

    def parts(self) -> Iterator[tuple[slice, "RowProblem"]]:
        """The problem in parts of some rows each, whose temporaries fit into the cache, with the
        slices of these rows."""
        height, n = self.x.shape
        step = max(1, _CHUNK // n)
        for rows in (slice(at, min(at + step, height)) for at in range(0, height, step)):
            dy = None if self.dy is None else self.dy[rows]
            shape = (rows.stop - rows.start, n)
            layout: Any = {"shape": shape, "leading": shape[:1], "normalized": shape[1:]}
            yield rows, replace(self, x=self.x[rows], dy=dy, **layout)


def widened(values: npt.NDArray[Any]) -> Rows:
    """As float64, C order, read-only; copied only where necessary."""
    return read_only(np.ascontiguousarray(to_float64(values)))


def prepare(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float,
    normalized_shape: NormalizedShape,
    dy: Any = _ABSENT,
) -> RowProblem:
    """Checks shapes and eps, and lays x and dy out as rows.

    Raises TypeError for an array that is not of floats, an eps that is not a real number and a
    normalized_shape that is not a shape; ValueError for shapes that do not fit and for an eps that
    is negative or not finite.
    """
    array = as_float_array(x, "x")
    normalized = normalized_axes(array.shape, normalized_shape)
    n = math.prod(normalized)
    if n == 0:
        raise ValueError(
            f"normalized_shape {normalized} has no elements, and a row of length 0 has no mean: "
            "every normalised axis must be at least 1 long."
        )
    leading = array.shape[: array.ndim - len(normalized)]
    cotangent = None
    if dy is not _ABSENT:
        gradient = as_float_array(dy, "dy")
        if gradient.shape != array.shape:
            raise ValueError(
                f"dy has shape {gradient.shape} and x {array.shape}: dy is the gradient of y, "
                "so it must have the shape of x."
            )
        cotangent = gradient.reshape(math.prod(leading), n)
    given = {
        name: None if value is None else _affine(value, name, normalized)
        for name, value in (("weight", weight), ("bias", bias))
    }
    ones, zeros = np.ones(n), np.zeros(n)
    return RowProblem(
        x=array.reshape(math.prod(leading), n),
        weight=widened(ones if given["weight"] is None else given["weight"]),
        bias=widened(zeros if given["bias"] is None else given["bias"]),
        given=given,
        eps=as_eps(eps),
        shape=array.shape,
        leading=leading,
        normalized=normalized,
        dtype=array.dtype,
        dy=cotangent,
    )


def normalized_axes(shape: tuple[int, ...], normalized_shape: NormalizedShape) -> tuple[int, ...]:
    """The lengths of the normalised axes, the last ones of a shape. Raises as `prepare` does."""
    if not shape:
        raise ValueError("x is a scalar, but LayerNorm needs at least one axis to normalise over.")
    if normalized_shape is None:
        return shape[-1:]
    sizes = normalized_shape if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
    try:
        wanted = tuple(as_count(n, "normalized_shape", least=0) for n in sizes)
    except TypeError:
        raise TypeError(
            f"normalized_shape is {shown(normalized_shape)}, but it must be an integer or a tuple "
            "of integers, such as x.shape[-1:]."
        ) from None
    if not wanted or shape[len(shape) - len(wanted) :] != wanted or len(wanted) > len(shape):
        raise ValueError(
            f"normalized_shape {shown(wanted)} does not match x of shape {shape}: it must equal "
            "x's last axes, such as x.shape[-1:]."
        )
    return wanted


def _affine(value: Any, name: str, normalized: tuple[int, ...]) -> npt.NDArray[Any]:
    array = as_float_array(value, name)
    if array.shape != normalized:
        raise ValueError(
            f"{name} has shape {array.shape}, but it must have the normalised shape {normalized}."
        )
    return array.reshape(-1)
