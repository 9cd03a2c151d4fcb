"""`make gpu` without a GPU: one sentence; and the name of the folder of its results."""

import subprocess
import sys
from pathlib import Path

import pytest
from presence import interpreter_of

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))
import gpu  # noqa: E402


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "gpu.py"), *words]
    return subprocess.run(command, capture_output=True, text=True)


def test_without_such_a_device_a_sentence_says_what_to_do() -> None:
    done = asked("--device", "cuda:99")  # nor where torch is not there
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.endswith("make gpu TORCH=/path/to/python.\n")


@pytest.mark.parametrize(
    ("device", "name"),
    [("cuda:0 (NVIDIA H200)", "nvidia-h200"), ("cpu AMD EPYC 7B13", "cpu-amd-epyc-7b13")],
)
def test_results_are_named_after_the_device(device: str, name: str) -> None:
    assert gpu.slug(device) == name


def test_a_rehearsal_on_the_cpu_measures_and_sweeps(tmp_path: Path) -> None:
    interpreter_of("torch")
    words = ["--op", "hardswish", "--dtype", "float32", "--case", "hardswish/specials*"]
    done = asked("--device", "cpu", "--range", "1:1.0001", *words, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "records.jsonl").read_text().count("cudnn_allow_tf32=1") > 1
    assert (tmp_path / "out" / "sweeps.jsonl").exists()
