"""`refkernels warm`: nobody waits later for what it compiles."""

import os
import re
import subprocess
import sys
from pathlib import Path

from command_helpers import refused
from typer.testing import CliRunner

from refkernels.cli.app import app

USE = """
import numpy as np
import refkernels
from refkernels.arithmetic import small, waiting
from refkernels.testing import assert_kernel
small.allowance.elements = 0
x = np.linspace(0.5, 2.0, 1000, dtype=np.float32)
y = np.sqrt(x)
assert_kernel("sqrt", {"x": x}, {"y": y})
refkernels.explain("sqrt", {"x": x}, {"y": y})
print(waiting.watch.compiled)
"""


def test_what_an_assertion_and_an_explanation_need_is_compiled_ahead(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    python = [sys.executable, "-m", "refkernels", "warm", "--op", "sqrt"]
    done = subprocess.run(python, capture_output=True, text=True, check=True)
    (number,) = re.findall(r"^(\d+) kernels compiled for 1 ops in", done.stdout, re.MULTILINE)
    assert int(number) > 20
    assert str(tmp_path) in done.stdout
    used = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=True)
    assert used.stdout.strip() == "0"
    assert used.stderr == ""


def test_an_unknown_op_and_a_cache_that_cannot_be_written_are_refused():
    assert "There is no op 'sine'" in refused(CliRunner().invoke(app, ["warm", "--op", "sine"]))
    python = [sys.executable, "-m", "refkernels", "warm", "--op", "sqrt"]
    nowhere = {**os.environ, "NUMBA_CACHE_DIR": str(Path(os.devnull) / "below")}
    done = subprocess.run(python, env=nowhere, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("refkernels: compiled kernels are not kept: ")
