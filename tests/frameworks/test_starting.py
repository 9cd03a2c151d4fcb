"""An interpreter may print anything while it starts; if it fails, its last words are quoted."""

import os
import stat
import sys
from pathlib import Path

import numpy as np
import planted_faults
import pytest

from refkernels.frameworks import process
from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.gateway import Session

X = np.array([0.5, -1.25, 3.0], np.float32)
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the wrappers are shell scripts")


def wrapper(folder: Path, script: str) -> Framework:
    """The correct fake in an interpreter behind a shell script; $PYTHON is the real one."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\nPYTHON={sys.executable}\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    planted_faults.framework("correct", folder)
    return Framework("noisy", planted_faults.framework("correct", folder).adapter, python=str(path))


@pytest.mark.parametrize(
    "script",
    [
        "echo 'Activating environment ...'; exec $PYTHON \"$@\"",
        'printf 1; exec $PYTHON "$@"',  # what execnet takes for the greeting
        'head -c 100000 /dev/zero; exec $PYTHON "$@"',
        'echo noise; $PYTHON "$@"; echo more noise',
    ],
    ids=["a line", "a greeting", "zeros", "before and after"],
)
def test_what_a_wrapper_prints_is_passed_over(tmp_path: Path, script: str) -> None:
    with Session(wrapper(tmp_path, script)) as session:
        assert session.reason is None
        reply = session.run("cos", "forward", {"x": X})
    assert reply.ok, reply.reason
    assert reply.started


def test_what_a_site_module_prints_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome'); import sys; sys.stdout.flush()")
    framework = wrapper(tmp_path, 'exec $PYTHON "$@"')
    with Session(framework, settings={"PYTHONPATH": str(tmp_path)}) as session:
        assert session.run("cos", "forward", {"x": X}).ok


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("echo 'no such environment'; exit 3", "not_installed",
         "it ended with exit status 3; it printed 'no such environment'"),
        ("echo hello; echo 'fatal: broken' >&2; exit 1", "not_installed", "fatal: broken"),
        ("yes", "not_installed", "it does not stop printing; it printed 'y y"),
        ("echo going; kill -9 $$", "killed", "signal 9 ended it; it printed 'going'"),
        ("echo asleep; exec sleep 60", "timeout",
         "it did not begin within 1 s; it printed 'asleep'"),
    ],
    ids=["ends", "complains", "babbles", "is killed", "hangs"],
)  # fmt: skip
def test_an_interpreter_that_does_not_start_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, status: str, said: str
) -> None:
    if status == "timeout":
        monkeypatch.setattr(process, "READY_SECONDS", 1.0)
    with Session(wrapper(tmp_path, script)) as session:
        reply = session.run("cos", "forward", {"x": X})
    assert reply.status == status
    assert said in str(reply.reason)
    assert "AssertionError" not in str(reply.reason)
    assert "\n" not in str(reply.reason)
    assert not reply.started
