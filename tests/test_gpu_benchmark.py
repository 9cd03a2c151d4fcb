"""`make gpu` without a GPU: what it says, and that it stops and continues on a CPU."""

import json
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
    words = ["--device", "cpu", "--op", "hardswish", "--range", "1:1.0001", "--out", str(tmp_path)]
    words += ["--dtype", "float32", "--case", "*/specials*", "--shapes", "1"]
    with subprocess.Popen([sys.executable, str(BENCHMARK), *words]) as process:
        until((tmp_path / "run.json").exists)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 130
    done = asked(*words)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "records.jsonl").read_text().count("cudnn_allow_tf32=1") > 1
    kept = {file: (tmp_path / file).read_bytes() for file in ("sweeps.jsonl", "orders.jsonl")}
    orders = [json.loads(line) for line in kept["orders.jsonl"].splitlines()]
    assert len(orders) == 5 * 4 - 1  # in each format, and with TF32
    assert not any("the box" in order for *_, order in orders)
    assert asked(*words).stdout.count("is finished and kept") == 2
    assert all((tmp_path / file).read_bytes() == content for file, content in kept.items())
