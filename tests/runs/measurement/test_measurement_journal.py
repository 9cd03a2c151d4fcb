"""A run's directory: nothing done is lost, nothing is kept half, nothing is mixed."""

from pathlib import Path
from unittest import mock

import pytest

from refkernels.records import journal
from refkernels.records.files import compress
from refkernels.records.journal import JournalError
from refkernels.runs.measurement.journal import MeasurementJournal

QUESTION = {"frameworks": ["numpy"], "settings": {}, "units": ["a", "b"]}


def test_finished_units_are_read_back_in_the_plan_s_order(tmp_path: Path) -> None:
    store = MeasurementJournal(tmp_path / "run", QUESTION, resume=False)
    store.add("b", [{"n": 2}])
    store.add("a", [{"n": 1}, {"n": 1.5}])
    store.finish(["a", "b"])
    assert [record["n"] for record in store.records()] == [1, 1.5, 2]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "records.jsonl",
        "run.json",
    ]


def test_a_finished_run_that_is_kept_compressed_is_that_run(tmp_path: Path) -> None:
    sin = {"kind": "measurement", "op": "sin", "case": {"name": "sin/a"}, "dtype": "float32"}
    records = [sin | {"direction": "forward"}, sin | {"direction": "backward"}]
    keys = ["sin/a float32 forward", "sin/a float32 backward"]
    store = MeasurementJournal(tmp_path, QUESTION, resume=False)
    for key, record in zip(keys, records, strict=True):
        store.add(key, [record])
    compress(store.finish(keys))
    with pytest.raises(JournalError, match="already holds a run"):
        MeasurementJournal(tmp_path, QUESTION, resume=False)
    again = MeasurementJournal(tmp_path, QUESTION, resume=True)
    assert again.complete
    assert not any(map(again.waiting, keys))
    assert again.records() == records
    path = again.finish(keys[:1])  # what is written anew takes its place
    assert again.records() == records[:1]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["records.jsonl", "run.json"]
    compress(path).write_bytes(b"not gzip")
    with pytest.raises(JournalError, match=r"records.jsonl.gz is cut off or damaged"):
        MeasurementJournal(tmp_path, QUESTION, resume=True)


def test_each_unit_is_written_at_once_and_the_disk_is_waited_for_once_a_second(
    tmp_path: Path,
) -> None:
    store = MeasurementJournal(tmp_path, QUESTION, resume=False)
    clock = [0.0, 0.0, 0.5, 0.9, 1.0, 1.0]  # asked twice where the disk is waited for
    with (
        mock.patch.object(journal.time, "monotonic", side_effect=clock),
        mock.patch.object(journal.os, "fsync") as fsync,
    ):
        for number, waited in enumerate((1, 1, 1, 2), start=1):
            store.add(str(number), [{"n": number}])
            assert (tmp_path / "journal.jsonl").read_bytes().count(b"\n") == number
            assert fsync.call_count == waited


def test_the_journal_goes_when_the_records_are_on_the_disk(tmp_path: Path) -> None:
    store = MeasurementJournal(tmp_path, QUESTION, resume=False)
    store.add("a", [{"n": 1}])
    there = []

    def synchronise(_: int) -> None:
        there.append((tmp_path / "journal.jsonl").exists())

    with mock.patch.object(journal.os, "fsync", synchronise):
        store.finish(["a"])
    assert there == [True]
    assert not (tmp_path / "journal.jsonl").exists()


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_journal_cut_anywhere_loses_only_its_last_unit(tmp_path: Path, cut: int) -> None:
    store = MeasurementJournal(tmp_path, QUESTION, resume=False)
    store.add("a", [{"n": 1}])
    store.add("b", [{"n": 2}])
    path = tmp_path / "journal.jsonl"
    content = path.read_bytes()
    assert cut < len(content.splitlines()[1])
    path.write_bytes(content[:-cut])
    again = MeasurementJournal(tmp_path, QUESTION, resume=True)
    assert again.done == {"a": [{"n": 1}]}
    again.add("b", [{"n": 2}])
    again.finish(["a", "b"])
    assert [record["n"] for record in again.records()] == [1, 2]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    store = MeasurementJournal(tmp_path, QUESTION, resume=False)
    store.add("a", [{"n": 1}])
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"unit": 3\n' + path.read_bytes())
    with pytest.raises(JournalError, match="line 1, is damaged"):
        MeasurementJournal(tmp_path, QUESTION, resume=True)


def test_a_used_directory_is_never_overwritten(tmp_path: Path) -> None:
    MeasurementJournal(tmp_path, QUESTION, resume=False).add("a", [])
    with pytest.raises(JournalError, match="add --resume"):
        MeasurementJournal(tmp_path, QUESTION, resume=False)


@pytest.mark.parametrize(
    ("key", "value"), [("frameworks", ["torch"]), ("settings", {"A": "1"}), ("units", ["a"])]
)
def test_a_run_is_not_continued_with_another_question(
    tmp_path: Path, key: str, value: object
) -> None:
    MeasurementJournal(tmp_path, QUESTION, resume=False).add("a", [])
    with pytest.raises(JournalError, match=f"with {key} ="):
        MeasurementJournal(tmp_path, {**QUESTION, key: value}, resume=True)


def test_a_missing_manifest_is_an_error_with_a_cure(tmp_path: Path) -> None:
    MeasurementJournal(tmp_path, QUESTION, resume=False).add("a", [])
    (tmp_path / "run.json").unlink()
    with pytest.raises(JournalError, match=r"missing or damaged.*choose another --out"):
        MeasurementJournal(tmp_path, QUESTION, resume=True)


def test_a_file_in_the_folder_s_place_is_an_error_with_a_cure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="choose another --out"):
        MeasurementJournal(tmp_path / "file", QUESTION, resume=False)
