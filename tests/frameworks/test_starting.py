"""Starting an interpreter, which may print anything; its last words, its reasons and its sweeps."""

import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import planted_faults
import pytest

from refkernels.arithmetic.arrays import LOW
from refkernels.frameworks import process, transport
from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.gateway import Session
from refkernels.frameworks.remote import worker

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


REFUSED = (
    "For primitive[Adam], the input argument[grad] must be a type of {Float16, Float32, "
    "Tensor[Float16], Tensor[Float32]}, but got Tensor[Float64].\n\n----\n- C++ Call Stack:",
    "For 'SGD', the element of 'parameters' must be one of Tensor[Float16], Tensor[Float32], but "
    "got Ref[Tensor[Float64]].The supported data types depend on the hardware",
    "For primitive[BCEWithLogitsLoss], the input argument[input] must be a type of {BFloat16, "
    "Float16, Float32}, but got Float64.",
    "\"addmm_impl_cpu_\" not implemented for 'Half'",
)


@pytest.mark.parametrize("said", REFUSED)
def test_a_kernel_that_takes_other_dtypes_is_unsupported_with_a_reason(said: str) -> None:
    fault = worker.classify(TypeError(said), "adam forward on cpu")
    assert fault.status == "unsupported"
    assert fault.reason.startswith("adam forward on cpu is not supported (TypeError: ")
    assert fault.reason.count("\n") == 0


@pytest.mark.parametrize(
    "said",
    [
        "For primitive[Conv2D], the kernel size must be a type of positive int, but got -1",
        "x must be one of shape (2, 3), but got (3, 2)",
    ],
)
def test_a_wrong_value_is_an_error(said: str) -> None:
    assert worker.classify(TypeError(said), "conv2d forward on cpu").status == "error"


def test_operands_of_few_bits_travel_as_bytes() -> None:
    assert {worker.bits_dtype(kind.name).itemsize for kind in LOW} == {1}


def expected(first: int, count: int, dtype: type, bits: type) -> np.ndarray:
    x = np.arange(first, first + count, dtype=np.uint64).astype(bits).view(dtype)
    with np.errstate(all="ignore"):
        return np.sin(x.astype(np.float64)).astype(dtype)


@pytest.mark.parametrize("window", [True, False], ids=["window", "inline"])
def test_the_answers_are_those_to_every_pattern(
    fake: Callable[[str], Framework], monkeypatch: pytest.MonkeyPatch, window: bool
) -> None:
    if not window:
        monkeypatch.setattr(transport.SharedFolder, "window", transport.Inline.window)
    with Session(fake("correct")) as session:
        for first, count in ((0, 5000), (0x3F800000, 5000), (2**32 - 700, 700), (0x7F7FFFF0, 40)):
            reply = session.sweep("sin", "float32", first, count)
            assert reply.ok, reply.reason
            wanted = expected(first, count, np.float32, np.uint32)
            np.testing.assert_array_equal(reply.outputs[""], wanted)
        half = session.sweep("sin", "float16", 0, 65536).outputs[""]
        np.testing.assert_array_equal(half, expected(0, 65536, np.float16, np.uint16))


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        ("crash", "killed", "ended by SIGKILL"),
        ("exception", "error", "sweeping sin on cpu raised RuntimeError: planted"),
        ("oom", "oom", "sweeping sin on cpu ran out of memory"),
        ("wrong_shape", "error", r"answers shape \(1, 64\) for 64 inputs"),
    ],
)
def test_faults_are_statuses(
    fake: Callable[[str], Framework], fault: str, status: str, said: str
) -> None:
    with Session(fake(fault)) as session:
        reply = session.sweep("sin", "float32", 0, 64)
        assert reply.status == status
        assert reply.reason is not None
        assert re.search(said, reply.reason)
        if fault != "wrong_shape":  # it strikes at every op
            assert session.sweep("cos", "float32", 0, 64).ok


def test_what_the_adapter_does_not_offer_is_unsupported(fake: Callable[[str], Framework]) -> None:
    with Session(fake("correct")) as session:
        assert session.sweep("sin", "bfloat16", 0, 64).reason == (
            "fake_correct: the fakes have no bfloat16"
        )
        assert session.sweep("sinus", "float32", 0, 64).status == "unsupported"
        assert "no device named cuda:9" in str(session.sweep("sin", "float32", 0, 64, "cuda:9"))
