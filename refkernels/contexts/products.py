"""Products of float64 matrices to twice the precision, for heads of any size.

`kernels.products.dot2` takes numbers of [2^-420, 2^481) and zeros. An operand whose largest element
lies outside [2^-200, 2^480) is multiplied by a power of two first. Elements that are then below
2^-420 are left out of `values` and kept, unscaled, in `rest`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.contexts.ball_rules import ETA
from refkernels.kernels.products import dot2
from refkernels.kernels.products.lines import Lines

Doubles = npt.NDArray[np.float64]
_LEAST, _SMALLEST, _LARGEST, _USUAL = -420, -200, 480, 400  # exponents of two


class Operand(NamedTuple):
    """values 2^-shift + rest: `values` in the kernel's range, `rest` what is below it."""

    values: Doubles
    shift: int
    rest: Doubles

    @staticmethod
    def of(heads: Doubles) -> Operand:
        """From finite numbers."""
        exponents = np.where(heads != 0.0, np.frexp(heads)[1], -2000)
        largest = int(exponents.max(initial=-2000))
        usual = _SMALLEST < largest <= _LARGEST or largest == -2000
        shift = 0 if usual else _USUAL - largest
        small = exponents + shift <= _LEAST
        rest = np.where(small, heads, 0.0)
        return Operand(np.ldexp(np.where(small, 0.0, heads), shift), shift, rest)


def product(left: Operand, right: Operand) -> tuple[Doubles, Doubles, Doubles]:
    """high + low ± radius of the values' product, (..., m, k) by (..., k, n); batch axes broadcast.

    Scaled back, high, low and radius may underflow, by half the smallest subnormal each: the radius
    covers it. Overflow is infinite.
    """
    a, b = left.values, right.values
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    if 0 in (*shape, a.shape[-1]):
        return np.zeros(shape), np.zeros(shape), np.zeros(shape)
    flat = [
        np.broadcast_to(factor, (*batch, *factor.shape[-2:])).reshape(-1, *factor.shape[-2:])
        for factor in (a, b)
    ]
    lines = Lines.of(flat[0]), Lines.of(np.swapaxes(flat[1], 1, 2))
    index = np.arange(len(flat[0]))
    parts = [part.reshape(shape) for part in dot2.dot_products(*lines, (index, index), False)]
    back = -(left.shift + right.shift)
    if not back:
        return parts[0], parts[1], parts[2]
    with np.errstate(all="ignore"):
        high, low, radius = (np.ldexp(part, back) for part in parts)
        return high, low, radius + 4.0 * ETA
