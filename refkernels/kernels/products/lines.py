"""An operand as lines, the rows of `left` or the columns of `right`, panels of them, and its range.

A panel holds a block of terms of a few lines, interleaved as the inner loops of `lanes` read them.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import WIDTH


class Lines(NamedTuple):
    """Contiguous float64 (P, lines, K), or (P, K, lines) where across is true."""

    values: npt.NDArray[np.float64]
    across: bool

    @staticmethod
    def of(operand: npt.NDArray[np.float64]) -> "Lines":
        """From (P, lines, K), contiguous or not; a view where either order is contiguous."""
        swapped = np.swapaxes(operand, 1, 2)
        if swapped.flags.c_contiguous and not operand.flags.c_contiguous:
            return Lines(np.require(swapped, None, ["C", "W"]), True)
        # Writable, too: a kernel is compiled anew for a read-only array.
        return Lines(np.require(operand, None, ["C", "W"]), False)

    @property
    def terms(self) -> int:
        return int(self.values.shape[1 if self.across else 2])

    @property
    def number(self) -> int:
        return int(self.values.shape[2 if self.across else 1])


@inner
def pack(
    lines: Any, across: bool, p: int, first: int, last: int, k0: int, n: int, panel: Any, width: int
) -> None:
    """panel[width k + x] = term k0 + k of line first + x; beyond the last line it is unchanged."""
    if across:
        for k in range(n):
            # Slices: an index that might be negative would keep the loop from vectorising.
            source, target = lines[p, k0 + k, first:last], panel[width * k : width * (k + 1)]
            for x in range(source.size):
                target[x] = source[x]
    else:
        for x in range(last - first):
            source, target = lines[p, first + x, k0 : k0 + n], panel[x:]
            for k in range(n):
                target[width * k] = source[k]


@inner
def pack_chosen(
    lines: Any, across: bool, p: Any, line: Any, width: int, k0: int, n: int, panel: Any
) -> None:
    """panel[WIDTH k + x] = term k0 + k of line[x] of lines[p[x]], x < width; else unchanged."""
    if across:
        for x in range(width):
            source, target = lines[p[x], k0 : k0 + n, line[x]], panel[x:]
            for k in range(n):
                target[WIDTH * k] = source[k]
    else:
        for x in range(width):
            source, target = lines[p[x], line[x], k0 : k0 + n], panel[x:]
            for k in range(n):
                target[WIDTH * k] = source[k]


@njit(nogil=True)
def magnitude_bits(bits: Any) -> Any:
    """From the bits of float64 numbers: those of the largest magnitude, and those of the smallest
    nonzero magnitude minus 1 (2^64 - 1 where all are zeros)."""
    mask = np.uint64(0x7FFFFFFFFFFFFFFF)
    one = np.uint64(1)
    largest = np.uint64(0)
    smallest = ~np.uint64(0)
    for i in range(bits.size):
        magnitude = bits[i] & mask
        largest = max(largest, magnitude)
        smallest = min(smallest, magnitude - one)  # zero wraps to the largest of all
    return largest, smallest
