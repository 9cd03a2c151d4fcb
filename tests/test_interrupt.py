"""Ctrl-C ends a command in one line with status 130, however early it comes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

X = np.linspace(-3, 3, 60).astype(np.float32).reshape(3, 20)
# A shell's background jobs ignore Ctrl-C; what is interrupted is our code, not Python's own start.
BEGIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from refkernels.__main__ import main
print("begun", flush=True)
main()
"""
COMMANDS = {
    "explain": ("explain", "layernorm", "--input", "x=x.npy", "--output", "y=x.npy"),
    "measure": ("measure", "--list"),
    "gallery": ("gallery", "sine-at-pi"),
    "reveal": ("reveal", "sum", "--framework", "numpy", "--k", "4096"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("after", [0.0, 0.3, 0.9])
def test_ctrl_c_at_any_moment_is_one_line(tmp_path: Path, command: str, after: float) -> None:
    np.save(tmp_path / "x.npy", X)
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN, *COMMANDS[command]],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert "Traceback" not in printed
    assert "Error" not in printed
    if process.returncode != 0:  # it had ended before
        assert process.returncode == 130, printed
        assert printed.splitlines()[-1:] == ["refkernels: stopped."], printed


WRAPPED = """
from refkernels import __main__ as command
class Interrupted:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt
def run():
    try:
        type("Made", (), {"part": Interrupted()})
    except KeyboardInterrupt as error:  # as Python 3.11 and older do by themselves
        raise RuntimeError("Error calling __set_name__") from error
command._run = run
command.main()
"""


def test_ctrl_c_while_a_class_is_made_is_one_line_and_other_errors_are_not() -> None:
    done = subprocess.run([sys.executable, "-c", WRAPPED], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "refkernels: stopped.\n")
    program = WRAPPED.replace("raise KeyboardInterrupt", "raise ValueError('no class')")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no class" in done.stderr


LOST = """
import signal, time
from refkernels import __main__ as command
class Part:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def run():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Part()
    time.sleep(30)
    print("it went on")
command._run = run
command.main()
"""


def test_ctrl_c_in_a_finaliser_is_one_line_and_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "refkernels: stopped.\n")
    program = LOST.replace("signal.raise_signal(signal.SIGINT)", "raise ValueError('left open')")
    program = program.replace("time.sleep(30)", "")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "it went on\n")
    assert "ValueError: left open" in done.stderr


LATE = """
import os, signal
from refkernels import __main__ as command
class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), interrupt=signal.SIGINT):
        kill(process, interrupt)  # modules go after Python's signal handlers
late = Late()
command._run = lambda: print("done")
command.main()
"""


def test_ctrl_c_after_the_end_does_not_spoil_it() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_what_the_terminal_cannot_show_is_still_reported(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    name = os.fsdecode(b"caf\xe9")
    kernel = ["--input", "x=x.npy", "--output", f"{name}:y=x.npy"]
    done = subprocess.run(
        [sys.executable, "-m", "refkernels", "explain", "sin", *kernel],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout.isascii()
