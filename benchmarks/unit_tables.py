"""The tables of a GPU's special function units, which contexts/special_functions.py reads: every
key's result, asked of the device.

    python benchmarks/unit_tables.py FOLDER [NAME ...]    CuPy and a GPU; all by default
"""

from __future__ import annotations

import io
import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.contexts import special_functions
from refkernels.contexts.special_functions import Integers, Singles

INTERVALS = {"ex2": 64, "lg2": 512, "sin": 256, "tanh": 1632}  # each with a parabola
_M, _ONE = 1 << 23, 0x3F800000  # mantissas, and the bits of 1


def arguments(name: str) -> Singles:
    """An argument for each key of a unit's table."""
    mantissas = np.arange(_M)
    if name == "ex2":
        return (mantissas * 2.0**-23).astype(np.float32)
    if name == "sin":
        turn = float(np.float32(0.15915494))  # as the unit takes it, cut to 25 bits
        return ((mantissas + 0.6) * 2.0**-25 / turn).astype(np.float32)
    if name == "tanh":
        kept = special_functions.TANH.items()
        return np.concatenate([_floats(mantissas[:: 1 << low], power) for power, low in kept])
    if name == "lg2":
        return _floats(mantissas, np.where(mantissas < special_functions.LOW, 0, -1))
    two = np.arange(1 if name == "rcp" else 2)[:, None]
    return _floats(mantissas, two).reshape(-1)


def _floats(mantissas: Integers, exponents: Any) -> Singles:
    return ((mantissas + (exponents << 23)) + _ONE).astype(np.uint32).view(np.float32)


def table(name: str, results: Singles) -> dict[str, Any]:
    """The table that gives these results of `arguments`, as `special_functions` reads it."""
    bits = results.view(np.uint32).astype(np.int64) & 0x7FFFFFFF
    bits += _M if name == "ex2" else 0
    parts: dict[str, Any] = {"rest": np.zeros((1, bits.size), np.uint8)}
    if name in INTERVALS:
        values = bits.astype(np.uint32).view(np.float32).astype(np.float64)
        values = values.reshape(INTERVALS[name], -1)
        place = (np.arange(values.shape[1]) + 0.5) / values.shape[1] - 0.5
        parts["curves"] = np.linalg.lstsq(np.vander(place, 3, True), values.T, rcond=None)[0]
    distance = bits - special_functions.found(name, np.arange(bits.size), parts)
    folded = (distance << 1) ^ (distance >> 63)
    size = max(int(folded.max()).bit_length() + 7 >> 3, 1)
    planes = folded.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :size]
    return {**parts, "rest": np.ascontiguousarray(planes.T)}


def measured(folder: Path, name: str, unit: Callable[[Singles], Singles]) -> Path:
    """The file of a unit's table, made unless it is there."""
    path = folder / f"{name}.npz.xz"
    if not path.exists():
        file = io.BytesIO()
        np.savez(file, **table(name, unit(arguments(name))))
        path.write_bytes(lzma.compress(file.getvalue()))
    return path


def on_the_device(name: str) -> Callable[[Singles], Singles]:
    """A unit's instruction, on the GPU."""
    import cupy

    flushed = "" if name == "tanh" else ".ftz"
    code = f'asm("{name}.approx{flushed}.f32 %0, %1;" : "=f"(y) : "f"(x));'
    kernel = cupy.ElementwiseKernel("float32 x", "float32 y", code, name)
    return lambda x: cupy.asnumpy(kernel(cupy.asarray(x)))


if __name__ == "__main__":
    for name in sys.argv[2:] or (*INTERVALS, "rcp", "rsqrt", "sqrt"):
        print(measured(Path(sys.argv[1]), name, on_the_device(name)))
