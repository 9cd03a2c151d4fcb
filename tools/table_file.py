"""The file of a module's tables, as their generators write it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "refkernels"


@dataclass(frozen=True)
class Table:
    """`about`: what it holds; `rows`: of numbers."""

    name: str
    about: str
    rows: list[list[float]]


def words(row: Iterable[float | int]) -> str:
    """Hexadecimal: the bits, and no decimal rounding."""
    return " ".join(one.hex() if isinstance(one, float) else f"0x{one:016X}" for one in row)


def write(path: Path, about: str, tables: Iterable[Table]) -> None:
    """Writes the file that `refkernels.arithmetic.tables` reads."""
    found = {one.name: {"about": one.about, "rows": [*map(words, one.rows)]} for one in tables}
    content = {"about": about, "tables": found}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", "ascii")
