"""Starts an interpreter as execnet's gateway, whatever it prints first.

execnet communicates through the standard output and takes its first byte for the other side's
greeting, but a site module, a wrapper script or a login shell may print there first. So the
interpreter first prints a marker line, and everything up to the end of it is skipped.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
from collections.abc import Iterator
from typing import Any

BEGINS = "refkernels-begins"
# The interpreter gets execnet's arguments after these: the last one is the code to run.
FIRST = f'import sys;print("{BEGINS}",flush=True);_=sys.argv.pop();del sys.argv[1:];exec(_)'
_MOST_NOISE = 1 << 20


class NotStarted(Exception):
    """The interpreter ended, with the exit status `code`, or did not begin in time; the message
    quotes what it printed."""

    def __init__(
        self, status: str, cause: str, noise: bytes | bytearray, code: int | None = None
    ) -> None:
        text = " ".join(noise[-300:].decode("utf-8", "replace").split())
        super().__init__(f"{cause}; it printed {text!r}" if text else cause)
        self.status = status
        self.code = code


def start(group: Any, spec: Any, words: list[str], seconds: float) -> Any:
    """The gateway of the interpreter that `words` start, like `group.makegateway(spec)`. Raises
    NotStarted and execnet's exceptions."""
    from execnet import gateway_bootstrap, gateway_io

    if spec.socket or spec.via:  # a server that is already running
        spec.python = shlex.join(words)
        return group.makegateway(spec)
    spec.python = shlex.join([*words, "-u", "-c", FIRST])
    group.allocate_id(spec)
    io = gateway_io.create_io(spec, group.execmodel)
    try:
        with _killed_after(io, seconds) as late:
            _skip_noise(io, late, seconds)
            gateway = gateway_bootstrap.bootstrap(io, spec)
    except BaseException:
        io.kill()
        io.wait()
        for pipe in (io.infile, io.outfile):
            with contextlib.suppress(OSError):
                pipe.close()
        raise
    gateway.spec = spec
    group._register(gateway)
    return gateway


@contextlib.contextmanager
def _killed_after(io: Any, seconds: float) -> Iterator[threading.Event]:
    """Kill the process after `seconds` and set the event: a thread that waits for it wakes up."""
    late = threading.Event()

    def end() -> None:
        late.set()
        io.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _skip_noise(io: Any, late: threading.Event, seconds: float) -> None:
    """Read up to the end of the line with which the interpreter begins."""
    noise = bytearray()
    sign = BEGINS.encode()
    with contextlib.suppress(EOFError):
        while len(noise) < _MOST_NOISE:
            noise += io.read(1)
            if noise.endswith(sign):
                while io.read(1) != b"\n":
                    pass
                return
    if late.is_set():
        raise NotStarted("timeout", f"it did not begin within {seconds:g} s", noise)
    if len(noise) >= _MOST_NOISE:
        raise NotStarted("not_installed", "it does not stop printing", noise)
    code = io.wait()
    if code is not None and code < 0:
        raise NotStarted("killed", f"signal {-code} ended it", noise)
    raise NotStarted("not_installed", f"it ended with exit status {code}", noise, code)
