"""The process behind a session: starts it through execnet, sends it requests, and ends it.

An unexpected end becomes a `NoReply` with one of the session's statuses.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.frameworks import places, signals, starting
from refkernels.frameworks.environments import Interpreter
from refkernels.frameworks.transport import Array, Inline, SharedFolder, bits_dtype, unpack

WORKER = Path(__file__).parent / "remote" / "worker.py"
EXIT_SECONDS = 3.0
READY_SECONDS = 60.0
# Unset for a managed environment: it imports only its own packages, which are compiled once.
UNSET = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
# Set unless the user sets it: threads that wait for work sleep. Spinning changes no bit, but beside
# other busy processes it takes nine tenths of PyTorch's time for a small array.
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
# Runs the words after it, with their standard error in a file. Ctrl-C may remove the file's folder
# before the shell opens it: then it ends, and says nothing.
LOGGED = ("/bin/sh", "-c", 'exec 2>/dev/null; log=$0; exec "$@" 2>>"$log"')
OUT_OF_MEMORY = re.compile(
    r"bad_alloc|out of memory|alloc(ate)?( memory)? failed|fail(ed)? to alloc", re.IGNORECASE
)
INFORMATIVE = re.compile(r"fatal|error|terminate called", re.IGNORECASE)
CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


_SSH_FAILED = 255  # ssh's exit status where it cannot connect, and where a signal ends the program
_NOT_FOUND = 127  # a shell's, where there is no such program


class NoReply(Exception):
    """The worker did not answer; `status` and `reason` say why. `lost`: the connection to another
    machine may have ended it, so the answer is worth asking for again."""

    def __init__(self, status: str, reason: str, lost: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.lost = lost


class WorkerProcess:
    """A worker in `interpreter`, started with `environment` in addition to the user's variables.
    It may take `slowdown` times as long to start.

    Raises `NoReply` if the interpreter cannot be started: "not_installed", or "killed" or "timeout"
    if it was ended while it started.
    """

    def __init__(
        self, interpreter: Interpreter, environment: Mapping[str, str], slowdown: int = 1
    ) -> None:
        import execnet

        ready_seconds = READY_SECONDS * slowdown

        self._log: Path | None = None
        self._place = "" if interpreter.local else interpreter.python
        self._arrays: Inline = SharedFolder() if interpreter.local else Inline()
        self._group = execnet.Group()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            spec, words = self._execnet_spec(interpreter, environment)
            gateway = starting.start(self._group, spec, words, ready_seconds)
            # execnet hides the Popen object, but only its exit status reveals a crash.
            self._process = getattr(getattr(gateway, "_io", None), "popen", None)
            self._channel = gateway.remote_exec(WORKER.read_text(encoding="utf-8"))
            self._channel.receive(timeout=ready_seconds)
        except execnet.RemoteError as error:
            self.kill()
            line = str(error).strip().splitlines()[-1]
            raise NoReply(
                "import_error",
                f"{interpreter.python} has no usable NumPy ({line}): install it there, by "
                f"`{interpreter.python} -m pip install numpy`",
            ) from error
        except Exception as error:
            message = self._log_tail()
            if isinstance(error, starting.NotStarted):
                message = f"{error}; its last words: {message}" if message else str(error)
                message += _suggested_fix(self._place, error.code)
            elif isinstance(error, FileNotFoundError) and self._place:
                message = f"{error.filename} is not on the PATH: install it"
            self.kill()
            message = message or str(error) or type(error).__name__
            if "SyntaxError" in message:
                message += " (it must be Python 3.8 or later)"
            raise NoReply(
                getattr(error, "status", "not_installed"),
                f"the interpreter {interpreter.python!r} does not start: {message}",
            ) from error
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int | None:
        alive = self._process is not None and self._process.poll() is None
        return self._process.pid if alive and self._process else None

    def run(
        self, message: dict[str, Any], inputs: Mapping[str, Array], seconds: float
    ) -> dict[str, Any]:
        """`ask` with arrays; the reply's outputs are arrays.  Raises `TypeError` for a dtype that
        cannot be sent."""
        try:
            message = {**message, "inputs": self._arrays.send(inputs)}
        except OSError as error:
            raise NoReply("error", f"the inputs could not be sent: {error}") from error
        reply = self.ask(message, seconds)
        if reply["status"] == "ok":
            reply["outputs"] = self._arrays.receive(reply["outputs"])
        return reply

    def load(self, message: dict[str, Any], path: Path, seconds: float) -> dict[str, Any]:
        """`ask` with a file, whose content is sent if the worker is on another machine."""
        try:
            content = None if self._arrays.path else path.read_bytes()
        except OSError as error:
            raise NoReply("error", f"{path} cannot be read ({error.strerror})") from error
        place = {"path": str(path.absolute()), "name": path.name, "content": content}
        reply = self.ask({**message, **place}, seconds)
        if reply["status"] == "ok":
            reply["outputs"] = self._arrays.receive(reply["outputs"])
        return reply

    def sweep(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """`ask` with patterns; the output, "", is a view that the next sweep overwrites."""
        dtype, count = message["dtype"], message["count"]
        window = self._arrays.window(count * bits_dtype(dtype).itemsize)
        reply = self.ask({**message, "window": window and str(window.path)}, seconds)
        if reply["status"] == "ok" and window is not None:
            reply["outputs"] = {"": window.array(dtype, count)}
        elif reply["status"] == "ok":
            bits = np.frombuffer(reply["content"], bits_dtype(dtype))
            reply["outputs"] = {"": unpack(dtype, bits)}
        return reply

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for its answer; raise `NoReply` when none comes."""
        activity = "starting and importing" if message["do"] == "hello" else _activity(message)
        if message["do"] == "hello":
            message = {**message, "folder": self._arrays.path and str(self._arrays.path)}
        try:
            self._channel.send(message)
            reply = self._channel.receive(timeout=seconds)
        except self._channel.TimeoutError:
            self.kill()
            raise NoReply("timeout", f"no answer within {seconds:g} s while {activity}") from None
        except (EOFError, OSError) as error:
            raise self._ended(activity) from error
        except self._channel.RemoteError as error:
            line = str(error).strip().splitlines()[-1]
            raise NoReply("error", f"the worker failed while {activity}: {line}") from error
        return dict(reply)

    def quit(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        with contextlib.suppress(EOFError, OSError):
            self._channel.send({"do": "quit"})
        self._release()

    def kill(self) -> None:
        """End the process at once."""
        self.end()
        self._release()

    def end(self) -> None:
        """End only the process: the thread that waits for its answer notices it and cleans up."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _release(self) -> None:
        self._group.terminate(timeout=EXIT_SECONDS)
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self._arrays.close()

    def _ended(self, activity: str) -> NoReply:
        """The fault of a worker that ended without an answer."""
        code = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(EXIT_SECONDS)
        last_line = self._log_tail()
        if OUT_OF_MEMORY.search(last_line):
            return NoReply(
                "oom", f"out of memory while {activity}, which ended the process ({last_line})"
            )
        if code is not None and code < 0:
            name = signals.name(-code)
            hint = " (as the system does when memory runs out)" if name == "SIGKILL" else ""
            words = f"; its last words: {last_line}" if last_line and name != "SIGKILL" else ""
            return NoReply(
                "killed",
                f"the process was ended by {name}{hint} while {activity}{words}",
                lost=bool(self._place),
            )
        if self._place and code == _SSH_FAILED:
            return NoReply(
                "killed",
                f"the connection to {self._place} was lost, or the process there was killed, while "
                f"{activity}",
                lost=True,
            )
        words = f" ({last_line})" if last_line else ""
        status = "unknown exit status" if code is None else f"exit status {code}"
        return NoReply("killed", f"the process ended with {status} while {activity}{words}")

    def _log_tail(self) -> str:
        """The last informative line of the worker's standard error."""
        if self._log is None:
            return ""
        with contextlib.suppress(OSError):
            text = self._log.read_text(encoding="utf-8", errors="replace")
            lines = [CONTROL_SEQUENCE.sub("", line).strip() for line in text.splitlines()[-50:]]
            lines = [line for line in lines if line]
            for sign in (OUT_OF_MEMORY, INFORMATIVE):
                lines = [line for line in lines if sign.search(line)] or lines
            return lines[-1][:300] if lines else ""
        return ""

    def _execnet_spec(
        self, interpreter: Interpreter, environment: Mapping[str, str]
    ) -> tuple[Any, list[str]]:
        """execnet's specification without the interpreter, and the words that start the
        interpreter."""
        import execnet

        python = interpreter.python
        if interpreter.local:
            defaults = {name: value for name, value in PATIENT.items() if name not in os.environ}
            environment = {**defaults, **environment}
        places.check(python)
        if places.is_spec(python):
            spec = execnet.XSpec(python)
            words = places.command(spec.python if isinstance(spec.python, str) else None)
        else:
            spec = execnet.XSpec("popen")
            words = [python]
        spec.execmodel = spec.execmodel or "main_thread_only"
        if os.name == "nt" and interpreter.local:
            spec.env.update(environment)
            return spec, words
        # `env` sets the variables before the interpreter starts, execnet only afterwards.
        assigned = [f"{key}={value}" for key, value in environment.items()]
        unset = UNSET if interpreter.source == "managed" else ()
        options = [word for name in unset for word in ("-u", name)]
        if assigned or options:
            words = ["env", *options, *assigned, *words]
        if self._arrays.path is not None:
            self._log = self._arrays.path / "stderr.log"
            words = [*LOGGED, str(self._log), *words]
        return spec, words


def _activity(message: Mapping[str, Any]) -> str:
    if message["do"] == "sweep":
        return f"sweeping {message['op']} on {message['device']}"
    if message["do"] == "load":
        return f"reading {message['name']}"
    return f"running {message['op']} {message['direction']} on {message['device']}"


def _suggested_fix(place: str, code: int | None) -> str:
    """What to do where an interpreter on another machine does not start, by ssh's exit status."""
    if place and code == _SSH_FAILED:
        host = place.split("//")[0].partition("=")[2]
        return f": `ssh {host} true` has to end without a question and without an error"
    if place and code == _NOT_FOUND:
        return ": that machine has no such program, so name another one after //python="
    return ""
