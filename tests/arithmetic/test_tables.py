"""Tables of constants have the bits that the tools write."""

import importlib
import json
from pathlib import Path

import mpmath
import numpy as np
import pytest

from refkernels.arithmetic.tables import Tables

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("family", ["elementary", "trig"])
def test_a_file_holds_what_its_tool_writes(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    tool = importlib.import_module(f"generate_{family}_tables")
    words = importlib.import_module("table_file").words
    kept = json.loads(tool.TARGET.read_text("ascii"))
    assert kept["about"] == tool.ABOUT
    before = mpmath.mp.prec
    made = tool.tables()
    mpmath.mp.prec = before
    assert len(made) > 10
    for table in made:
        content = {"about": table.about, "rows": [words(row) for row in table.rows]}
        assert kept["tables"][table.name] == content, table.name


def test_numbers_keep_their_bits_and_rows_their_width(tmp_path: Path) -> None:
    path = tmp_path / "tables.json"
    rows = ["0x1.8p+1 -0x1p-1074", "-0x0.0p+0 0x1p+1023"]
    integers = {"about": "words", "rows": ["0xFFFFFFFFFFFFFFFF", "0x1"]}
    path.write_text(json.dumps({"tables": {"A": {"about": "a", "rows": rows}, "B": integers}}))
    tables = Tables(path)
    expected = np.array([[3.0, -5e-324], [-0.0, 2.0**1023]])
    assert tables.rows("A").tobytes() == expected.tobytes()
    assert tables.integers("B").tolist() == [2**64 - 1, 1]
    with pytest.raises(KeyError):
        tables.numbers("C")
