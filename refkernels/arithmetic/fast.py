"""Fast: the float64 tier of a function of one number, and its guarantee."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True)
class Fast:
    """The float64 tier of an elementwise op, for inputs of 32 bits and fewer. Sweeps run it.

    `kernel(x, hi)` fills hi (float64) for x (float32), flat, contiguous and of one length; it runs
    on the calling thread and releases the GIL. For every float32 x, with z = f(x):
    |hi - z| <= error |z|; or hi and z have one sign and are both >= 2^200 or both <= 2^-200 in
    magnitude (beyond any rounding to 32 bits). hi is NaN, infinite or zero only where z is
    undefined, has that infinity as its limit, or is exactly that signed zero.
    `values`: double-doubles for what float64 leaves open, as a `Function` has them, or None.
    """

    kernel: Callable[[npt.NDArray[Any], npt.NDArray[Any]], None]
    error: float
    values: Callable[..., None] | None = None
