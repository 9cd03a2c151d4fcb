"""The probe under Python 3.8, the oldest that it takes: a training of a framework that one has."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from captured import alone
from waiting import HANGS

from refkernels.alignment import align
from refkernels.alignment.run import Run

FRAMEWORKS = ("torch", "paddle", "oneflow", "mindspore")
HAS = (
    "import importlib.util as u, sys; print(*(name for name in sys.argv[1:] if u.find_spec(name)))"
)


def old_python() -> tuple[str, str]:
    """The Python 3.8 on the path, and a framework that it has; a skip that says what is missing."""
    if (python := shutil.which("python3.8")) is None:
        pytest.skip("no python3.8 is on the path")
    done = subprocess.run(
        [python, "-c", HAS, "numpy", *FRAMEWORKS], capture_output=True, text=True, timeout=HANGS
    )
    numpy, *frameworks = done.stdout.split() or [""]
    if numpy != "numpy" or not frameworks:
        pytest.skip(f"{python} lacks NumPy or a framework")
    return python, frameworks[0]


def test_a_training_under_python_3_8_is_captured_and_judged(tmp_path: Path) -> None:
    python, framework = old_python()
    folder = alone(tmp_path, "tiny_training.py")
    command = [python, "tiny_training.py", framework, "3", "sgd", "sgd:run"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr[-3000:]
    off, on = json.loads(done.stdout.strip().splitlines()[-1])
    assert (on["losses"], on["hashes"]) == (off["losses"], off["hashes"])
    run = Run.read(folder / "run")
    assert run.remarks == ()
    assert run.first.complete
    assert run.first.versions["python"].startswith("3.8.")
    alignment = align(folder / "run")
    assert alignment.verdict.word == "undecidable"  # one run alone, and nothing wrong in it
    assert {"linear", "layernorm", "gelu", "embedding"} <= {
        judgement.op for judgement in alignment.local[0].judgements
    }
