"""An Enclosure in the making, of rows: one radius a row until an element needs its own."""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure, trusted

Values = npt.NDArray[np.float64]


class Draft:
    """hi of shape (rows, n), owned; lo and scale 0 and radius one number a row to begin with.

    `put` writes elements of a later tier in place. A part gets room of its own only when
    something is put that its constant cannot hold.
    """

    def __init__(self, hi: Values, radius: Values | float = 0.0) -> None:
        self._hi = hi
        self._parts: dict[str, Any] = {
            "lo": np.zeros((1, 1)),
            "radius": np.reshape(radius, (-1, 1)),
            "scale": np.zeros((1, 1), np.int64),
        }

    def rows(self, at: npt.NDArray[np.intp]) -> Enclosure:
        """Some of the rows, as they are now."""
        parts = {k: part[at] if len(part) > 1 else part for k, part in self._parts.items()}
        return trusted(self._hi[at], **parts)

    def put(self, at: Any, found: Enclosure) -> None:
        """Elements at an index of (rows, n) from another tier."""
        self._hi[at] = found.hi
        for name, part in self._parts.items():
            new = getattr(found, name)
            if part.shape != self._hi.shape:
                if part.size == 1 and np.all(new == part):
                    continue
                self._parts[name] = part = _own(part, self._hi.shape)
            part[at] = new

    def enclosure(self, leading: tuple[int, ...], normalized: tuple[int, ...]) -> Enclosure:
        """All of it, in the caller's shape."""
        parts = {}
        for name, part in self._parts.items():
            tail = normalized if part.shape == self._hi.shape else (1,) * len(normalized)
            parts[name] = part.reshape(*(leading if len(part) == len(self._hi) else ()), *tail)
        return trusted(self._hi.reshape(leading + normalized), **parts)


def _own(part: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    if not part.any():  # zeros cost nothing until they are written
        return np.zeros(shape, part.dtype)
    whole = np.empty(shape, part.dtype)
    whole[:] = part
    return whole
