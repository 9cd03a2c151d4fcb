"""A run that is stopped, however abruptly, continues from its journal to the same records."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import planted_faults
import pytest
from command_helpers import refused
from typer.testing import CliRunner
from waiting import HANGS, until

from refkernels.cli.app import app
from refkernels.cli.shared import pages
from refkernels.frameworks import catalog
from refkernels.records import journal
from refkernels.records.files import compress
from refkernels.records.journal import JournalError
from refkernels.runs import measurement
from refkernels.runs.measurement import run
from refkernels.runs.measurement.journal import MeasurementJournal, unit_of

CASES = ("sin/specials*", "sin/array_size[n=17,*", "tan/array_size[n=1,*", "matmul/specials*")
DTYPES = ("float32", "float64")
# The command line with the fakes in its catalog, which waits to be stopped when so many units are
# done, and without the report, which is not what is tested here.
COMMAND = """
import signal, sys, threading
from pathlib import Path
stopped = threading.Event()
def stop(*frame):
    stopped.set()
    signal.default_int_handler(*frame)
signal.signal(signal.SIGINT, stop)  # a shell's background jobs ignore it
sys.path.insert(0, {fakes!r})
import planted_faults
from refkernels.__main__ import main
from refkernels.cli.shared import pages
from refkernels.frameworks import catalog
from refkernels.runs.measurement.journal import MeasurementJournal
for fault in ("correct", "hang"):
    catalog.register(planted_faults.framework(fault, Path({folder!r})))
add = MeasurementJournal.add
left = [{units}]
def waiting(*arguments):
    add(*arguments)
    left[0] -= 1
    if not left[0]:
        stopped.wait()
MeasurementJournal.add = waiting
pages.show_measured = lambda *_: None
main()
"""


def command(
    folder: Path, out: Path, *more: str, units: int = 0, fake: str = "fake_correct"
) -> list[str]:
    code = COMMAND.format(fakes=str(planted_faults.SOURCE.parent), folder=str(folder), units=units)
    return [sys.executable, "-c", code, *words(out, *more, fake=fake)]


def words(out: Path, *more: str, fake: str = "fake_correct") -> list[str]:
    options = [f"--case={case}" for case in CASES] + [f"--dtype={dtype}" for dtype in DTYPES]
    options += ["--framework=numpy", f"--framework={fake}", "--device=cpu", f"--out={out}"]
    return ["measure", *options, *more]


def finished(folder: Path, out: Path, *more: str) -> None:
    """A run to its end, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "show_measured", lambda *_: None)
        with planted_faults.registered(planted_faults.framework("correct", folder)):
            result = CliRunner().invoke(app, words(out, *more))
    assert result.exit_code == 0, result.output


def records_of(out: Path) -> list[dict[str, Any]]:
    """The records without their times."""
    lines = (out / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [{key: value for key, value in r.items() if key != "seconds"} for r in records]


def units_done(out: Path) -> int:
    """How many units the journal holds; its first line tells of the environments."""
    journal = out / "journal.jsonl"
    return journal.read_bytes().count(b"\n") - 1 if journal.exists() else -1


def children(pid: int) -> list[int]:
    lists = [p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for text in lists for child in text.split()]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    finished(folder, folder / "out")
    return folder / "out", records_of(folder / "out")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL], ids=lambda s: s.name)
def test_a_stopped_run_resumed_has_the_records_of_an_undisturbed_one(
    stop: signal.Signals, tmp_path: Path, undisturbed: tuple[Path, list[dict[str, Any]]]
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(tmp_path, out, units=6), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until(lambda: units_done(out) >= 4 or process.poll() is not None)
    workers = children(process.pid)
    process.send_signal(stop)
    _, stderr = process.communicate(timeout=HANGS)
    assert process.returncode == (130 if stop == signal.SIGINT else -signal.SIGKILL)
    assert ("add --resume to continue" in stderr) == (stop == signal.SIGINT)
    assert not (out / "records.jsonl").exists()
    if sys.platform == "linux":
        assert len(workers) == 2
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    done = units_done(out)
    begun = (out / "journal.jsonl").read_bytes()
    finished(tmp_path, out, "--resume")
    assert records_of(out) == undisturbed[1]
    # What was done was not done again: its times are still those of the first run.
    before = [json.loads(line)["records"] for line in begun.splitlines()[: done + 1]]
    again = (out / "records.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [record for records in before for record in records]
    assert 0 < len(kept) < len(again)
    assert {json.dumps(record) for record in kept} <= {json.dumps(json.loads(a)) for a in again}


def test_stopping_does_not_wait_for_an_op_that_hangs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(tmp_path, out, "--case=cos/array_size[n=1,*", "--timeout=600", fake="fake_hang"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: (tmp_path / "hangs").exists() or process.poll() is not None)
    until(lambda: units_done(out) >= 1 or process.poll() is not None)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=HANGS)
    assert process.returncode == 130
    assert units_done(out) == 1
    assert "Traceback" not in stderr


def test_a_finished_run_resumed_does_nothing(
    undisturbed: tuple[Path, list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, records = undisturbed
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    monkeypatch.setattr(pages, "show_measured", lambda *_: None)
    monkeypatch.delattr(run, "_ask")  # not one unit is measured
    with planted_faults.registered(planted_faults.framework("correct", tmp_path)):
        resumed = CliRunner().invoke(app, words(out, "--resume"))
    assert resumed.exit_code == 0, resumed.output
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert len(records) > 50


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--resume", "--case=cos/specials*"], "holds a run with units ="),
        (["--resume", "--framework=torch"], "holds a run with frameworks ="),
        (["--resume", "--set=OMP_NUM_THREADS=1"], "holds a run with settings ="),
        ([], "already holds a run: add --resume"),
    ],
)
def test_a_used_folder_is_refused_for_anything_but_its_own_question(
    more: list[str], said: str, undisturbed: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    with planted_faults.registered(planted_faults.framework("correct", tmp_path)):
        result = CliRunner().invoke(app, words(undisturbed[0], *more))
    message = refused(result)
    assert said in message
    assert len(message) < 400  # not all units by name


def late(folder: Path, fault: str) -> catalog.Framework:
    """A framework called `late`, which has this fault by now."""
    source = planted_faults.framework(fault, folder).adapter.read_text(encoding="utf-8")
    adapter = folder / "late_adapter.py"
    adapter.write_text(source, encoding="utf-8")
    return catalog.Framework("late", adapter, module="numpy", python=sys.executable)


@pytest.mark.parametrize("stopped", [False, True], ids=["ended", "stopped"])
def test_what_a_framework_that_had_not_started_left_open_is_asked_again(
    tmp_path: Path, stopped: bool
) -> None:
    plan = measurement.select(dtypes=["float64"], cases=["sin/array_size[n=1,*", "cos/specials*"])
    out = tmp_path / "out"
    options = {"frameworks": ["numpy", "late"], "devices": ["cpu"]}
    catalog.register(late(tmp_path, "crash_at_import"))
    try:
        first = measurement.measure(plan, out, **options)
        unstarted = [record for record in first.records if record.get("started") is False]
        assert {record["status"] for record in unstarted} == {"killed"}
        assert len(unstarted) == len(plan.units) == 4
        again = measurement.measure(plan, out, **options, resume=True)  # it still does not start
        assert again.records == first.records
        if stopped:  # before the records were written
            records = [json.loads(line) for line in (out / "records.jsonl").open(encoding="utf-8")]
            store = MeasurementJournal(out, json.loads((out / "run.json").read_text()), True)
            for key in dict.fromkeys(map(unit_of, records)):
                store.add(key, [record for record in records if unit_of(record) == key])
            (out / "records.jsonl").unlink()
        late(tmp_path, "exception")
        mended = measurement.measure(plan, out, **options, resume=True)
        answers = [record for record in mended.records if record.get("framework") == "late"]
        assert "environment" in {record["kind"] for record in answers}
        # An exception is what the framework answered, and is final.
        statuses = {
            record["op"]: record["status"] for record in answers if record["kind"] == "measurement"
        }
        assert statuses == {"sin": "error", "cos": "ok"}
        assert not any(record.get("started") is False for record in mended.records)
        late(tmp_path, "correct")
        assert measurement.measure(plan, out, **options, resume=True).records == mended.records
    finally:
        catalog.unregister("late")


def test_a_run_is_not_continued_with_another_version(tmp_path: Path) -> None:
    plan = measurement.select(dtypes=["float64"], cases=["tan/array_size[n=1,*"])
    measurement.measure(plan, tmp_path, frameworks=["numpy"])
    records = (tmp_path / "records.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "records.jsonl").unlink()
    environment = json.loads(records[0])
    begun = {"unit": "environments", "records": [{**environment, "version": "1.0"}]}
    (tmp_path / "journal.jsonl").write_text(json.dumps(begun) + "\n")
    with pytest.raises(JournalError, match=r"numpy was 1\.0, and now it is \d"):
        measurement.measure(plan, tmp_path, frameworks=["numpy"], resume=True)


def test_a_full_disk_is_one_sentence_and_the_run_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = measurement.select(dtypes=["float64"], cases=["tan/array_size[n=1,*"])
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(JournalError, match=r"\(No space left\): make room, then add --resume"):
            measurement.measure(plan, tmp_path, frameworks=["numpy"])
    outcome = measurement.measure(plan, tmp_path, frameworks=["numpy"], resume=True)
    assert outcome.faults == 0


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


def test_a_missing_manifest_is_an_error_with_a_cure(tmp_path: Path) -> None:
    MeasurementJournal(tmp_path, QUESTION, resume=False).add("a", [])
    (tmp_path / "run.json").unlink()
    with pytest.raises(JournalError, match=r"missing or damaged.*choose another --out"):
        MeasurementJournal(tmp_path, QUESTION, resume=True)


def test_a_file_in_the_folder_s_place_is_an_error_with_a_cure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="choose another --out"):
        MeasurementJournal(tmp_path / "file", QUESTION, resume=False)
