"""The example package is installed as its README says, and measured like any framework."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from refkernels import registry

PACKAGE = Path(__file__).parents[2] / "examples" / "adapter"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose Python has the package."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    source = shutil.copytree(PACKAGE, folder / "source")  # building writes beside the sources
    command += ["--no-deps", "--target", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    paths = [str(folder), str(PACKAGE.parents[1])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def test_the_package_is_measured_by_its_name(installed: dict[str, str], tmp_path: Path) -> None:
    cases = [registry.get("sum").cases()[0].name, registry.get("sin").cases()[0].name]
    command = [sys.executable, "-m", "refkernels", "measure", "--framework", "pymath"]
    command += [word for case in cases for word in ("--case", case)]
    command += ["--op", "sum", "--op", "sin", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    records = [record for record in map(json.loads, lines) if record["kind"] == "measurement"]
    right = {record["op"]: record for record in records if record["status"] == "ok"}
    assert {record["framework"] for record in records} == {"pymath"}
    assert right["sum"]["verdict"] == "correctly_rounded"  # math.fsum
    assert right["sin"]["verdict"] in ("rounding", "correctly_rounded")
    reasons = {record["reason"] for record in records if record["status"] == "unsupported"}
    assert any("Python's floats are float64" in reason for reason in reasons)


def test_the_package_is_listed_beside_the_built_in_adapters(
    installed: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "refkernels", "env", "list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=installed, cwd=tmp_path)
    listed = json.loads(done.stdout)
    entries = [line for line in listed["environments"] if line["name"] == "pymath"]
    assert [line["state"] for line in entries] == ["ready"]
