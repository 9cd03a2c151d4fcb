"""The file of a module's tables: the format that their generators write."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "refkernels"


@dataclass(frozen=True)
class Table:
    """A table of numbers; `about` says what they are."""

    name: str
    about: str
    rows: list[list[float]]


def words(row: Iterable[float | int]) -> str:
    """The numbers in hexadecimal, which has their bits without decimal rounding."""
    return " ".join(
        number.hex() if isinstance(number, float) else f"0x{number:016X}" for number in row
    )


def write(path: Path, about: str, tables: Iterable[Table]) -> None:
    """Writes the file that `refkernels.arithmetic.tables` reads."""
    by_name = {
        table.name: {"about": table.about, "rows": [*map(words, table.rows)]} for table in tables
    }
    content = {"about": about, "tables": by_name}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", "ascii")
