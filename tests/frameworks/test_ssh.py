"""Another machine, over ssh: a real sshd on the loopback interface, with its own keys."""

import getpass
import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from refkernels.frameworks import home
from refkernels.frameworks.gateway import Session
from refkernels.runs import measurement

HOST = "refkernels-loopback"
SECONDS = 600.0
X = np.linspace(-3, 3, 7, dtype=np.float32)


def sshd_here() -> str:
    """The path of sshd; skips with the reason where it cannot be run."""
    path = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if path is None or shutil.which("ssh-keygen") is None:
        pytest.skip("sshd is not installed (Debian: apt install openssh-server)")
    if os.getuid() == 0 and "sshd" not in {user.pw_name for user in pwd.getpwall()}:
        pytest.skip("root's sshd needs a user named sshd (Debian: apt install openssh-server)")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The process id of an sshd that the name `HOST` leads to, on the PATH's `ssh`."""
    sshd, folder, port = sshd_here(), tmp_path_factory.mktemp("sshd"), free_port()
    for key in ("host", "mine"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(command, check=True)
    shutil.copy(folder / "mine.pub", folder / "authorized")
    known = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {known}")
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nPasswordAuthentication no\nStrictModes no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nUsePAM no\n"
    )
    (folder / "config").write_text(
        f"Host {HOST}\nHostName 127.0.0.1\nPort {port}\nUser {getpass.getuser()}\nBatchMode yes\n"
        f"IdentityFile {folder}/mine\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        "StrictHostKeyChecking yes\n"
    )
    (folder / "bin").mkdir()
    client = f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n'
    (folder / "bin" / "ssh").write_text(client)
    (folder / "bin" / "ssh").chmod(0o755)
    with (folder / "log").open("wb") as log, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # as the system's service does
        command = [sshd, "-D", "-e", "-f", str(folder / "sshd_config")]
        server = subprocess.Popen(command, stderr=log)
        try:
            deadline = time.monotonic() + SECONDS
            while subprocess.run(["ssh", HOST, "true"], capture_output=True).returncode:
                if server.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"sshd does not answer: {(folder / 'log').read_text()[-500:]}")
                time.sleep(0.2)
            yield server.pid
        finally:
            server.terminate()
            server.wait()


PLACE = f"ssh={HOST}//python={shlex.quote(sys.executable)}"


@pytest.fixture
def named(machine: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy means the other machine's."""
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path / "home"))
    home.write_named({"numpy": home.NamedEnvironment(PLACE)})


def below(pid: int) -> list[tuple[int, str]]:
    """(process id, command line) of all processes below one, children first."""
    listed = subprocess.run(
        ["ps", "-e", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    processes: list[tuple[int, str]] = []
    for own, parent, args in (row for row in rows if len(row) == 3):
        if int(parent) == pid:
            processes = [*below(int(own)), (int(own), args), *processes]
    return processes


def interpreter(machine: int) -> int:
    return next(pid for pid, args in below(machine) if "refkernels-begins" in args)


def test_it_answers_with_the_bits_of_this_machine(machine: int) -> None:
    with Session("numpy", place=PLACE) as there, Session("numpy", place=sys.executable) as here:
        assert there.status == "ok", there.reason
        assert interpreter(machine) != here.pid
        large = np.linspace(0, 1, 300_000, dtype=np.float32)
        for x in (X, large):
            answers = [
                session.run("sin", "forward", {"x": x}).outputs["y"] for session in (there, here)
            ]
            assert answers[0].tobytes() == answers[1].tobytes()
        swept = [
            session.sweep("sin", "float32", 0x3F800000, 5000).outputs[""]
            for session in (there, here)
        ]
        assert swept[0].tobytes() == swept[1].tobytes()


@pytest.mark.parametrize("lost", ["the interpreter", "the connection"])
def test_a_lost_end_is_a_record_and_the_next_run_starts_anew(machine: int, lost: str) -> None:
    with Session("numpy", place=PLACE) as session:
        assert session.run("sin", "forward", {"x": X}).ok
        assert session.pid is not None
        os.kill(interpreter(machine) if lost == "the interpreter" else session.pid, signal.SIGKILL)
        reply = session.run("sin", "forward", {"x": X})
        assert (reply.status, reply.started) == ("killed", False)  # --resume asks again
        assert "while running sin forward on cpu" in str(reply.reason)
        assert session.run("sin", "forward", {"x": X}).ok
        assert session.starts == 2


def test_what_a_lost_connection_took_is_measured_when_the_run_resumes(
    named: None, machine: int, tmp_path: Path
) -> None:
    plan = measurement.select(["matmul"], ["float32"], full=False)  # more than are asked ahead
    lost = []

    def cut(now: measurement.Progress) -> None:
        if now.done and not lost:
            lost.append(interpreter(machine))
            os.kill(lost[0], signal.SIGSTOP)  # the next answer does not come, ...
            threading.Timer(1.0, os.kill, (lost[0], signal.SIGKILL)).start()  # ... and is lost

    out = tmp_path / "out"
    whole = measurement.measure(plan, tmp_path / "whole", frameworks=["numpy"])
    broken = measurement.measure(plan, out, frameworks=["numpy"], progress=cut)
    again = measurement.measure(plan, out, frameworks=["numpy"], resume=True)
    assert (len(lost), broken.faults > 0, again.faults) == (1, True, 0)
    digests = [[r.get("digest") for r in run.records] for run in (whole, again)]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("place", "fix"),
    [
        (f"ssh={HOST}//python=/nowhere/python", "name another one after //python="),
        ("ssh=nobody.invalid", "`ssh nobody.invalid true` has to end without a question"),
    ],
)
def test_a_place_that_cannot_be_reached_is_told_with_the_cure(
    machine: int, place: str, fix: str
) -> None:
    with Session("numpy", place=place) as session:
        assert session.status == "not_installed"
        assert fix in str(session.reason)


def test_a_machine_without_ssh_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with Session("numpy", place="ssh=somewhere") as session:
        assert str(session.reason).endswith("does not start: ssh is not on the PATH: install it")
