"""The sweeps' pages show what the records say; the same records give the same bytes."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from refkernels import reporting


def sweep_record(framework: str, **changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "schema": 1, "kind": "sweep", "op": "exp", "direction": "forward", "output": "y",
        "framework": framework, "version": "1.2+cpu", "device": "cpu", "dtype": "float32",
        "settings": {"OMP_NUM_THREADS": "1"}, "call": 1048576, "status": "ok", "reason": None,
        "method": "exhaustive", "ranges": [["0x00000000", "0xffffffff"]], "failures": [],
        "verdict": "special_value_mismatch",
        "counts": {
            "inputs": 4294967296, "correct": 4294000000, "compared": 4277190080,
            "not_correctly_rounded": 967296, "stray_nans": 3, "inversions": 17,
        },
        "distances": {"0": 4276222784, "1": 967295, "1024-2047": 1},
        "ulp": {
            "max": 1234.5, "error": -1234.5, "uncertainty": 1e-8, "exact": "0.25",
            "input": {"hex": "0xbfb17218", "decimal": "-1.3862944"},
            "got": {"hex": "0x3e800400", "decimal": "0.25003052"},
        },
        "bound": {"limit": 4.0, "source": "declared"},
        "firsts": {
            "stray_nans": {
                "input": {"hex": "0x7f800000", "decimal": "inf"},
                "got": {"hex": "0x7fc00000", "decimal": "nan"},
            }
        },
        "invariants": [],
        "binades": [
            {"sign": sign, "exponent": exponent, "inputs": 8388608, "correct": 8000000, "max": 0.75}
            for sign in (1, -1) for exponent in (*range(-127, 128), None)
        ],
        "tiers": {"float64": 4294967296}, "seconds": {"framework": 10.0, "total": 40.0},
    }  # fmt: skip
    return {**record, **changes}


RECORDS = [
    sweep_record("torch"),
    sweep_record("paddle", method="search", seed=0, tries=1000, dtype="float64"),
    {
        **{k: sweep_record("numpy")[k] for k in ("schema", "kind", "op", "direction", "device")},
        "framework": "numpy", "version": None, "dtype": "bfloat16", "output": "y",
        "status": "unsupported", "reason": "NumPy has no bfloat16",
    },
    {"schema": 1, "kind": "environment", "framework": "torch", "cpu": "a processor"},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps(record) + "\n" for record in RECORDS]
    (tmp_path / "sweeps.jsonl").write_text("".join(lines))
    return tmp_path


def test_every_view_says_what_was_tried_and_found(folder: Path) -> None:
    written = reporting.write_sweep_report(folder)
    assert [path.name for path in written[:2]] == ["sweep.md", "sweep.html"]
    for page in written[:2]:
        text = page.read_text()
        for part in ("4,294,967,296", "0xbfb17218", "≥ ", "0x7f800000", "no bfloat16", "17"):
            assert part in text, (page, part)
    plots = {path.name for path in (folder / "plots").iterdir()}
    assert "sweep-exp-float32.svg" in plots


def test_the_same_records_give_the_same_bytes(folder: Path) -> None:
    first = {path: path.read_bytes() for path in reporting.write_sweep_report(folder)}
    assert {path: path.read_bytes() for path in reporting.write_sweep_report(folder)} == first


def test_the_terminal_table_fits_eighty_columns(folder: Path) -> None:
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(reporting.sweep_table(RECORDS))
    text = console.export_text()
    assert "4,294,967,296" in text
    assert "0xbfb17218" in text
    assert "3 NaN for a number, first at 0x7f800000 = inf (got nan)" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
