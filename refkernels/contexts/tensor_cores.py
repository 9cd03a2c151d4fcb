"""TensorCores: matrix products as a matrix instruction adds them; everything else as in `Working`.

An instruction adds k exact products and the accumulator at once: all terms are cut to F fraction
bits below the largest exponent among them, a product's being the sum of its factors', and the sum
is cut to the accumulator's digits. Instructions follow one another along K.

Sources: Fasi, Higham, Mikaitis and Pranesh (2021), doi:10.7717/peerj-cs.330; MMA-Sim (2025),
arXiv:2511.10909; Khattak and Mikaitis (2025), arXiv:2512.07004.
"""

from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.bits import EXPONENT, bits_of, float_of
from refkernels.arithmetic.formats import BINARY32, Format
from refkernels.arithmetic.jit import njit
from refkernels.contexts.value import Value
from refkernels.contexts.working import Working, WorkingValue, data


class Core(NamedTuple):
    """k products an instruction, F fraction bits, an accumulator of p bits."""

    k: int
    fraction: int
    p: int = 24


CORES = {"volta": Core(4, 23), "ampere": Core(8, 24), "hopper": Core(16, 25)}
"""For factors of 16 bits, accumulated in float32. Volta errs most where all terms have one sign: it
cuts the products; the others also cut the sum, always towards zero, and err most on mixed signs."""


class TensorCores(Working):
    """Arithmetic in `format`, 16 bits in binary32; `options` are those of `Working`."""

    def __init__(self, format: Format | str, core: str = "hopper", **options: Any) -> None:
        storage = formats.get(format)
        super().__init__(BINARY32 if storage.p < BINARY32.p else storage, storage, **options)
        self.name = f"TensorCores({self.storage})"
        self._core = CORES[core]

    def matmul(self, a: Value, b: Value) -> WorkingValue:
        left, right = data(a).astype(np.float64), np.swapaxes(data(b).astype(np.float64), -1, -2)
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left, right = (
            np.ascontiguousarray(np.broadcast_to(part, batch + part.shape[-2:]))
            for part in (left, right)
        )
        result = np.empty((*batch, left.shape[-2], right.shape[-2]))
        for place in np.ndindex(batch):
            add_products(left[place], right[place], result[place], self._core)
        with np.errstate(over="ignore"):
            return self.value(result)


@njit
def add_products(a: Any, b: Any, c: Any, core: Any) -> None:
    """Fills c (M, N) from a (M, K) and b (N, K), of float64 numbers whose products are exact.

    Terms are cut in units of the last fraction bit: at most 2^(F + 2) each, so that float64 adds
    them exactly.
    """
    k, fraction, p = core
    digits = ~((np.int64(1) << np.int64(53 - p)) - 1)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for start in range(0, a.shape[1], k):
                stop = min(start + k, a.shape[1])
                top = _exponent(total)
                for t in range(start, stop):
                    top = max(top, _exponent(a[i, t]) + _exponent(b[j, t]))
                top = min(max(top, -900), 900)
                scale = float_of(np.int64(1023 + fraction - top) << 52)
                units = np.trunc(total * scale)
                for t in range(start, stop):
                    units += np.trunc(a[i, t] * b[j, t] * scale)
                total = float_of(bits_of(units / scale) & digits)
            c[i, j] = total


@njit(inline="always")
def _exponent(x: float) -> Any:
    return ((bits_of(x) & EXPONENT) >> 52) - 1023
