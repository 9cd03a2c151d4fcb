"""A sweep's journal keeps finished chunks. (What any journal does: test_measurement_journal.)"""

import json
from pathlib import Path

from refkernels.runs.sweeps.journal import SweepJournal

QUESTION = {"ops": ["sin"], "chunk": 16}
A = "sin a environment"
TOLD = {"status": "ok", "version": "1", "environment": {}}


def test_what_was_added_is_there_again(tmp_path: Path) -> None:
    SweepJournal(tmp_path, QUESTION, False).add(A, TOLD)
    assert SweepJournal(tmp_path, QUESTION, True).done == {A: TOLD}


def test_at_the_end_records_stand_and_the_journal_goes(tmp_path: Path) -> None:
    journal = SweepJournal(tmp_path, QUESTION, False)
    journal.add(A, TOLD)
    path = journal.finish([{"kind": "sweep"}])
    assert json.loads(path.read_text()) == {"kind": "sweep"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sweep.json", "sweeps.jsonl"]
    assert SweepJournal(tmp_path, QUESTION, True).records() == [{"kind": "sweep"}]
