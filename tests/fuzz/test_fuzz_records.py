"""Edited records: every view is made of them, or one sentence says which line is wrong."""

import io
import json
from pathlib import Path
from typing import Any

import mutations
import pytest
import synthetic
import test_sweep_pages as sweep_pages
import unrendered
from rich.console import Console

from refkernels import reporting
from refkernels.reporting.templating import page_script

OPS = ("linear", "layernorm", "cos")
Records = list[dict[str, Any]]


def measured() -> Records:
    """A few records of every kind, which every view has something to say of."""
    records = [synthetic.environment(name) for name in ("torch", "paddle")]
    for op in OPS:
        for framework in ("torch", "paddle"):
            for regime, parameters in synthetic.cases(op)[:4]:
                place = (op, "forward", "y", framework, "float32", regime, parameters)
                records.append(synthetic.measurement(*place))
                records[-1]["ulp"]["histogram"] = [[0.0, 4000], [0.5, 96]]
    case = "linear/seed[bias=zero,seed=7]"
    pair = ("linear", "forward", "y", "float32", case, "paddle", "torch", 0.5, 1e-6, 3)
    records.append(synthetic.agreement(*pair))
    records.append(synthetic.invariance("cos", "torch", "float32", "position", False))
    failed = ("cos", "backward", "dx", "paddle", "float32", "killed", "SIGSEGV")
    records.append(synthetic.failure(*failed))
    return records


MEASURED = measured()
SWEPT = [
    {**record, "binades": record["binades"][:3] + record["binades"][-3:]}
    if "binades" in record
    else record
    for record in sweep_pages.RECORDS
]
RECORDS = pytest.mark.parametrize(
    ("name", "records"),
    [("records.jsonl", MEASURED), ("sweeps.jsonl", SWEPT)],
    ids=["run", "sweep"],
)


def views(folder: Path, name: str) -> None:
    """All that `refkernels report` does."""
    swept = name == "sweeps.jsonl"
    write = reporting.write_sweep_report if swept else reporting.write_report
    table = reporting.sweep_table if swept else reporting.terminal_table
    written = write(folder)
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=100)
    console.print(table(reporting.read_records(folder / name)))
    for page in written[:2]:
        text = page.read_text(encoding="utf-8")
        assert not set(text) & {"\0", "\x1b", "\u202e"}, page
        ours = page_script()
        assert "<script" not in text.replace(f"<script>{ours}</script>", ""), page


def drawn(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Render the plots of every sixteenth case alone, which takes most of a case's time."""
    if number % 16:
        unrendered.install(monkeypatch)


def refusal(folder: Path, name: str) -> str | None:
    """The sentence that refuses the records, None where the views are made of them."""
    try:
        views(folder, name)
    except reporting.RecordsError as error:
        return str(error)
    return None


def mutate(records: Records, random: Any) -> list[Any]:
    """The records with one to three of them altered."""
    changed: list[Any] = list(records)
    for _ in range(int(random.integers(1, 4))):
        place = int(random.integers(len(changed)))
        changed[place] = mutations.mutated(changed[place], random)
    return changed


@RECORDS
def test_edited_records_are_shown_or_refused_in_a_sentence(
    hunt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, records: Records
) -> None:
    shown = 0
    for number, random in hunt.cases(8):
        lines = [mutations.line(record) for record in mutate(records, random)]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            with monkeypatch.context() as patch:
                drawn(number, patch)
                message = refusal(tmp_path, name)
        except Exception as error:
            raise AssertionError(
                f"{type(error).__name__}: {error}; {hunt.replay(number)}"
            ) from error
        shown += message is None
        assert message is None or (", line " in message and "\n" not in message), hunt.replay(
            number
        )
    assert hunt.run > 0
    assert shown > 0 or hunt.run < 20


@RECORDS
def test_damaged_records_are_read_or_refused_in_a_sentence(
    hunt: Any, tmp_path: Path, name: str, records: Records
) -> None:
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    for number, random in hunt.cases(30):
        (tmp_path / name).write_bytes(mutations.damaged(content, random))
        message = ""
        try:
            reporting.read_records(tmp_path / name)
        except reporting.RecordsError as error:
            message = str(error)
        except Exception as error:
            raise AssertionError(
                f"{type(error).__name__}: {error}; {hunt.replay(number)}"
            ) from error
        assert "\n" not in message, hunt.replay(number)
    assert hunt.run > 0
