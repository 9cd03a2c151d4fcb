"""Command lines: whatever is typed ends with a documented status and without a traceback.

Nothing is started or installed here, no interpreter is found and no worker made: the commands'
reading of arguments and files is what is fuzzed.
"""

import functools
import io
import shlex
import sys
from pathlib import Path
from typing import Any

import mutations
import numpy as np
import pytest
import typer

from refkernels import __main__
from refkernels.cli.app import app
from refkernels.diagnosis import casefile
from refkernels.frameworks import environments
from refkernels.records.journal import JournalError
from refkernels.runs import measurement, sweeps

X = np.linspace(-3, 3, 6).astype(np.float32).reshape(2, 3)
STATUSES = {0, 1, 2, 130}
COMMANDS = {
    "explain": ["sin", "--input", "x=x.npy", "--output", "y=y.npy"],
    "measure": ["--list"],
    "sweep": ["sin", "--framework", "numpy"],
    "reveal": ["sum", "--framework", "numpy"],
    "report": ["."],
    "gallery": ["sine-at-pi"],
    "env list": [],
    "env add": ["mine", "python3"],
    "env remove": ["mine"],
}
WORDS = (
    "", "sin", "layernorm", "matmul", "linear", "sine", "numpy", "torch==2.6.0", "==", "numpy==",
    "float32", "float8", "cpu", "cuda:0", "forward", "up", "en", "fr", "x=x.npy", "x=", "=x.npy",
    "k:y=y.npy", "y=/dev/zero", "y=pipe", "x=.", "x=missing.npy", "x=case.npz", "case.npz",
    "cut.npz", "missing.npz", "x.npy", "eps=1e-5", "eps=" + "9" * 400, "eps=[1e999]", "eps=nan",
    "normalized_shape=[3]", "normalized_shape=" + "[" * 100, "A=1", "A", "a=b", "A=\ud800",
    "0", "1", "-1", "99999999999", "1" + "0" * 23, "1e400", "nan", "inf", "0x1p3", "0x0:0xff",
    "0:1", "1:0", "nan:nan", "0x0:1", "0x" + "f" * 900 + ":0x0", "*", "[", "sin/*", "../..",
    "\ud800", "café", "數", "a\nb", "\x1b[31m", "-" * 9000, "(" * 90, "tcp://",
    "C:\\x", "out", "x.npy/out",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with arrays, a case and records; no interpreter to find, no worker to make."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path / "home"))
    np.save("x.npy", X)
    np.save("y.npy", np.sin(X))
    case = casefile.CaseFile("sin", "forward", {"x": X}, {"a": {"y": np.sin(X)}})
    casefile.save("case.npz", case)
    Path("cut.npz").write_bytes(Path("case.npz").read_bytes()[:-40])
    Path("records.jsonl").write_text('{"schema": 1, "kind": "environment", "framework": "a"}\n')

    def nothing(spec: Any, machine: str = "") -> Any:
        raise environments.NotInstalled(f"{spec} is not installed: this is a test")

    def nobody(width: Any = None) -> Any:
        raise sweeps.CrewError("There are no workers in this test.")

    def unmeasured(*_: Any, **__: Any) -> Any:
        raise JournalError("Nothing is measured in this test.")

    monkeypatch.setattr(environments, "find", nothing)
    monkeypatch.setattr(measurement, "measure", unmeasured)
    monkeypatch.setattr(sweeps, "Processes", nobody, raising=False)
    monkeypatch.setattr(sweeps, "Dask", nobody, raising=False)
    return tmp_path


def command_line(random: np.random.Generator) -> list[str]:
    """A right command line with words altered, left out, added and doubled."""
    # Most of what is read in is read in by explain.
    name = "explain" if random.random() < 0.4 else str(random.choice(list(COMMANDS)))
    words = [*name.split(), *COMMANDS[name]]
    for _ in range(int(random.integers(0, 4))):
        place = int(random.integers(1, len(words) + 1))
        what = random.random()
        if what < 0.4:
            words[place:place] = [_pick(options_of(name), random), _pick(WORDS, random)]
        elif what < 0.6:
            words[place : place + 1] = [_pick(WORDS, random)]
        elif what < 0.8:
            words[place:place] = [_pick(WORDS, random)]
        else:
            del words[place : place + 1]
    return words


@functools.cache
def options_of(name: str) -> tuple[str, ...]:
    """The options of a command, and one that it does not have."""
    command: Any = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    names = [option for param in command.params for option in param.opts]
    return (*[option for option in names if option.startswith("--")], "--help", "--no-such-option")


def _pick(choices: tuple[str, ...], random: np.random.Generator) -> str:
    return choices[int(random.integers(len(choices)))]


def ended(words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """(status, standard output, standard error) of the console script in this process."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["refkernels", *words])
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        patch.setattr("signal.signal", lambda *_: None)
        patch.setattr("atexit.register", lambda *_: None)
        status: Any = 0
        try:
            __main__.main()
        except SystemExit as end:
            status = end.code or 0
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    return status, out, err


def test_every_command_line_ends_with_a_status_and_no_traceback(
    hunt: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hunt.seconds *= 0.4
    statuses = set()
    for number, random in hunt.cases():
        words = command_line(random)
        message = f"refkernels {shlex.join(words)!r}; {hunt.replay(number)}"
        try:
            status, _, err = ended(words, monkeypatch)
        except Exception as error:
            raise AssertionError(message) from error
        statuses.add(status)
        assert status in STATUSES, message
        assert "Traceback" not in err, message
        assert status != 2 or err.strip(), message
    assert hunt.run > 0
    assert {0, 2} <= statuses or hunt.run < 20


def test_edited_records_end_the_report_in_a_sentence(
    hunt: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hunt.seconds *= 0.05
    for number, random in hunt.cases():
        record = {"schema": 1, "kind": "sweep", "op": "sin", "framework": "a", "counts": {}}
        changed = mutations.mutated({**record, "dtype": "float32", "direction": "f"}, random)
        Path("sweeps.jsonl").write_text(mutations.line(changed) + "\n")
        status, _, err = ended(["report", "."], monkeypatch)
        assert status in (0, 2), hunt.replay(number)
        assert "Traceback" not in err, hunt.replay(number)
        assert status == 0 or len(err.splitlines()) == 1, hunt.replay(number)
    assert hunt.run > 0
