"""The benchmark that measures everything keeps the records of a finished run compressed."""

import sys
from pathlib import Path

import accuracy
import pytest

from refkernels.records.files import compress, compressed


@pytest.mark.parametrize(("status", "kept"), [(0, True), (1, True), (2, False)])
def test_a_finished_run_is_compressed_and_may_be_asked_again(
    status: int, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text("{}\n", encoding="utf-8")
    monkeypatch.setattr(accuracy.subprocess, "call", lambda command: status)
    monkeypatch.setattr(accuracy, "keep", lambda folder: compress(folder / "records.jsonl"))
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "--out", str(tmp_path)])
    for _ in range(2):
        assert accuracy.main() == status
        assert compressed(records).exists() == kept
        assert records.exists() != kept
