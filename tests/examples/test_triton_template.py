"""The Triton template's own tests, where Triton is: interpreted, unless there is a GPU."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TEMPLATE = Path(__file__).parents[2] / "examples" / "triton_template"


def test_the_template_passes_its_tests() -> None:
    for module in ("torch", "triton"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed in the running Python")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TEMPLATE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
