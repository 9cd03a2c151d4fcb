"""`refkernels bisect`, with a framework whose version decides its bits."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_helpers import said

from refkernels.frameworks import catalog, home, released
from refkernels.frameworks.catalog import Framework, FrameworkError

VERSIONS = ("1.0", "1.5", "2.0", "2.5", "3.0")
ADAPTER = """
import os
import numpy as np

VERSION = os.environ["STUB_VERSION"]

def sin(x):
    y = np.sin(x)
    if VERSION >= "2.0":
        y = np.where(np.abs(x) > 1, np.nextafter(y, x.dtype.type(0)), y)
    return np.cos(x) if VERSION >= "3.0" else y

OPS = {"sin": ("y", sin)}
FLAGS = {}
def version(): return VERSION
def devices(): return [("cpu", "")]
def information(): return {}
def unsupported(op, direction, dtype, device): return {"backward": "no gradient"}.get(direction)
def tensor(array, dtype, device): return array
def array(tensor): return str(tensor.dtype), tensor
def forward(op, inputs, params): return {"y": sin(**inputs)}
def backward(op, inputs, cotangent, params): raise NotImplementedError
def synchronize(device): pass
"""


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A framework named stub, with an interpreter for each version; that of 1.5 does not start."""
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path / "home"))
    (tmp_path / "stub_adapter.py").write_text(ADAPTER)
    catalog.register(Framework("stub", tmp_path / "stub_adapter.py", "no_such_module"))
    interpreters = {}
    for version in VERSIONS:
        python = tmp_path / f"python-{version}"
        start = (
            "exit 3" if version == "1.5" else f'STUB_VERSION={version} exec {sys.executable} "$@"'
        )
        python.write_text(f"#!/bin/sh\n{start}\n")
        python.chmod(0o755)
        interpreters[f"stub=={version}"] = home.NamedEnvironment(str(python), version)
    home.write_named(interpreters)
    yield
    catalog.unregister("stub")


def invoked(folder: Path, *words: str) -> tuple[int, str]:
    command = ["bisect", "stub", "--op", "sin", "--dtype", "float32", "--case", "sin/range*"]
    ran = said(*command, "--out", str(folder), *words)
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.output
    return ran.exit_code, " ".join(ran.output.split())


def test_bisection_and_one_by_one_report_every_change(stub: None, tmp_path: Path) -> None:
    for words in ((), ("--every",)):
        status, text = invoked(tmp_path / "out", "--versions", ",".join(VERSIONS), *words)
        assert status == 0, text
        assert (tmp_path / "out" / "1.0-2.0" / "compare.html").exists()
        assert (tmp_path / "out" / "2.5-3.0" / "compare.html").exists()
        changes = {path.name for path in (tmp_path / "out").iterdir() if "-" in path.name}
        assert changes == {"1.0-2.0", "2.5-3.0"}
    assert "1.5 was not measured: " in text


def test_a_change_of_bits_alone_is_not_a_change_of_the_error(stub: None, tmp_path: Path) -> None:
    status, text = invoked(tmp_path / "out", "--versions", "2.0,2.5")
    assert (status, "Nothing changed in stub" in text) == (0, True), text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--versions", "1.0"), "at least two are needed"),
        (("--versions", "1.0,new"), "write 1.9..2.13, or 1.9.0,2.6.0"),
        (("--versions", "1.0,2.0", "--change", "speed"), "choose one of bits, error"),
    ],
)
def test_a_question_without_an_answer_is_refused(
    stub: None, tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    status, text = invoked(tmp_path / "out", *words)
    assert status == 2, text
    assert reason in text


def test_a_range_takes_the_releases_between_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from packaging.version import Version

    listed = [Version(text) for text in ("2.1.3", "1.9.0", "2.0.2", "1.8.0", "2.2.0", "1.26.4")]
    monkeypatch.setattr(released, "_released", lambda spec: listed)
    spec = catalog.get("torch")
    assert released.versions(spec, "1.9..2.1") == ["1.9.0", "1.26.4", "2.0.2", "2.1.3"]
    assert released.versions(spec, "2.1..") == ["2.1.3", "2.2.0"]
    with pytest.raises(FrameworkError, match="means none of the versions of torch"):
        released.versions(spec, "3..4")


def test_releases_that_would_be_compiled_count_only_where_there_are_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wheels: list[str] = ["2.0.2", "1.26.4"]

    def pip(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        known = wheels if "--only-binary" in command else [*wheels, "1.0.3"]
        text = f"Available versions: {', '.join(known)}\n" if known else ""
        return subprocess.CompletedProcess(command, int(not known), text, "ERROR: No matching")

    monkeypatch.setattr(released.subprocess, "run", pip)
    spec = catalog.get("numpy")
    assert released.versions(spec, "..") == ["1.26.4", "2.0.2"]
    wheels.clear()
    with pytest.raises(FrameworkError, match=r"means 1\.0\.3 of the versions of numpy"):
        released.versions(spec, "..")
