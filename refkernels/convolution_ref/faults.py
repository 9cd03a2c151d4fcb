"""Wrong ways to convolve, as formulas. They mix groups and taps, so none is sliced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refkernels.convolution_ref import geometry
from refkernels.convolution_ref.formulas import (
    columns_of,
    dbias,
    direct,
    dweight,
    dweight_of,
    dx_direct,
    im2col,
    product,
    windows,
)  # fmt: skip
from refkernels.convolution_ref.geometry import Axis, Padding, Places, Source
from refkernels.ops import Fault, PerOutput
from refkernels.ops.formula import Formula


def _backward(dx: Formula, dweight: Formula) -> PerOutput:
    """Gradients of whole rows: these faults mix groups and taps."""
    return PerOutput((dx, dweight, dbias), sliced=False)


def _of_places(cause: str, change: Callable[[Axis], Axis]) -> Fault:
    """Another geometry with y's shape."""

    def forward(
        xp: Any, x: Any, weight: Any, row: Any, source: Source, bias: Any = None, **_: Any
    ) -> Any:
        altered = source.grid.changed(change)
        return direct(xp, xp.array(source.at(row, altered.windows)), weight, bias)

    def dx(xp: Any, weight: Any, row: Any, source: Source, back: Source, **_: Any) -> Any:
        table = source.grid.changed(change).back
        return dx_direct(xp, xp.array(back.at(row, table)), weight)

    def changed_dweight(xp: Any, dy: Any, source: Source, **_: Any) -> Any:
        return _dweight_at(xp, dy, source, source.grid.changed(change).windows)

    return Fault(cause, forward, _backward(dx, changed_dweight))


def _dweight_at(xp: Any, dy: Any, source: Source, table: Places) -> Any:
    gathered = source.gathered(table)
    return dweight_of(xp, dy, xp.array(gathered.reshape(-1, *gathered.shape[2:])))


def _padded(beyond: Padding) -> tuple[Fault, Fault]:
    """Elements of x in place of the zeros beyond its ends; dx is the right one's."""

    def forward(
        xp: Any, x: Any, weight: Any, row: Any, source: Source, bias: Any = None, **_: Any
    ) -> Any:
        return direct(xp, xp.array(source.at(row, source.grid.padded(beyond))), weight, bias)

    def changed_dweight(xp: Any, dy: Any, source: Source, **_: Any) -> Any:
        return _dweight_at(xp, dy, source, source.grid.padded(beyond))

    cause = f"padding_{beyond}"
    return Fault(cause, forward), Fault(cause, backward=_backward(dx_direct, changed_dweight))


def _unstrided_dweight(xp: Any, dy: Any, source: Source, **_: Any) -> Any:
    return _dweight_at(xp, dy, source, source.grid.changed(geometry.unstrided).windows)


def _narrow_col2im(xp: Any, above: Any, weight: Any, **_: Any) -> Any:
    """The taps' sums added one by one, each partial sum stored in x's format."""
    columns = columns_of(xp, above, weight)
    total = xp.take(columns, np.array([0]), axis=-1)
    for t in range(1, columns.shape[-1]):
        total = xp.store(total + xp.take(columns, np.array([t]), axis=-1))
    return xp.reshape(total, columns.shape[:-1])


def _narrow_images(
    xp: Any, dy: Any, x: Any, places: Any, source: Source, **_: Any
) -> Any:  # fmt: skip
    """The images' sums added one by one, each partial sum stored in x's format."""
    columns, places_per_image = windows(xp, x, places), len(source.grid.windows)
    total = None
    for start in range(0, dy.shape[1], places_per_image):
        image = np.arange(start, start + places_per_image)
        share = dweight_of(xp, xp.take(dy, image, axis=1), xp.take(columns, image, axis=0))
        total = xp.store(share if total is None else total + share)
    return dweight(xp, dy, x, places) if total is None else total


def _bias_along_width(
    xp: Any, x: Any, weight: Any, row: Any, source: Source, bias: Any = None, **_: Any
) -> Any:
    width = source.grid.out[-1]
    if bias is None or bias.shape[1] * bias.shape[2] != width:
        return direct(xp, x, weight, bias)
    along = xp.take(xp.reshape(bias, (width,)), row % width, axis=0)
    return product(xp, x, weight) + xp.reshape(along, (len(row), 1, 1))


def _bias_after_rounding(xp: Any, x: Any, weight: Any, bias: Any = None, **_: Any) -> Any:
    y = xp.store(product(xp, x, weight))
    return im2col(xp, x, weight) if bias is None else y + bias


FAULTS = (
    _of_places("dilation_ignored", geometry.undilated),
    _of_places("padding_at_front", geometry.swapped),
    _of_places("padding_causal", geometry.causal),
    _of_places("padding_as_same", geometry.needed),
    *_padded("replicated"),
    *_padded("reflected"),
    *_padded("circular"),
    Fault("stride_ignored", backward=_backward(dx_direct, _unstrided_dweight)),
    Fault(
        "narrow_col2im", backward=_backward(_narrow_col2im, dweight), unstable=True, outputs=("dx",)
    ),
    Fault(
        "narrow_image_sums",
        backward=_backward(dx_direct, _narrow_images),
        unstable=True,
        outputs=("dweight",),
    ),
    Fault("bias_along_width", _bias_along_width),
    Fault(
        "bias_after_rounding", _bias_after_rounding, unstable=True, right_in=("float32", "float64")
    ),
)
