"""What a caller passes to a LayerNorm, checked and laid out as rows of float64."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import as_float_array, to_float64

Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """x as (rows, n), C order, exactly as given; weight and bias as (n,), 1 and 0 where absent."""

    x: Rows
    weight: Rows
    bias: Rows
    eps: float
    shape: tuple[int, ...]
    leading: tuple[int, ...]
    normalized: tuple[int, ...]
    dtype: np.dtype[Any]
    dy: Rows | None = None

    @property
    def cotangent(self) -> Rows:
        assert self.dy is not None
        return self.dy


def prepare(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float,
    normalized_shape: int | tuple[int, ...] | None,
    dy: Any = None,
) -> Problem:
    """Check shapes and eps, and widen everything to float64 (exact).

    Raises TypeError for dtypes that are no floating point, ValueError for shapes and eps.
    """
    array = as_float_array(x, "x")
    normalized = _normalized(array.shape, normalized_shape)
    n = math.prod(normalized)
    if n == 0:
        raise ValueError(
            f"normalized_shape {normalized} has no elements, and a row of length 0 has no mean: "
            "every normalised axis must be at least 1 long."
        )
    leading = array.shape[: array.ndim - len(normalized)]
    cotangent = None
    if dy is not None:
        gradient = as_float_array(dy, "dy")
        if gradient.shape != array.shape:
            raise ValueError(
                f"dy has shape {gradient.shape} and x {array.shape}: dy is the gradient of y, "
                "so it must have the shape of x."
            )
        cotangent = _rows(gradient, (-1, n), math.prod(leading))
    return Problem(
        x=_rows(array, (-1, n), math.prod(leading)),
        weight=_affine(weight, "weight", normalized, 1.0),
        bias=_affine(bias, "bias", normalized, 0.0),
        eps=_epsilon(eps),
        shape=array.shape,
        leading=leading,
        normalized=normalized,
        dtype=array.dtype,
        dy=cotangent,
    )


def _rows(array: npt.NDArray[Any], shape: tuple[int, int], rows: int) -> Rows:
    return np.ascontiguousarray(to_float64(array).reshape(rows, shape[1]))


def _normalized(
    shape: tuple[int, ...], normalized_shape: int | tuple[int, ...] | None
) -> tuple[int, ...]:
    if not shape:
        raise ValueError("x is a scalar, but LayerNorm needs at least one axis to normalise over.")
    if normalized_shape is None:
        return shape[-1:]
    if isinstance(normalized_shape, int | np.integer):
        wanted: tuple[int, ...] = (int(normalized_shape),)
    else:
        wanted = tuple(int(size) for size in normalized_shape)
    if not wanted or shape[len(shape) - len(wanted) :] != wanted or len(wanted) > len(shape):
        raise ValueError(
            f"normalized_shape {wanted} does not match x of shape {shape}: it must equal x's "
            "last axes, such as x.shape[-1:]."
        )
    return wanted


def _affine(value: Any, name: str, normalized: tuple[int, ...], default: float) -> Rows:
    if value is None:
        return np.full(math.prod(normalized), default)
    array = as_float_array(value, name)
    if array.shape != normalized:
        raise ValueError(
            f"{name} has shape {array.shape}, but it must have the normalised shape {normalized}."
        )
    return np.ascontiguousarray(to_float64(array)).reshape(-1)


def _epsilon(eps: float) -> float:
    try:
        value = float(eps)
    except (TypeError, ValueError):
        raise TypeError(f"eps is {eps!r}, but it must be a real number.") from None
    if not (math.isfinite(value) and value >= 0.0):
        raise ValueError(f"eps is {value}, but it must be finite and at least 0.")
    return value
