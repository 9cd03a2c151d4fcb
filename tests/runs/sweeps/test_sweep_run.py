"""Whole sweeps: planted faults are seen and named, kills change nothing, records say it all."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import planted_faults
import pytest
import sweep_helpers as helpers
from sweep_helpers import comparable, in_this_process
from waiting import HANGS, until

from refkernels.frameworks import catalog
from refkernels.runs import sweeps
from refkernels.runs.sweeps import chunk, kept

FAULTS = ("correct", "one_ulp_off", "flush_to_zero", "nan", "crash", "exception", "wrong_shape")
Sweep = Callable[..., list[dict]]


fakes = planted_faults.fixture(*FAULTS)


@pytest.fixture
def swept(tmp_path: Path) -> Sweep:
    """swept(ops, faults, ...): the records of a sweep in this process."""

    def run(ops: list[str], faults: list[str], dtype: str = "float16", **options: object) -> list:
        names = [f"fake_{fault}" for fault in faults]
        plan = sweeps.plan(ops, names, [dtype], **options)
        with in_this_process() as pool:
            return sweeps.sweep(plan, tmp_path / "out", pool=pool)

    return run


def test_a_correct_kernel_raises_no_alarm(swept: Sweep) -> None:
    record = swept(["sin"], ["correct"])[0]
    assert (record["status"], record["verdict"]) == ("ok", "correctly_rounded")
    assert record["counts"]["inputs"] == record["counts"]["correct"] == 65536
    assert record["ulp"]["max"] <= 0.5
    assert record["distances"] == {"0": 63488}
    assert record["firsts"] == {}
    assert record["ranges"] == [["0x0000", "0xffff"]]


def test_one_ulp_off_is_a_distance_of_one_nearly_everywhere(swept: Sweep) -> None:
    record = swept(["sin"], ["one_ulp_off"])[0]
    assert record["counts"]["correct"] == 2048  # NaNs alone
    assert record["distances"]["1"] > 63000
    assert record["ulp"]["max"] > 1.0


def test_flushed_subnormals_are_counted(swept: Sweep) -> None:
    record = swept(["sin"], ["flush_to_zero"], range="0x0000:0x03ff")[0]
    assert record["counts"]["flushed_subnormals"] == 1023
    assert record["firsts"]["flushed_subnormals"]["input"]["hex"] == "0x0001"


def test_a_nan_is_never_a_small_number(swept: Sweep) -> None:
    record = swept(["sin"], ["nan"], range="1:2")[0]
    assert record["verdict"] == "special_value_mismatch"
    assert record["counts"]["stray_nans"] == 1
    assert record["firsts"]["stray_nans"]["input"] == {"hex": "0x3c00", "decimal": "1.0"}


def test_a_framework_that_fails_has_a_reason_and_the_others_go_on(swept: Sweep) -> None:
    faults = ["crash", "exception", "wrong_shape", "correct"]
    records = {r["framework"]: r for r in swept(["sin"], faults) if r["kind"] == "sweep"}
    assert records["fake_correct"]["verdict"] == "correctly_rounded"
    for fault, reason in (
        ("crash", "killed: fake_crash: the process was ended by SIGKILL"),
        ("exception", "error: fake_exception: sweeping sin on cpu raised RuntimeError"),
        ("wrong_shape", "answers shape"),
    ):
        record = records[f"fake_{fault}"]
        assert record["status"] == "incomplete"
        assert reason in record["reason"]
        assert record["counts"]["inputs"] == 0


def test_what_is_not_offered_says_why(swept: Sweep) -> None:
    record = swept(["sin"], ["correct"], "bfloat16")[0]
    assert (record["status"], record["reason"]) == ("unsupported", "the fakes have no bfloat16")


def test_float32_goes_through_the_fast_tier_in_chunks(swept: Sweep) -> None:
    record = swept(
        ["cos"], ["correct"], "float32", range="0x3f7f0000:0x3f80ffff", chunk=1 << 15, call=1 << 13
    )[0]
    assert record["counts"]["inputs"] == record["counts"]["correct"] == 1 << 17
    assert sum(record["tiers"].values()) == 1 << 17
    assert record["counts"]["inversions"] == 0
    assert [binade["exponent"] for binade in record["binades"]] == [-1, 0]
    assert sum(binade["inputs"] for binade in record["binades"]) == 1 << 17


def test_float64_is_searched_reproducibly_and_says_so(swept: Sweep, tmp_path: Path) -> None:
    record = swept(["sin"], ["one_ulp_off"], "float64", tries=5000, seed=3)[0]
    assert (record["method"], record["tries"], record["seed"]) == ("search", 5000, 3)
    assert record["counts"]["inputs"] == 5000
    assert record["ulp"]["max"] > 1.2
    plan = sweeps.plan(["sin"], ["fake_one_ulp_off"], ["float64"], tries=5000, seed=3)
    with in_this_process() as pool:
        again = sweeps.sweep(plan, tmp_path / "again", pool=pool)
    assert comparable(again) == comparable([record])


@pytest.mark.parametrize("fault", ["crash_at_import", "exception"])
def test_what_failed_in_a_sweep_that_has_ended_is_asked_again(tmp_path: Path, fault: str) -> None:
    framework = replace(planted_faults.framework(fault, tmp_path), name="mended")
    catalog.register(framework)
    try:
        plan = sweeps.plan(
            ["sin"], ["fake_correct", framework.name], ["float16"], range="1:2", chunk=256
        )
        attempts = []
        for text in (None, "correct"):
            if text is not None:  # mended
                right = planted_faults.framework(text, tmp_path).adapter
                framework.adapter.write_text(right.read_text(encoding="utf-8"), encoding="utf-8")
                kept.release()
            with in_this_process() as pool:
                attempts.append(sweeps.sweep(plan, tmp_path / "out", pool=pool, resume=bool(text)))
    finally:
        catalog.unregister(framework.name)
    statuses = [
        [record["status"] for record in attempt if record["kind"] == "sweep"]
        for attempt in attempts
    ]
    assert statuses[0][0] == "ok"
    assert statuses[0][1] in ("killed", "incomplete")
    assert statuses[1] == ["ok", "ok"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "sweep.json",
        "sweeps.jsonl",
    ]


def start(directory: Path, folder: Path, resume: bool) -> subprocess.Popen[bytes]:
    script, adapter = Path(helpers.__file__), folder / "fake_one_ulp_off_adapter.py"
    mode = "resume" if resume else "new"
    arguments = [sys.executable, str(script), str(directory), str(adapter), mode]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE)


def resumed(directory: Path, folder: Path) -> list[dict]:
    process = start(directory, folder, resume=True)
    _, errors = process.communicate(timeout=HANGS)
    assert process.returncode == 0, errors.decode()
    lines = (directory / "sweeps.jsonl").read_text().splitlines()
    return comparable([json.loads(line) for line in lines])


def children_of(pid: int) -> list[int]:
    pids = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            pids.append(int(path.parent.name))
    return pids


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_killed_at_any_moment_a_sweep_goes_on_to_the_same_answer(
    tmp_path: Path, fakes: Path
) -> None:
    with (
        planted_faults.registered(helpers.fake_of(fakes / "fake_one_ulp_off_adapter.py")),
        in_this_process() as pool,
    ):
        whole = comparable(helpers.sweep_of_fake(tmp_path / "whole", pool))
    assert whole[0]["counts"]["inputs"] == 1 << 18
    directory = tmp_path / "killed"
    journal = directory / "sweep-journal.jsonl"
    for lines in (2, 12):
        process = start(directory, fakes, resume=lines > 2)
        until(lambda lines=lines: journal.exists() and journal.read_bytes().count(b"\n") >= lines)
        assert process.poll() is None
        workers = children_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda ended=workers: not any(Path(f"/proc/{worker}").exists() for worker in ended))
    assert resumed(directory, fakes) == whole


def test_the_rounding_of_a_range_is_counted_as_numpy_counts_it(swept: Sweep) -> None:
    """An independent count: float64 cosines, rounded, are nowhere the planted answers."""
    record = swept(["cos"], ["one_ulp_off"], "float32", range="0x3f000000:0x3f00ffff")[0]
    x = np.arange(0x3F000000, 0x3F010000, dtype=np.uint32).view(np.float32)
    right = np.cos(x.astype(np.float64)).astype(np.float32)
    got = np.nextafter(right, np.float32(np.inf))
    assert record["counts"]["not_correctly_rounded"] == (got != right).sum() == 1 << 16
    error = (got - np.cos(x.astype(np.float64))) * 2.0**24
    assert record["ulp"]["max"] == pytest.approx(np.abs(error).max(), abs=1e-7)


def test_a_chunk_whose_inputs_are_not_all_judged_has_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunk, "judge_call", lambda *_: (0.0, 0.0))
    question = chunk.SweepQuestion("sin", "numpy", "cpu", "float32")
    with pytest.raises(RuntimeError, match="0 of 64 inputs were judged"):
        chunk.run_chunk(question, 0x3F800000, 0x3F800040)
    kept.release()
