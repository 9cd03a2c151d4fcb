"""A session with planted faults: each fault is named, and the session continues."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import planted_faults
import pytest
from waiting import until

from refkernels.frameworks import catalog
from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.gateway import Session
from refkernels.records.words import FAULTS

Fake = Callable[[str], Framework]
X = np.array([[0.5, -1.25, 3.0], [1e-40, 2.0, -0.0]], np.float32)
SHARED = Path("/dev/shm")


def left_behind() -> set[str]:
    """What this process's sessions may leave: folders of arrays and logs."""
    folders = [SHARED] if SHARED.is_dir() else []
    return {
        str(path)
        for folder in [*folders, Path("/tmp")]
        for path in folder.glob(f"refkernels-{os.getpid()}-*")
        if path.stat().st_uid == os.getuid()
    }


@pytest.fixture(autouse=True)
def nothing_is_left() -> None:
    before = left_behind()
    yield
    until(lambda: not left_behind() - before)


@pytest.mark.parametrize(
    "fault", ["crash", "abort", "exit", "hang", "exception", "oom", "device_oom", "device_lost"]
)
def test_a_fault_in_an_op_is_named_and_the_rest_goes_on(fake: Fake, fault: str) -> None:
    with Session(fake(fault)) as session:
        assert session.run("cos", "forward", {"x": X}).ok
        reply = session.run("sin", "forward", {"x": X}, timeout=0.5 if fault == "hang" else None)
        assert reply.status == planted_faults.STATUS_OF[fault]
        assert reply.outputs == {}
        assert "\n" not in str(reply.reason)
        assert str(reply.reason).startswith(f"fake_{fault}: ")
        reasons = {
            "crash": "ended by SIGKILL",
            "abort": "ended by SIGABRT.*terminate called after",
            "exit": "exit status 3",
            "hang": "no answer within 0.5 s while running sin forward on cpu",
            "exception": "sin forward on cpu raised RuntimeError: planted: the first line$",
            "oom": "out of memory .*unable to allocate 16.0 TiB",
            "device_oom": "out of memory .*CUDA out of memory",
            "device_lost": "raised RuntimeError: CUDA error: device-side assert triggered",
        }
        assert re.search(reasons[fault], str(reply.reason)), reply.reason
        after = session.run("cos", "forward", {"x": X})
        assert after.ok
        assert session.starts == (1 if fault == "exception" else 2)
        assert session.status == "ok"


@pytest.mark.parametrize("fault", ["import_error", "crash_at_import"])
def test_a_framework_that_cannot_be_imported_stays_so(fake: Fake, fault: str) -> None:
    with Session(fake(fault)) as session:
        replies = [session.run("sin", "forward", {"x": X}) for _ in range(2)]
        assert {reply.status for reply in replies} == {planted_faults.STATUS_OF[fault]}
        assert session.starts == 1
        assert session.info == {}
        cause = "libmissing.so.7" if fault == "import_error" else "SIGSEGV"
        assert cause in str(session.reason)


def test_noise_on_stdout_does_not_disturb(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    with Session(fake("noise")) as session:
        for _ in range(3):
            reply = session.run("cos", "forward", {"x": X})
            assert reply.ok
            assert np.array_equal(reply.outputs["y"], np.cos(X.astype(float)).astype(np.float32))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("running", [True, False])
def test_a_worker_killed_from_outside_is_named_and_replaced(fake: Fake, running: bool) -> None:
    with Session(fake("hang" if running else "correct")) as session:
        first = session.pid
        assert first is not None
        killing = threading.Timer(0.5 * running, os.kill, (first, signal.SIGKILL))
        killing.start()
        if not running:
            killing.join()
        reply = session.run("sin", "forward", {"x": np.ones((400, 400))})
        assert (reply.status, "SIGKILL" in str(reply.reason)) == ("killed", True)
        assert session.run("cos", "forward", {"x": X}).ok
        assert session.pid not in (None, first)


def test_a_missing_framework_is_a_status(fake_home: Path) -> None:
    framework = Framework("absent", planted_faults.SOURCE, version="9")
    with Session(framework) as session:
        reply = session.run("sin", "forward", {"x": X})
    assert reply.status == "not_installed"
    assert "absent is not installed: run `refkernels env create absent`" in str(reply.reason)


def test_an_interpreter_that_does_not_start_is_a_status(tmp_path: Path) -> None:
    framework = Framework("gone", planted_faults.SOURCE, python=str(tmp_path / "python"))
    with Session(framework) as session:
        assert session.status == "not_installed"
        assert "does not start" in str(session.reason)
        assert str(tmp_path / "python") in str(session.reason)


def test_an_interpreter_without_numpy_is_an_import_error(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    __import__("venv").create(bare, with_pip=False)
    framework = Framework("bare", planted_faults.SOURCE, python=str(bare / "bin" / "python"))
    with Session(framework) as session:
        assert session.status == "import_error"
        assert "No module named 'numpy'" in str(session.reason)


def test_the_wrong_version_in_a_named_interpreter_is_reported(fake_home: Path, fake: Fake) -> None:
    catalog.register(fake("correct"))
    try:
        with Session("fake_correct==7.7") as session:
            assert session.status == "not_installed"
            assert "the interpreter has version 1.0" in str(session.reason)
    finally:
        catalog.unregister("fake_correct")


def test_unsupported_pairs_are_data_with_a_reason(fake: Fake) -> None:
    with Session(fake("correct")) as session:
        answers = {
            "dtype": session.run(
                "sin", "forward", {"x": X.astype(__import__("ml_dtypes").bfloat16)}
            ),
            "op": session.run("softmax", "forward", {"x": X}),
            "device": session.run("sin", "forward", {"x": X}, device="cuda:0"),
            "integers": session.run("sin", "forward", {"x": np.arange(3)}),
        }
        capabilities = session.info["capabilities"]["cpu"]["sin"]["forward"]
        assert session.info["devices"] == ["cpu", "fake:0"]
        assert session.run("sin", "forward", {"x": X}, device="fake:0").ok
    assert {reply.status for reply in answers.values()} == {"unsupported"}
    assert "the fakes have no bfloat16" in str(answers["dtype"].reason)
    assert "no op named softmax" in str(answers["op"].reason)
    assert "no device named cuda:0" in str(answers["device"].reason)
    assert "sin needs floating point" in str(answers["integers"].reason)
    assert capabilities == {
        "float16": None,
        "bfloat16": "the fakes have no bfloat16",
        "float32": None,
        "float64": None,
    }


def test_environment_variables_are_set_before_the_interpreter_starts(fake: Fake) -> None:
    settings = {"PYTHONHASHSEED": "nonsense", "WITH": "spaces and // slashes"}
    with Session(fake("correct"), settings=settings) as session:
        # Read by the interpreter at its start, and refused there.
        assert session.status == "not_installed"
        assert "PYTHONHASHSEED" in str(session.reason)
    with Session(fake("correct"), settings={"A": "spaces and // 'quotes'"}) as session:
        assert session.info["environment"]["settings"] == {"A": "spaces and // 'quotes'"}


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"fake_precision": "medium"}, {"fake_precision": "medium"}),
        ({"float32_matmul_precision": "medium", "OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "1"}),
    ],
)
def test_flags_are_recorded_and_those_of_another_framework_left_out(
    fake: Fake, settings: dict[str, str], kept: dict[str, str]
) -> None:
    with Session(fake("correct"), settings=settings) as session:
        environment = session.info["environment"]
    assert environment["settings"] == kept
    assert environment["flags"]["fake_precision"] == kept.get("fake_precision", "highest")


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("fake_precision", "low", "setting fake_precision=low raised ValueError"),
        ("omp_threads", "1", "no adapter has a flag named 'omp_threads'.*float32_matmul_precision"),
    ],
)
def test_flags_that_cannot_be_set_are_errors(fake: Fake, flag: str, value: str, said: str) -> None:
    with Session(fake("correct"), settings={flag: value}) as session:
        reply = session.run("sin", "forward", {"x": X})
    assert reply.status == session.status == "error"
    assert re.search(said, str(reply.reason))


def test_a_hung_import_is_a_timeout(tmp_path: Path) -> None:
    adapter = tmp_path / "slow_adapter.py"
    adapter.write_text("import time\ntime.sleep(60)\n", encoding="utf-8")
    framework = Framework("slow", adapter, python=sys.executable)
    with Session(framework, start_timeout=1.0) as session:
        assert session.status == "timeout"
        assert "no answer within 1 s while starting and importing" in str(session.reason)


def test_a_closed_session_starts_again_when_asked(fake: Fake) -> None:
    session = Session(fake("correct"))
    assert session.pid is None
    assert session.run("sin", "forward", {"x": X}).ok
    session.close()
    assert session.pid is None
    assert session.run("sin", "forward", {"x": X}).ok
    session.close()


def test_threads_take_turns(fake: Fake) -> None:
    with Session(fake("correct")) as session:
        wrong: list[float] = []

        def ask(value: float) -> None:
            x = np.full(20_000, value)
            for _ in range(5):
                y = session.run("sin", "forward", {"x": x}).outputs["y"]
                wrong.extend(y[y != np.float64(np.sin(np.longdouble(value)))])

        threads = [threading.Thread(target=ask, args=(float(i),)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    ("own", "settings", "value"),
    [
        (None, {}, "PASSIVE"),
        ("ACTIVE", {}, "ACTIVE"),
        (None, {"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE"),
    ],
)
def test_threads_sleep_while_they_wait_unless_the_user_says_otherwise(
    fake: Fake,
    monkeypatch: pytest.MonkeyPatch,
    own: str | None,
    settings: dict[str, str],
    value: str,
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if own is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", own)
    with Session(fake("correct"), settings) as session:
        content = Path(f"/proc/{session.pid}/environ").read_text(encoding="utf-8")
        assert content.split("\0").count(f"OMP_WAIT_POLICY={value}") == 1
        assert content.count("OMP_WAIT_POLICY") == 1
        assert session.info["environment"]["settings"] == settings


def test_every_status_has_its_test() -> None:
    tested = {"ok", "unsupported", "not_installed", *planted_faults.STATUS_OF.values()}
    assert tested == {"ok", *FAULTS} - {"wrong_shape"}
