"""A library built with -ffast-math that is loaded makes the process flush, which is told."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from refkernels.judging.judge import judge
from refkernels.reporting.judging import leaderboard, views

MODULE = """
import ctypes, pathlib
ctypes.CDLL(str(pathlib.Path(__file__).with_name("fast.so")))
"""
SCRIPT = """
import threading, numpy as np, refkernels
from refkernels.arithmetic import mode
from refkernels.testing import assert_kernel

def check():
    x = np.float32([[2e-38, 0.25]] * 3)
    try:
        assert_kernel("prod", {"x": x}, np.zeros(3, np.float32))
    except AssertionError as error:
        print("flushes" if "This process flushes" in str(error) else "silent", str(error)[-400:])

check()
before = mode.is_default()
import plain_module, with_fast_math, plain_module_too
print(before, mode.is_default(), mode.since())
thread = threading.Thread(target=lambda: print("thread", mode.is_default()))
thread.start(); thread.join()
assert_kernel("exp", {"x": np.zeros(3, np.float32)}, np.ones(3, np.float32))
check()
explanation = refkernels.explain("exp", {"x": np.float32([0, 1])}, np.float32([1, 2.7182817]))
print(explanation.evidence["flushes"])
print("This process flushes" in explanation.to_markdown())
print("当前进程将次正规数刷新为零" in explanation.to_markdown("zh"))
print(mode.is_default(), mode.flushing())
"""
KERNEL = """
import with_fast_math

def prod(x):
    return x.prod(-1)
"""


SKIPPED = sys.platform != "linux" or shutil.which("gcc") is None
pytestmark = pytest.mark.skipif(SKIPPED, reason="gcc builds the library")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module that loads a library built with -ffast-math, and one that does not."""
    (tmp_path / "fast.c").write_text("double half(double x) { return x / 2; }\n")
    subprocess.run(
        ["gcc", "-O2", "-ffast-math", "-shared", "-fPIC", "-o", "fast.so", "fast.c"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    (tmp_path / "with_fast_math.py").write_text(MODULE)
    (tmp_path / "kernel.py").write_text(KERNEL)
    for name in ("plain_module", "plain_module_too"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "script.py").write_text(SCRIPT)
    loads = "import with_fast_math, sys; print(sys.float_info.min * 0.5 == 0)"
    done = subprocess.run(
        [sys.executable, "-c", loads], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    if done.stdout != "True\n":
        pytest.skip("this compiler's libraries leave the mode alone")
    return tmp_path


def test_the_import_after_which_the_process_flushes_is_named(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(folder / "script.py")], capture_output=True, text=True, check=True
    )
    first, *_ = done.stdout.splitlines()
    assert first.startswith("silent")
    assert "\nTrue False with_fast_math\nthread False\nflushes" in done.stdout
    assert "the import of with_fast_math, or something later" in done.stdout
    assert done.stdout.endswith("with_fast_math\nTrue\nTrue\nFalse False\n")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_judgement_says_that_the_kernel_s_process_flushes(folder: Path, lang: str) -> None:
    judgement = judge(f"{folder / 'kernel.py'}:prod", "prod", level="quick", mutants=False)
    assert judgement.flushes == "with_fast_math"
    record = judgement.to_dict()
    said = {"en": "The kernel's process flushes", "zh": "算子实现所在的进程将次正规数刷新为零"}
    for told in (views.lines(record, "", lang), leaderboard.lines([record], lang)):
        assert said[lang] in "\n".join(told)


def test_the_environment_of_a_measured_kernel_says_that_it_flushes(folder: Path) -> None:
    out = folder / "run"
    kernel = f"{folder / 'kernel.py'}:prod"
    command = ["measure", "--kernel", kernel, "--op", "prod", "--out", out, "--dtype", "float32"]
    called = [sys.executable, "-m", "refkernels", *command]
    measured = subprocess.run(called, check=False, capture_output=True, text=True)
    assert "Subnormal numbers are flushed to zero in the process of" in " ".join(
        measured.stdout.split()
    )
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    environments = [record for record in records if record["kind"] == "environment"]
    said = [record.get("flushes_subnormals") for record in environments]
    assert "since the import of with_fast_math, or later" in said
