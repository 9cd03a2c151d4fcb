"""A framework's own interpreter, which runs programs one after the other: an import takes seconds,
and what a test asks is the framework's answer, not its start."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from presence import interpreter_of

_ANSWER = "answer: "
_SERVE = f"""
import contextlib, importlib, io, json, sys, traceback
framework = importlib.import_module(sys.argv[1])
threads = framework.get_num_threads() if hasattr(framework, "get_num_threads") else None
for line in sys.stdin:
    program, arguments = json.loads(line)
    sys.argv, printed, error = ["-c", *arguments], io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(program, {{"__name__": "__main__"}})
        except BaseException:
            error = traceback.format_exc()
    if threads:  # a program may have set them, and sums of the next would be other sums
        framework.set_num_threads(threads)
    print({_ANSWER!r} + json.dumps([printed.getvalue(), error]), flush=True)
"""


class PlainInterpreter:
    """One that knows nothing of this project."""

    def __init__(self, framework: str) -> None:
        """A framework that is not installed ends the test."""
        python = interpreter_of(framework).python
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([python, "-c", _SERVE, framework], **pipes)

    def run(self, program: str, *arguments: str) -> str:
        """What the program prints. sys.argv[1:] are the arguments. An error ends the test."""
        printed, error = self.outcome(program, *arguments)
        assert not error, error
        return printed

    def outcome(self, program: str, *arguments: str) -> tuple[str, str]:
        """What the program prints, and the traceback that it ends with."""
        print(json.dumps([program, arguments]), file=self._process.stdin, flush=True)
        line = ""
        while not line.startswith(_ANSWER):
            line = self._process.stdout.readline()
            assert line, "the interpreter ended"
        printed, error = json.loads(line.removeprefix(_ANSWER))
        return str(printed), str(error)

    def close(self) -> None:
        with self._process:  # which closes its pipes, and waits
            pass


_SCRIPT = 'import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name="__main__")'


def in_one_process(start: Callable[[str], PlainInterpreter]) -> Any:
    """What stands for `subprocess` where PyTorch's interpreter runs scripts: one runs all."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        _, error = start("torch").outcome(_SCRIPT, *command[1:])
        return subprocess.CompletedProcess(command, int(bool(error)), "", error)

    return SimpleNamespace(**{**vars(subprocess), "run": run})
