"""Runs pytest on a file of tests, with the plugin."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path


def run_pytest(folder: Path, source: str, *options: str) -> str:
    """What pytest printed."""
    (folder / "test_it.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null"]
    for unused in ("cacheprovider", "nbmake", "benchmark", "hypothesispytest"):
        command += ["-p", f"no:{unused}"]
    if "refkernels.testing_plugin" not in plugins():
        command += ["-p", "refkernels.testing_plugin"]
    answer = subprocess.run(
        [*command, *options, "--rootdir", str(folder), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout + answer.stderr


def plugins() -> set[str]:
    return {point.value for point in entry_points(group="pytest11")}
