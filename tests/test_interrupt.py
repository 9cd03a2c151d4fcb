"""Ctrl-C ends a command in one line with status 130, however early it comes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from refkernels.frameworks import process

X = np.linspace(-3, 3, 60).astype(np.float32).reshape(3, 20)
# A shell's background jobs ignore Ctrl-C; what is interrupted is our code, not Python's own start.
# Ctrl-C comes at an event: Python's n-th import or opened file, or when a process has just begun.
BEGIN = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from refkernels.__main__ import main
event, left = sys.argv.pop(1), int(sys.argv.pop(1))
def interrupted(name, *_):
    global left
    if name == event:
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGINT)
sys.addaudithook(interrupted)
begin = subprocess.Popen._execute_child
def begun(*arguments, **named):
    begin(*arguments, **named)
    interrupted("begun")
subprocess.Popen._execute_child = begun
main()
"""
COMMANDS = {
    "explain": ("explain", "layernorm", "--input", "x=x.npy", "--output", "y=x.npy"),
    "measure": ("measure", "--list"),
    "gallery": ("gallery", "sine-at-pi"),
    "reveal": ("reveal", "sum", "--framework", "numpy", "--k", "4096"),
}
MOMENTS = [("explain", "import", 1), ("reveal", "begun", 1)]  # no command yet; none else begins one
MOMENTS += [(c, *at) for c in COMMANDS for at in (("import", 40), ("import", 400), ("open", 300))]


@pytest.mark.parametrize(("command", "event", "number"), MOMENTS)
def test_ctrl_c_at_any_moment_is_one_line(
    tmp_path: Path, command: str, event: str, number: int
) -> None:
    np.save(tmp_path / "x.npy", X)
    done = subprocess.run(
        [sys.executable, "-c", BEGIN, event, str(number), *COMMANDS[command]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1:] == ["refkernels: stopped."], done.stderr


def test_a_process_whose_folder_is_removed_as_it_begins_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "removed" / "stderr.log"
    done = subprocess.run([*process.LOGGED, str(log), "echo", "ran"], capture_output=True)
    assert done.returncode != 0
    assert (done.stdout, done.stderr) == (b"", b"")
    log.parent.mkdir()
    done = subprocess.run([*process.LOGGED, str(log), "no-such-program"], capture_output=True)
    assert (done.returncode, done.stderr) == (127, b"")
    assert "no-such-program" in log.read_text()


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
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True)
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
