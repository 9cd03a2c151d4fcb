"""The worst element, with inputs and outputs also in hex, so that anyone can recompute it."""

import math
from collections.abc import Mapping
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.op import Sum

_SHOWN = 4  # elements of a row or column that are written out


def text(value: Any) -> dict[str, str]:
    """A float of any format in decimal (the shortest that identifies it) and in hex."""
    return {"decimal": str(value), "hex": float(value).hex()}


def exact_text(reference: Enclosure, index: tuple[int, ...]) -> dict[str, str]:
    """The exact value in 25 digits and as hex of hi + lo, and the radius."""
    hi, lo = float(reference.hi[index]), float(reference.lo[index])
    scale, radius = int(reference.scale[index]), float(reference.radius[index])
    if not math.isfinite(hi):
        return {"decimal": str(hi), "hex": str(hi), "radius": "0"}
    bits = hi.hex() if lo == 0.0 else f"{hi.hex()} {'-' if lo < 0 else '+'} {abs(lo).hex()}"
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 25, MIN_EMIN, MAX_EMAX
        power = Decimal(2) ** scale
        decimal = (Decimal(hi) + Decimal(lo)) * power
        spread = Decimal(radius) * power
    return {
        "decimal": f"{decimal:.24e}" if decimal else str(hi),
        "hex": f"({bits}) * 2^{scale}" if scale else bits,
        "radius": f"{spread:.2e}" if spread else "0",
    }


def relevant_inputs(
    product: Sum | None,
    index: tuple[int, ...],
    shape: tuple[int, ...],
    inputs: Mapping[str, npt.NDArray[Any]],
) -> dict[str, dict[str, Any]]:
    """The inputs that one element of an output of that shape depends on, or those at its place.

    For a sum of products (`product`: its letters), these are the first 4 elements of the row and of
    the column, with a note of how many there are. For any other op, each input gives its element at
    the same place, as far as the shapes determine it.
    """
    if product is not None and len(product.letters) <= len(index):
        terms = {name: axes for name, axes in product.terms.items() if name in inputs}
        if all(inputs[name].ndim >= len(axes) for name, axes in terms.items()):
            return {
                name: _show(inputs[name], _product_slice(inputs[name], product, axes, index))
                for name, axes in terms.items()
            }
    return {name: _show(array, _same_place(array, index, shape)) for name, array in inputs.items()}


def _product_slice(
    array: npt.NDArray[Any], product: Sum, labels: str, index: tuple[int, ...]
) -> tuple[Any, ...]:
    axes = product.letters
    fixed = dict(zip(axes, index[len(index) - len(axes) :], strict=True))
    last = tuple(fixed.get(label, slice(None)) for label in labels)
    batch = array.shape[: array.ndim - len(labels)]
    leading = index[: len(index) - len(axes)]
    if len(leading) < len(batch):  # the batch is summed over, as in a linear's dweight
        return (slice(None),) * len(batch) + last
    leading = leading[len(leading) - len(batch) :]
    return tuple(0 if n == 1 else i for n, i in zip(batch, leading, strict=True)) + last


def _same_place(
    array: npt.NDArray[Any], index: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[Any, ...]:
    """The element at index, where the array broadcasts to the output; the row or column there,
    where its leading or trailing axes are the output's shape; else all of it."""
    places = index[len(index) - array.ndim :] if array.ndim <= len(index) else ()
    tail = shape[len(shape) - array.ndim :] if array.ndim <= len(shape) else ()
    if array.ndim <= len(index) and all(
        n in (1, m) for n, m in zip(array.shape, tail, strict=True)
    ):
        return tuple(0 if n == 1 else i for n, i in zip(array.shape, places, strict=True))
    if array.shape[: len(shape)] == shape:
        return (*index, *[slice(None)] * (array.ndim - len(index)))
    if array.ndim > len(shape) and array.shape[array.ndim - len(shape) :] == shape:
        return (*[slice(None)] * (array.ndim - len(index)), *index)
    return (slice(None),) * array.ndim


def _show(array: npt.NDArray[Any], place: tuple[Any, ...]) -> dict[str, Any]:
    chosen = array[place]
    where = [":" if isinstance(axis, slice) else int(axis) for axis in place]
    if np.ndim(chosen) == 0:
        return {"index": where, **text(chosen)}
    first = [text(value) for value in chosen.reshape(-1)[:_SHOWN]]
    more = "" if chosen.size <= _SHOWN else ", ..."
    shown = {
        "index": where,
        "decimal": ", ".join(value["decimal"] for value in first) + more,
        "hex": ", ".join(value["hex"] for value in first) + more,
    }
    if more:
        shown["note"] = f"first {_SHOWN} of {chosen.size} elements"
    return shown
