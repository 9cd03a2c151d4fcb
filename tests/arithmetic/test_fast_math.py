"""A library built with -ffast-math that is loaded makes the process flush, which is told."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
print(mode.is_default(), mode.flushing())
"""


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="gcc builds the library"
)
def test_the_import_after_which_the_process_flushes_is_named(tmp_path: Path) -> None:
    (tmp_path / "fast.c").write_text("double half(double x) { return x / 2; }\n")
    subprocess.run(
        ["gcc", "-O2", "-ffast-math", "-shared", "-fPIC", "-o", "fast.so", "fast.c"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    (tmp_path / "with_fast_math.py").write_text(MODULE)
    for name in ("plain_module", "plain_module_too"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=True
    )
    if "True True" in done.stdout:
        pytest.skip("this compiler's libraries leave the mode alone")
    first, *_ = done.stdout.splitlines()
    assert first.startswith("silent")
    assert "\nTrue False with_fast_math\nthread False\nflushes" in done.stdout
    assert "the import of with_fast_math, or something later" in done.stdout
    assert done.stdout.endswith("False False\n")
