"""`make gpu` without a GPU: what it says, and that it stops and continues on a CPU."""

import signal
import subprocess
import sys
from pathlib import Path

from presence import interpreter_of
from waiting import until

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "gpu.py"


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(BENCHMARK), *words], capture_output=True, text=True)


def test_without_such_a_device_a_sentence_says_what_to_do() -> None:
    done = asked("--device", "cuda:99")  # nor where torch is not there
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.endswith("make gpu TORCH=/path/to/python.\n")


def test_a_rehearsal_on_the_cpu_that_is_terminated_continues_and_is_kept(tmp_path: Path) -> None:
    interpreter_of("torch")
    out = tmp_path / "out"
    words = ["--device", "cpu", "--op", "hardswish", "--range", "1:1.0001", "--out", str(out)]
    words += ["--dtype", "float32", "--case", "hardswish/specials*"]
    with subprocess.Popen([sys.executable, str(BENCHMARK), *words]) as process:
        until((out / "run.json").exists)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 130
    done = asked(*words)
    assert done.returncode == 0, done.stderr
    assert (out / "records.jsonl").read_text().count("cudnn_allow_tf32=1") > 1
    kept = (out / "sweeps.jsonl").read_bytes()
    assert asked(*words).stdout.count("is finished and kept") == 2
    assert (out / "sweeps.jsonl").read_bytes() == kept
