"""Cells: processes that run a kernel, with bytes in and bytes out (`remote/cell.py`).

    with Cell(framework, interpreter) as cell, cell.session() as session:
        reply = session.call(CellCall("forward", {"x": x}, {}))

The kernel's file is loaded once; each session is a fork of that process, so that nothing is carried
over from one session to the next. A session that has compiled the kernel may be kept: later ones
are then forks of its process. Where the kernel's library does not survive a fork (JAX, CuPy,
torch on a GPU), each session starts an interpreter of its own. Inputs lie in files of the host,
which the kernel's process maps read-only. Where a kernel needs writable arrays, the files are
compared after each call.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.frameworks import places, signals
from refkernels.frameworks.catalog import Framework, FrameworkError
from refkernels.frameworks.environments import Interpreter
from refkernels.frameworks.process import UNSET
from refkernels.frameworks.transport import SharedFolder, bits_dtype, unpack
from refkernels.records.texts import showable

Array = npt.NDArray[Any]
CELL = Path(__file__).parent / "remote" / "cell.py"
POISON = 0xFFFE  # as in `remote/cell.py`
PAGE, ALIGNMENT = os.sysconf("SC_PAGESIZE") if hasattr(os, "sysconf") else 4096, 64
LOADING = 120.0  # seconds: an import of a framework, and what the file compiles
COMPILING = 60.0  # seconds, of the first call of a session at least: what it compiles for a shape
_CHUNK = 1 << 16  # bytes: what a pipe holds
_UNFORKABLE = ("jax", "cupy")
_SETTINGS = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # compiles without threads, which forks lack
    "OMP_WAIT_POLICY": "passive",  # on a busy machine, threads that spin take 10 ms a call
}
_WITHOUT_ARRAYS = ("error", "unsupported", "oom")


@dataclass(frozen=True)
class CellCall:
    """One call of a kernel. `slot`: calls of equal layout in one slot have equal pointers;
    `before`: whether the arrays touch the protected page before them, not the one behind; `key`
    seeds the NaNs of outputs; `sizes`: bytes of the blocks that are poisoned."""

    direction: str
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    slot: int = 0
    before: bool = False
    key: int = 0
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class CellReply:
    """The answer. `status`: "ok", "error", "unsupported", "oom", "killed" (by `signal`),
    "timeout"; `outputs`: arrays, or tuples of them, by name; `aliases`: whether one lies in an
    input's memory; `written`: whether the kernel changed its inputs, and `overwrites`, an earlier
    answer; `waited`: seconds, by the host's clock, from the message to the last byte of the answer;
    `flushes`: the last import before its process flushed subnormal numbers, None if it does not."""

    status: str
    reason: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    aliases: bool = False
    written: bool = False
    overwrites: bool = False
    waited: float = 0.0
    signal: int = 0
    flushes: str | None = None


class Cell(contextlib.AbstractContextManager["Cell"]):
    """A kernel's process. `writable`: whether its inputs may be written to, which some compiled
    functions demand of every array.

    Raises FrameworkError, one sentence, where the interpreter is on another machine, does not
    start, or cannot load the kernel's file.
    """

    def __init__(
        self,
        framework: Framework,
        interpreter: Interpreter,
        device: str = "cpu",
        seconds: float = 10.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if not interpreter.local or places.is_spec(interpreter.python):
            raise FrameworkError(
                f"{interpreter.python} is not the path of a Python on this machine: a kernel is "
                "judged in a process that shares memory with the judge"
            )
        if not hasattr(os, "fork"):
            raise FrameworkError("kernels are judged on Linux and macOS only")
        self._source = framework.source().encode()
        self._python, self._device, self._seconds = interpreter.python, device, seconds
        self._environment = {**_SETTINGS, **os.environ, **(environment or {})}
        for name in UNSET if interpreter.source == "managed" else ():
            self._environment.pop(name, None)
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = bytearray()  # from the pipe, for the next `_line` or `_read`
        self._folder = SharedFolder()
        assert self._folder.path is not None
        self.path: Path = self._folder.path
        self.writable = False
        self.forks, self.warm = device == "cpu", False
        try:
            self.arrays = self._start()
            if self.arrays in _UNFORKABLE:
                self.forks = False
                self.restart()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.restart()
        self._folder.close()

    @contextlib.contextmanager
    def session(self) -> Iterator[CellSession]:
        """A fresh process: calls of the kernel that share nothing with other sessions'."""
        if self._process is None:
            self._start()
        self._send({"begin": True})
        session = CellSession(self)
        try:
            yield session
        finally:
            if not session.over:
                self._send({"end": True})
                if not self.forks or self._line(LOADING) is None:
                    self.restart()

    def _start(self) -> str:
        """Start the process and load the kernel's file; the library whose arrays it takes."""
        # discards the kernel's prints and a compiler's warnings
        self._process = subprocess.Popen(
            [self._python, str(CELL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=self._environment,
            start_new_session=True,
        )
        self._unread.clear()
        self._send({"fork": self.forks, "source": len(self._source)}, self._source)
        reply = self._line(LOADING)
        if reply is None or reply.get("status") != "ok":
            self.restart()
            answered = "" if reply is None else showable(str(reply.get("reason", "")))
            reason = f"no answer in {LOADING:g} s" if reply is None else answered
            raise FrameworkError(f"the kernel's file cannot be loaded ({reason or 'it ended'})")
        return str(reply.get("arrays"))

    def _send(self, message: Mapping[str, Any], content: bytes = b"") -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the end is reported where a line is awaited
            text = json.dumps(message).encode()
            view = memoryview(b"%010d%b%b" % (len(text), text, content))
            while view:
                view = view[self._process.stdin.write(view) :]

    def _line(self, seconds: float) -> dict[str, Any] | None:
        """The next line; None where none comes in time, or the process is gone."""
        deadline = time.monotonic() + seconds
        while (end := self._unread.find(b"\n") + 1) == 0:
            if not self._more(deadline):
                return None
        text = self._read(end, deadline)
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return line if isinstance(line, dict) else None

    def _read(self, most: int, deadline: float) -> bytes:
        """Some of the next bytes; none where none come in time."""
        if not self._unread:
            self._more(deadline)
        piece = bytes(self._unread[:most])
        del self._unread[:most]
        return piece

    def _more(self, deadline: float) -> bool:
        """Read what comes in time; False for nothing."""
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        if not select.select([pipe], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            return False
        piece = os.read(pipe, _CHUNK)
        self._unread += piece
        return bool(piece)

    def restart(self) -> None:
        """End all processes: the next session starts with a new one."""
        process, self._process, self.warm = self._process, None, False
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg") and hasattr(signal, "SIGKILL"):
                os.killpg(process.pid, signal.SIGKILL)  # with all that the kernel has started
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


class CellSession:
    """The calls of one process. `over`: whether it has ended; `one_thread`: whether it has no more,
    which forks of it would lack."""

    def __init__(self, cell: Cell) -> None:
        self.over = self.one_thread = False
        self._cell = cell
        self._seconds = max(cell._seconds, COMPILING)

    def keep(self) -> None:
        """Its process makes no more calls: later sessions are forks of it."""
        self.over = self._cell.warm = True

    def replaced(self) -> tuple[str, ...]:
        """The functions of other modules that the kernel's files have replaced so far, as its
        process says."""
        self._cell._send({"replaced": True})
        reply = self._cell._line(self._seconds) or {}
        return tuple(map(showable, map(str, list(reply.get("replaced") or ""))))

    def call(self, call: CellCall) -> CellReply:
        """Call the kernel. Whatever happens to its process is the reply's status."""
        cell = self._cell
        if self.over:
            return CellReply("killed", "its process has ended")
        path, message, layout = self._laid_out(call)
        begin = time.perf_counter()
        cell._send(message)
        reply = cell._line(self._seconds)
        if reply is None:
            return self._gone()
        try:
            if "ended" in reply:
                return self._ended(-int(reply["ended"]))
            self._seconds = cell._seconds
            return self._received(reply, path, layout, begin)
        except Exception as error:  # whatever it sent
            gone = self._gone()
            if isinstance(error, EOFError) and gone.status == "timeout":
                return gone
            return CellReply("error", "its process sent something other than arrays")

    def _ended(self, number: int) -> CellReply:
        self.over = True
        name = signals.name(number) if number > 0 else f"exit status {-number}"
        return CellReply("killed", f"its process was ended by {name}", signal=max(number, 0))

    def _gone(self) -> CellReply:
        cell = self._cell
        assert cell._process is not None
        self.over = True
        time.sleep(0.01)
        code = cell._process.poll()
        cell.restart()
        if code is None:
            return CellReply("timeout", f"no answer within {self._seconds:g} s")
        return CellReply("killed", "its process ended", signal=max(-code, 0))

    def _laid_out(self, call: CellCall) -> tuple[Path, dict[str, Any], bytes]:
        """Write the inputs; the file, the message, and the file's content."""
        content = bytearray()
        placed, dtypes = dict[str, Any](), dict[str, str]()
        path = self._cell.path / f"slot-{call.slot}"
        for name, value in call.inputs.items():
            arrays = value if isinstance(value, list | tuple) else [value]
            parts = [_place(array, str(path), content, call.before) for array in arrays]
            placed[name] = parts if arrays is value else parts[0]
            dtypes[name] = arrays[0].dtype.name
        _write(path, content)
        message = {
            "inputs": placed, "dtypes": dtypes, "params": dict(call.params),
            "direction": call.direction, "device": self._cell._device,
            "writable": self._cell.writable, "before": call.before, "key": call.key,
            "poison": list(call.sizes),
        }  # fmt: skip
        return path, message, bytes(content)

    def _received(
        self, reply: Mapping[str, Any], path: Path, layout: bytes, begin: float
    ) -> CellReply:
        if reply["status"] != "ok":
            if reply["status"] not in _WITHOUT_ARRAYS:
                raise ValueError
            return CellReply(str(reply["status"]), showable(str(reply.get("reason", ""))))
        outputs, aliases = {}, False
        deadline = time.monotonic() + LOADING
        for name, header in reply["outputs"].items():
            parts = header if isinstance(header, list) else [header]
            arrays = [self._array(part, deadline) for part in parts]
            outputs[showable(name)] = tuple(arrays) if parts is header else arrays[0]
            aliases |= any(part["alias"] for part in parts)
        waited = time.perf_counter() - begin
        acts = aliases, path.read_bytes()[: len(layout)] != layout, bool(reply["overwrites"])
        since = showable(str(reply["flushes"])) if "flushes" in reply else None
        self.one_thread = reply.get("threads") == 1
        return CellReply("ok", "", outputs, *acts, waited, flushes=since)

    def _array(self, header: Mapping[str, Any], deadline: float) -> Array:
        dtype, left, content = str(header["dtype"]), int(header["bytes"]), bytearray()
        while len(content) < left:
            content += (piece := self._cell._read(left - len(content), deadline))
            if not piece:
                raise EOFError
        bits = np.frombuffer(bytes(content), bits_dtype(dtype))
        return unpack(dtype, bits.reshape(header["shape"]).copy())


def _place(array: Array, path: str, content: bytearray, before: bool) -> dict[str, Any]:
    """Append the array's pages, NaN bytes around and between its elements; its description."""
    name = array.dtype.name
    bits = array.view(np.uint16) if name == "bfloat16" else array
    extent, strides = _extent(bits)
    step = ALIGNMENT if bits.flags.c_contiguous else 1  # a view may begin at any element
    odd = (bits.ctypes.data - getattr(bits.base, "ctypes", bits.ctypes).data) % step
    pages = max(-(-(extent + odd) // PAGE), 1)
    first = odd + (0 if before else (pages * PAGE - extent - odd) // step * step)
    whole = np.full(pages * PAGE // 2, POISON, np.uint16)
    region: Array = np.ndarray(bits.shape, bits.dtype, whole.data, first, strides)
    region[...] = bits
    at = len(content)
    content += whole.tobytes()
    return {
        "file": path, "at": at, "pages": pages, "first": first, "bytes": pages * PAGE - first,
        "offset": 0, "shape": list(bits.shape), "strides": list(strides), "dtype": name,
    }  # fmt: skip


def _extent(array: Array) -> tuple[int, Sequence[int]]:
    """The bytes from the first element to the last, and the strides; those of a dense array where
    some are negative."""
    if not array.size:
        return 0, np.ascontiguousarray(array).strides
    array = np.ascontiguousarray(array) if min(array.strides, default=0) < 0 else array
    steps = zip(array.shape, array.strides, strict=True)
    return sum((n - 1) * stride for n, stride in steps) + array.itemsize, array.strides


def _write(path: Path, content: bytearray) -> None:
    """New content into the same file, whose mappings stay: it never shrinks."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        if os.fstat(file.fileno()).st_size < len(content):
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, max(len(content), 1))
            else:
                file.truncate(len(content))
        file.write(content)
