"""An Enclosure in a line, and its first elements in decimal, for notebooks."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from refkernels.arithmetic.enclosure import Enclosure

_SHOWN = 4  # elements
_DIGITS = 20  # three more than float64 needs


def line(enclosure: Enclosure) -> str:
    """The shape, the largest radius, and the first elements of each part."""
    widest = float(np.max(enclosure.radius, initial=0.0))
    scale = f", scale={_some(enclosure.scale)}" if enclosure.scale.any() else ""
    parts = f"hi={_some(enclosure.hi)}{scale}"
    return f"Enclosure(shape={enclosure.shape}, largest radius={widest:.3g}, {parts})"


def table(enclosure: Enclosure) -> str:
    """The first values in 20 digits beside their radii, as a table of Markdown."""
    rows = [
        f"| {_index(enclosure, i)} | {_decimal(hi, lo, scale, _DIGITS)} "
        f"| {_decimal(radius, 0.0, scale, 2, decimal.ROUND_UP)} |"
        for i, (hi, lo, radius, scale) in enumerate(_first(enclosure))
    ]
    note = f"\n\n{enclosure.size - _SHOWN} more" if enclosure.size > _SHOWN else ""
    head = ["| element | value in 20 digits | radius |", "|---|---|---|"]
    return f"Enclosure, shape {enclosure.shape}\n\n" + "\n".join([*head, *rows]) + note


def _some(part: npt.NDArray[Any]) -> str:
    ellipsis = ", ..." if part.size > _SHOWN else ""
    return f"[{', '.join(map(repr, part.flat[:_SHOWN].tolist()))}{ellipsis}]"


def _first(enclosure: Enclosure) -> list[tuple[Any, ...]]:
    """(hi, lo, radius, scale) of the first elements in C order."""
    parts = (enclosure.hi, enclosure.lo, enclosure.radius, enclosure.scale)
    return list(zip(*(part.flat[:_SHOWN].tolist() for part in parts), strict=True))


def _index(enclosure: Enclosure, i: int) -> str:
    place = np.unravel_index(i, enclosure.shape) if enclosure.ndim else ()
    return f"[{', '.join(str(int(axis)) for axis in place)}]"


def _decimal(
    hi: float, lo: float, scale: int, digits: int, rounding: str = decimal.ROUND_HALF_EVEN
) -> str:
    """(hi + lo) 2^scale in that many digits."""
    if not np.isfinite(hi):
        return repr(hi)
    wide = decimal.Context(1200, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    short = decimal.Context(digits, rounding, decimal.MIN_EMIN, decimal.MAX_EMAX)
    exact = wide.add(Decimal(hi), Decimal(lo))
    if scale:  # a few digits more than are shown
        power = decimal.Context(digits + 10, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
        exact = power.multiply(exact, power.power(Decimal(2), scale))
    return str(short.plus(exact)) if exact else repr(hi)
