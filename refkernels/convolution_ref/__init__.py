"""Convolutions over one and two axes, and their gradients, certified.

    conv1d(x, weight, bias=None, *, stride=1, padding="valid", dilation=1, groups=1)   -> Enclosure
    conv1d_backward(dy, x, weight, bias=None, ...)             -> Backward(dx, dweight, dbias)
    conv2d(x, weight, bias=None, ...), conv2d_backward(dy, x, weight, bias=None, ...)

`geometry` tabulates which elements meet, `formulas` holds the forms for any number of axes,
`winograd` the fast form, `faults` the wrong ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from refkernels.arguments import TextOrNumbers
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.scalars import as_count
from refkernels.convolution_ref import cases
from refkernels.convolution_ref.faults import FAULTS
from refkernels.convolution_ref.formulas import (
    BACKWARD,
    BACKWARD_TRUTH,
    BACKWARDS,
    FORMS,
    FORWARD,
    TRUTH,
)  # fmt: skip
from refkernels.convolution_ref.geometry import Source, axes_of
from refkernels.op import Direction, Op
from refkernels.ops import Prepared, formula_op
from refkernels.ops.public import enclosure_of, enclosures_of, public_names

Numbers = int | Sequence[int]


def _prepare(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction, rank: int
) -> Prepared:
    """x with places, groups and taps as axes. The elements under the taps are gathered here."""
    x, weight, bias = inputs["x"], inputs["weight"], inputs.get("bias")
    groups = as_count(params["groups"], "groups")
    _check(x, weight, bias, groups, rank)
    leading, channels, lengths = x.shape[: -rank - 1], x.shape[-rank - 1], x.shape[-rank:]
    out, taps = weight.shape[0], weight.shape[2:]
    grid = axes_of(lengths, taps, *(params[name] for name in ("stride", "padding", "dilation")))
    images, of_x, of_y = (math.prod(extent) for extent in (leading, lengths, grid.out))
    split = (groups, out // groups, channels // groups, math.prod(taps))
    source = Source.of(x.reshape(images, groups, split[2], of_x), grid)
    arrays = {
        "weight": weight.reshape(split),
        "bias": None if bias is None else bias.reshape(split[:2]),
    }

    def restore(name: str, array: Any) -> Any:
        if name in ("dweight", "dbias"):
            return array.reshape(weight.shape if name == "dweight" else (out,))
        shape = (out, *grid.out) if name == "y" else (channels, *lengths)
        return np.moveaxis(array, 1, -1).reshape(*leading, *shape)

    if direction == "forward":
        arrays["x"] = source.gathered(grid.windows)
        arrays["row"] = np.arange(images * of_y).reshape(images, of_y)
        return Prepared(arrays, {"source": source}, restore, FORWARD)
    dy = inputs["dy"]
    if dy.shape != (*leading, out, *grid.out):
        raise ValueError(f"dy has shape {dy.shape}, and y has {(*leading, out, *grid.out)}.")
    dy = dy.reshape(images, groups, split[1], of_y)
    back = Source.of(dy, grid.turned())
    table = np.where(grid.windows < 0, -1, grid.windows + of_x * np.arange(images)[:, None, None])
    arrays |= {
        "dy": np.moveaxis(dy, -1, 1).reshape(images * of_y, *split[:2]),
        "x": np.moveaxis(source.array[..., :-1], -1, 1),
        "above": back.gathered(grid.back),
        "row": np.arange(images * of_x).reshape(images, of_x),
        "places": table.reshape(images * of_y, split[3]),
    }
    if not np.isfinite(to_float64(weight)).all():
        arrays["there"] = np.broadcast_to(grid.back >= 0, (images, *grid.back.shape))
    return Prepared(arrays, {"source": source, "back": back}, restore, BACKWARD)


def _check(x: Any, weight: Any, bias: Any, groups: int, rank: int) -> None:
    axes = " ".join("DHW"[3 - rank :])
    if x.ndim < rank + 1:
        raise ValueError(f"x has shape {x.shape}, but it must be (..., C, {axes}).")
    if weight.ndim != rank + 2:
        raise ValueError(f"weight has shape {weight.shape}, but it must have {rank + 2} axes.")
    channels = x.shape[-rank - 1]
    for name, number in (("x", channels), ("y", weight.shape[0])):
        if number % groups:
            raise ValueError(f"groups is {groups}, and {name} has {number} channels.")
    if weight.shape[1] * groups != channels:
        raise ValueError(
            f"weight has shape {weight.shape}, and x has {channels} channels in {groups} groups: "
            f"weight.shape[1] is {channels // groups}."
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias has shape {bias.shape}, and y has {weight.shape[0]} channels.")


def _op(name: str, axes: str, taps: str, rank: int) -> Op:
    return formula_op(
        name,
        f"x[... c {axes}], weight[o c {taps}], bias[o]? -> y[... o {axes}]",
        coupled=axes,  # their lengths in y depend on the params
        params={"stride": 1, "padding": TextOrNumbers("valid"), "dilation": 1, "groups": 1},
        prepare=functools.partial(_prepare, rank=rank),
        truth=TRUTH,
        forms=FORMS,
        backward=BACKWARDS,
        backward_truth=BACKWARD_TRUTH,
        faults=FAULTS,
        cases=functools.partial(cases.cases, name, rank),
        factors=("x", "weight"),
    )


CONV1D = _op("conv1d", "w", "k", 1)
CONV2D = _op("conv2d", "h w", "k l", 2)
OPS = (CONV1D, CONV2D)
__all__ = ["OPS", "Backward", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


class Backward(NamedTuple):
    """dx has x's shape, dweight weight's. dbias is (O,), or None if no bias was given."""

    dx: Enclosure
    dweight: Enclosure
    dbias: Enclosure | None


_gradients = enclosures_of(OPS, Backward)


@_enclosure
def conv2d() -> None:
    """y[n, o, i, j] = bias[o] + sum over c, k, l of weight[o, c, k, l]
    x[n, c, i stride + k dilation - low, j stride + l dilation - low], c over the channels of o's
    group; a cross-correlation, as in all frameworks.

    x           (..., C, H, W), float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    weight      (O, C / groups, K, L); bias (O,)
    stride      one number, or one for each axis; dilation likewise
    padding     zeros: a number, one for each axis, or [top, bottom, left, right]; "valid" is 0,
                "same" gives ceil(H / stride) rows, an odd zero at the end
    groups      the number of groups: each takes C / groups adjacent channels of x and gives
                O / groups of y
    certify     the question (`refkernels.Enclosure`)

    With K terms that are not padding the bound is about (K + 1) u (sum |x weight| + |bias|), proven
    for the direct sum and for a matrix product, in any order, the bias first or last; and, for 3 x
    3 taps with stride and dilation 1, for Winograd's F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3) with tiles
    from the first element on: `OPS` has it elementwise, and form by form.

    Padding is zeros: where it meets a weight that is not finite, y is NaN.

    Raises TypeError for other dtypes and for params that are not integers, ValueError for shapes
    and params that do not fit.
    Sources: Dumoulin and Visin (2016), "A guide to convolution arithmetic for deep learning",
    arXiv:1603.07285; Lavin and Gray (2016), arXiv:1509.09308.
    """


@_gradients
def conv2d_backward() -> None:
    """dx[n, c, u, v] = sum over o, k, l of weight[o, c, k, l] dy[n, o, i, j],
    dweight[o, c, k, l] = sum over n, i, j of dy[n, o, i, j] x[n, c, u, v], dbias[o] = sum over
    n, i, j of dy[n, o, i, j], with u = i stride + k dilation - low, and v likewise from j and l.

    dy has y's shape; otherwise as `conv2d`. The bound of dx is proven for one sum over
    channels and taps, for the taps' sums kept in x's format and added (col2im), and for Winograd's
    forms; those of dweight and dbias for sums in any order.
    """


@_enclosure
def conv1d() -> None:
    """y[n, o, i] = bias[o] + sum over c, k of weight[o, c, k] x[n, c, i stride + k dilation - low].

    x is (..., C, W), weight (O, C / groups, K); padding a number or [low, high]. Otherwise as
    `conv2d`; Winograd's forms are F(2, 3) and F(4, 3). Source: PyTorch documentation,
    `torch.nn.Conv1d`.
    """


@_gradients
def conv1d_backward() -> None:
    """dx[n, c, u] = sum over o, k of weight[o, c, k] dy[n, o, i], u = i stride + k dilation - low;
    dweight[o, c, k] = sum over n, i of dy[n, o, i] x[n, c, u]; dbias[o] = sum over n, i of
    dy[n, o, i]. Otherwise as `conv2d_backward`.
    """
