"""The journal keeps finished chunks, whole or not at all; no other sweep continues it."""

import json
from pathlib import Path

import pytest

from refkernels.records.journal import JournalError
from refkernels.runs.sweeps.journal import SweepJournal

QUESTION = {"ops": ["sin"], "chunk": 16}
A, B = "sin a environment", "sin b environment"
TOLD = {"status": "ok", "version": "1", "environment": {}}


def test_what_was_added_is_there_again(tmp_path: Path) -> None:
    SweepJournal(tmp_path, QUESTION, False).add(A, TOLD)
    assert SweepJournal(tmp_path, QUESTION, True).done == {A: TOLD}


def test_a_line_cut_short_by_a_kill_is_dropped(tmp_path: Path) -> None:
    journal = SweepJournal(tmp_path, QUESTION, False)
    journal.add(A, TOLD)
    journal.add(B, TOLD)
    path = tmp_path / "sweep-journal.jsonl"
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        path.write_bytes(whole[:end])
        again = SweepJournal(tmp_path, QUESTION, True)
        assert list(again.done) == [A]
        assert path.read_bytes() == whole[:first]
    path.write_bytes(whole)
    assert list(SweepJournal(tmp_path, QUESTION, True).done) == [A, B]


def test_a_damaged_line_another_question_and_a_used_folder_are_refused(tmp_path: Path) -> None:
    journal = SweepJournal(tmp_path, QUESTION, False)
    journal.add(A, TOLD)
    with pytest.raises(JournalError, match="already holds a sweep: add --resume"):
        SweepJournal(tmp_path, QUESTION, False)
    with pytest.raises(JournalError, match=r"holds a sweep with chunk = 16, not 32"):
        SweepJournal(tmp_path, {**QUESTION, "chunk": 32}, True)
    path = tmp_path / "sweep-journal.jsonl"
    path.write_bytes(b"{oops}\n" + path.read_bytes())
    with pytest.raises(JournalError, match="line 1, is damaged"):
        SweepJournal(tmp_path, QUESTION, True)
    (tmp_path / "sweep.json").unlink()
    with pytest.raises(JournalError, match="missing or damaged"):
        SweepJournal(tmp_path, QUESTION, True)


def test_at_the_end_records_stand_and_the_journal_goes(tmp_path: Path) -> None:
    journal = SweepJournal(tmp_path, QUESTION, False)
    journal.add(A, TOLD)
    path = journal.finish([{"kind": "sweep"}])
    assert json.loads(path.read_text()) == {"kind": "sweep"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sweep.json", "sweeps.jsonl"]
    assert SweepJournal(tmp_path, QUESTION, True).records() == [{"kind": "sweep"}]


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"cannot be written .* choose another --out\.$"):
        SweepJournal(tmp_path / "file", QUESTION, False)
