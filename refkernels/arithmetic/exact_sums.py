"""Exact sums of many float64: integers by exponent, in one pass over the numbers.

A finite float64 is m 2^e with an integer |m| < 2^53. The halves of m, below 2^27 each, are added to
two int64 counters of its exponent, which hold 2^36 of them; 4,096 integers remain to be added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.jit import njit

_EXPONENTS = 2047  # exponents of finite numbers; subnormals share that of the smallest normal ones
_LOWEST = -1075  # exponent of half the unit of a number whose biased exponent is 0


@njit(nogil=True)
def _count(bits: Any, low: Any, high: Any) -> None:
    for word in bits:
        exponent = (word >> 52) & 0x7FF
        m = word & 0xFFFFFFFFFFFFF
        if exponent > 0:
            m |= 0x10000000000000
        else:
            exponent = 1
        if word < 0:
            low[exponent] -= m & 0x7FFFFFF
            high[exponent] -= m >> 27
        else:
            low[exponent] += m & 0x7FFFFFF
            high[exponent] += m >> 27


def exact_sum(values: npt.NDArray[Any]) -> tuple[int, int]:
    """Integers (m, e) with m 2^e the exact sum of finite float64 numbers."""
    low, high = np.zeros((2, _EXPONENTS), np.int64)
    flat = values.reshape(-1)
    for start in range(0, flat.size, 1 << 20):
        block = np.ascontiguousarray(flat[start : start + (1 << 20)], np.float64)
        _count(block.view(np.int64), low, high)
    total = 0
    for exponent in np.flatnonzero(low | high).tolist():
        total += (int(low[exponent]) + (int(high[exponent]) << 27)) << exponent
    return total, _LOWEST
