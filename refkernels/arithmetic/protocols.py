"""What a caller's object holds: an array by a protocol (`__array__`, a buffer, DLPack), or items.

np.asarray takes any object that claims a length for a sequence and asks it for its items one by
one, be they a billion. So it is asked only of what speaks a protocol.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex, str, bytes)
_SPOKEN = ("__array__", "__array_interface__", "__array_struct__")


def read(value: Any) -> npt.NDArray[Any] | None:
    """The array of a scalar, of NumPy's objects and of what speaks a protocol; None for the others,
    lists and tuples among them, and where what the object gives is no array of numbers."""
    for convert in (np.asarray, np.from_dlpack):
        try:
            array = convert(value) if convert is np.from_dlpack or _speaks(value) else None
        except Exception:  # of the caller's own object
            continue
        if array is not None and array.dtype != object:
            return array
    return None


def items_of(values: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    """Those that a list or tuple holds, whatever a class of the caller's own makes of it."""
    return list.__iter__(values) if isinstance(values, list) else tuple.__iter__(values)


def _speaks(value: Any) -> bool:
    if isinstance(value, _NUMBERS) or any(hasattr(value, name) for name in _SPOKEN):
        return True
    try:
        return memoryview(value) is not None
    except TypeError:
        return False
