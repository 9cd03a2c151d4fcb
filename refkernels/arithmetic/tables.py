"""Tables of constants: a JSON file beside the module that names them.

The file names the command that made it and the contents of each table. Numbers are hexadecimal, so
that their bits are exact, and a row of a table is one line.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


class Tables:
    """The tables of one file, by name. Raises KeyError for an unknown name."""

    def __init__(self, path: Path) -> None:
        tables = json.loads(path.read_text("ascii"))["tables"]
        self._words = {name: " ".join(table["rows"]).split() for name, table in tables.items()}
        self._widths = {name: len(table["rows"][0].split()) for name, table in tables.items()}

    def numbers(self, name: str) -> tuple[float, ...]:
        """Every number of a table."""
        return tuple(map(float.fromhex, self._words[name]))

    def number(self, name: str) -> float:
        """The only number of a table."""
        (value,) = self.numbers(name)
        return value

    def pair(self, name: str) -> tuple[float, float]:
        """High and low part of a constant."""
        high, low = self.numbers(name)
        return high, low

    def rows(self, name: str) -> npt.NDArray[np.float64]:
        """A table of two dimensions."""
        return np.array(self.numbers(name)).reshape(-1, self._widths[name])

    def integers(self, name: str) -> npt.NDArray[Any]:
        """A table of unsigned integers of 64 bits."""
        return np.array([int(word, 16) for word in self._words[name]], np.uint64)
