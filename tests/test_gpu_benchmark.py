"""`make gpu` without a GPU: its sentences, what it asks of a folder of results, and its stops.
Where a GPU is needed, torch says that it has one, and the CPU computes."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from presence import interpreter_of
from waiting import HANGS, until

from refkernels.records import codec
from refkernels.records.files import compress
from refkernels.reporting import read_records

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "gpu.py"), *words]
    return subprocess.run(command, capture_output=True, text=True)


def test_without_such_a_device_a_sentence_says_what_to_do() -> None:
    done = asked("--device", "cuda:99")  # nor where torch is not there
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.endswith("make gpu TORCH=/path/to/python.\n")


def test_a_rehearsal_on_the_cpu_measures_and_sweeps(tmp_path: Path) -> None:
    interpreter_of("torch")
    words = ["--op", "hardswish", "--dtype", "float32", "--case", "hardswish/specials*"]
    done = asked("--device", "cpu", "--range", "1:1.0001", *words, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "records.jsonl").read_text().count("cudnn_allow_tf32=1") > 1
    assert (tmp_path / "out" / "sweeps.jsonl").exists()


MISSING = "cospi, sinpi"  # torch has neither
PRETENCE = """
import torch

torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 1
torch.cuda.get_device_name = lambda index=0: "{name}"
torch.cuda.synchronize = lambda device=None: None
to = torch.Tensor.to
torch.Tensor.to = lambda tensor, place: to(tensor, "cpu" if "cuda" in str(place) else place)
"""


@pytest.fixture
def of_an_h100(tmp_path: Path) -> Path:
    """A copy of the kept results: without a manifest, compressed, of another torch."""
    folder = tmp_path / "nvidia-h100-80gb-hbm3"
    shutil.copytree(BENCHMARKS / "results" / folder.name, folder)
    return folder


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """pretended(name): an interpreter whose torch says that it has this GPU; the CPU computes."""
    python = interpreter_of("torch").python
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path / "home"))

    def make(name: str) -> str:
        # The adapter imports this module where it is there: on an Ascend processor.
        (tmp_path / "torch_npu.py").write_text(PRETENCE.format(name=name), encoding="utf-8")
        wrapper = tmp_path / "python"
        wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{python}" "$@"\n')
        wrapper.chmod(0o755)
        return str(wrapper)

    return make


def swept(folder: Path) -> list[dict[str, Any]]:
    return [r for r in read_records(folder / "sweeps.jsonl") if r["kind"] == "sweep"]


def keep_only(folder: Path, op: str) -> None:
    path = folder / "sweeps.jsonl"
    records = [r for r in read_records(path) if r["kind"] == "environment" or r["op"] == op]
    path.write_text("".join(codec.dumps(record) + "\n" for record in records))
    compress(path)


def test_what_is_missing_on_the_h100_is_told_without_a_gpu(of_an_h100: Path) -> None:
    before = {p: p.read_bytes() for p in of_an_h100.rglob("*") if p.is_file()}
    done = asked("--out", str(of_an_h100), "--dry-run")
    assert done.returncode == 0, done.stderr
    measured, sweeps = done.stdout.splitlines()
    assert measured.startswith("Measurement: a finished one by torch 2.11.0+cu130 is kept")
    there = "32 of 34 functions are there by torch 2.11.0+cu130"
    assert sweeps == f"Sweeps: {there}; asked: {MISSING}."
    assert {p: p.read_bytes() for p in of_an_h100.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dry-run"], "add --out FOLDER."),
        (["--sweeps", "--op", "softmax", "--dry-run"], "none of softmax can be swept"),
        (["--sweeps", "--case", "exp/*"], "--case is an option of the measurement"),
        (["--out", "{h100}", "--dry-run", "--range", "3"], "--range '3' is not A:B"),
        (["--out", "{h100}", "--dry-run", "--rnage=1:2"], "--rnage=1:2 is an option of the meas"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_before_a_device_is_asked(
    words: list[str], said: str, of_an_h100: Path
) -> None:
    done = asked(*(word.format(h100=of_an_h100) for word in words))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert said in done.stderr


def test_only_missing_functions_are_swept_and_each_is_kept_when_it_is_done(
    of_an_h100: Path, pretended: Callable[[str], str]
) -> None:
    keep_only(of_an_h100, "cos")  # the page of the others takes long to draw
    before = {(r["op"], r["dtype"]): r for r in swept(of_an_h100)}
    assert len(before) == 3
    few = ["--op", "cos", "--op", "sqrt", "--op", "sinpi", "--sweeps", "--range", "1:1.0001"]
    words = ["--python", pretended("NVIDIA H100 80GB HBM3"), "--out", str(of_an_h100), *few]
    done = asked(*words)
    assert done.returncode == 0, done.stderr
    assert "asked of torch 2" in done.stdout
    assert "sweep 2 of 2: sqrt in float16" in done.stderr
    after = {(r["op"], r["dtype"]): r for r in swept(of_an_h100)}
    assert {key: after[key] for key in before} == before  # to the last digit
    assert {op for op, _ in after.keys() - before.keys()} == {"sqrt", "sinpi"}
    assert {r["device"] for r in after.values()} == {"cuda:0"}
    names = {path.name for path in of_an_h100.iterdir()}
    assert {"sweeps.jsonl.gz", "sweep.html"} <= names
    assert not {"sweeping", "sweeps.jsonl"} & names
    assert "nothing is asked" in asked(*words).stdout  # nor what this torch does not have
    assert "sqrt" in asked(*words[:-1], "1:1.0002", "--dry-run").stdout  # more numbers


def test_results_of_another_gpu_are_not_mixed_in(
    of_an_h100: Path, pretended: Callable[[str], str]
) -> None:
    done = asked("--python", pretended("NVIDIA H200"), "--out", str(of_an_h100), "--sweeps")
    assert (done.returncode, done.stdout) == (2, "")
    here = "holds sweeps on cuda:0 (NVIDIA H100 80GB HBM3), and this is cuda:0 (NVIDIA H200)"
    assert here in done.stderr


def test_a_terminated_sweep_goes_on_where_it_was(
    tmp_path: Path, pretended: Callable[[str], str]
) -> None:
    """One that is killed: tests/runs/sweeps."""
    words = ["--python", pretended("NVIDIA H200"), "--op", "sqrt", "--sweeps"]
    words += ["--range", f"{2.0**-32}:1", "--out", str(tmp_path / "out")]  # 268 million numbers
    journal = tmp_path / "out" / "sweeping"
    with subprocess.Popen([sys.executable, str(BENCHMARKS / "gpu.py"), *words]) as process:
        until(lambda: chunks(journal) >= 10 or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 130
    kept = chunks(journal)
    assert kept >= 10  # the device and -0 in each format, all of 16 bits: 8 without 16.8 M numbers
    short = ["--op", "reciprocal", "--sweeps", "--range", "1:1.01", "--out", words[-1]]
    assert asked(*words[:2], *short).returncode == 0
    assert chunks(journal) == kept  # what is asked in between loses nothing
    again = asked(*words)
    assert again.returncode == 0, again.stderr
    assert not journal.exists()
    key = ("sqrt", "float32")
    (record,) = [r for r in swept(tmp_path / "out") if (r["op"], r["dtype"]) == key]
    assert record["counts"]["inputs"] == 0x10000001
    first = next(line for line in again.stderr.splitlines() if " M of " in line)
    assert float(first.split(", ")[1].split(" M")[0]) > 16.7 * (kept - 8)


def chunks(journal: Path) -> int:
    """The lines of all journals in a folder."""
    return sum(path.read_bytes().count(b"\n") for path in journal.glob("*/*/*.jsonl"))


def test_a_terminated_measurement_says_what_is_kept_and_leaves_no_process(
    tmp_path: Path, pretended: Callable[[str], str]
) -> None:
    ops = ["hardswish", "sum", "attention", "conv2d", "layernorm"]  # half a minute, if not stopped
    words = ["--python", pretended("NVIDIA H200"), *(word for op in ops for word in ("--op", op))]
    words += ["--out", str(tmp_path / "out")]
    journal = tmp_path / "out" / "journal.jsonl"
    command = [sys.executable, str(BENCHMARKS / "gpu.py"), *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        until(journal.exists)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=HANGS)  # ends when no process holds the pipe
    assert process.returncode == 130
    # After it Python may warn that it cleans up for the workers that were ended.
    assert "Stopped; finished work is kept: the same command continues.\n" in said, said
    assert f"Measurement: asked: {', '.join(ops)}" in asked(*words, "--dry-run").stdout
