"""How an object becomes an array: by a protocol (`__array__`, a buffer, DLPack), or by items.

np.asarray takes any object that claims a length for a sequence and asks for its items one by one,
even a billion of them. So it is called only for objects that have a protocol.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex, str, bytes)
_SPOKEN = ("__array__", "__array_interface__", "__array_struct__")


def read(value: Any) -> npt.NDArray[Any] | None:
    """The array of a scalar, of a NumPy object and of an object with a protocol. None for others,
    lists and tuples among them, and where the object gives no array of numbers."""
    for convert in (np.asarray, np.from_dlpack):
        try:
            array = convert(value) if convert is np.from_dlpack or _speaks(value) else None
        except Exception:  # raised by the caller's own object
            continue
        if array is not None and array.dtype != object:
            return array
    return None


def why_unread(value: Any) -> str:
    """What an object with `__array__` says where it gives no array: the first line of its
    exception, or ""."""
    try:
        if any(hasattr(value, name) for name in _SPOKEN):
            np.asarray(value)
        return ""
    except Exception as error:  # the caller's own object's
        return str(error).strip().partition("\n")[0].strip()[:300]


def _speaks(value: Any) -> bool:
    if isinstance(value, _NUMBERS) or any(hasattr(value, name) for name in _SPOKEN):
        return True
    try:
        return memoryview(value) is not None
    except TypeError:
        return False
