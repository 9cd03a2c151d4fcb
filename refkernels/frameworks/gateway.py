"""A live framework: an interpreter in its own process, and the ops that run there.

    with gateway.Session("torch", settings={"OMP_NUM_THREADS": "1"}) as session:
        reply = session.run("layernorm", "forward", {"x": x}, {"eps": 1e-5})
        if reply.ok:
            y = reply.outputs["y"]

Nothing that the framework does raises an exception here.  A missing framework, a failing import, an
exception, a crash, a hang and running out of memory each give a `Reply` with a status and a reason
of one sentence.  After a crash, a hang, running out of memory or an error that leaves CUDA unusable
the next run starts a new interpreter.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from refkernels.frameworks import catalog, emulation, environments, versions
from refkernels.frameworks.adapters import flags_of
from refkernels.frameworks.catalog import Framework, FrameworkError, Spec
from refkernels.frameworks.process import NoReply, WorkerProcess
from refkernels.frameworks.transport import INLINE_BYTES
from refkernels.records.words import DIRECTIONS, DTYPES
from refkernels.suggestion import did_you_mean
from refkernels.target_names import merged, parse, short

# After these statuses the interpreter has ended or cannot be trusted.
ENDED = ("killed", "timeout", "oom")
START_SECONDS = 180.0
RUN_SECONDS = 300.0


@dataclass(frozen=True)
class Reply:
    """The result of one run: `outputs` by name where `status` is "ok", else a `reason`.

    outputs  NumPy arrays in the framework's output dtype (bfloat16 as `ml_dtypes.bfloat16`)
    seconds  time of the op itself in the framework's process, its device synchronised
    started  False if the framework had not even started, so the op never ran, or if the connection
             to its machine was lost: it is worth asking again
    """

    status: str
    reason: str | None = None
    outputs: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    seconds: float = 0.0
    started: bool = True

    @property
    def ok(self) -> bool:
        return self.status == "ok"


class Session:
    """One framework in one interpreter, started on entering or at the first run.

    spec      a target's name (``torch==2.6.0@OMP_NUM_THREADS=1:cuda:0``), a `catalog.Spec` or a
              `catalog.Framework`
    settings  a lower-case key is a framework flag of some adapter (``float32_matmul_precision``),
              applied after the import if this adapter has it; any other key is an environment
              variable with which the interpreter starts. Settings in the target's name take
              precedence. ``machine`` asks for an emulated one
    timeout   seconds for one run; `start_timeout` seconds for starting and importing; both are
              longer where the machine is emulated
    place     the interpreter to use (see `places`), instead of searching for one

    Attributes after the start: `status` and `reason` ("ok", None unless the start failed), `info`
    (empty unless it succeeded): "framework", "version", "devices" (names), "ops", "environment"
    (for the record), "formulas" ({op: name} of the ops that its adapter composes),
    "instruction_sets" ([[environment variable, value]] that choose one) and
    "capabilities" ({device: {op: {direction: {dtype: None or why not}}}}).

    Threads may share a session: their runs take turns.

    Raises only `UnknownFramework`, for a name that is not a target of the catalog.
    """

    def __init__(
        self,
        spec: str | Spec | Framework,
        settings: Mapping[str, str] | None = None,
        timeout: float = RUN_SECONDS,
        *,
        start_timeout: float = START_SECONDS,
        place: str | None = None,
    ) -> None:
        if isinstance(spec, str):
            self.spec, self.name = catalog.target(spec)
        else:
            self.spec = catalog.get(spec)
            self.name = parse(str(self.spec))
        as_strings = {str(key): str(value) for key, value in (settings or {}).items()}
        self.settings = merged(as_strings, self.name)
        self.timeout = timeout
        self.start_timeout = start_timeout
        self.place = place
        self.status = "ok"
        self.reason: str | None = None
        self.info: dict[str, Any] = {}
        self.starts = 0
        self._slowdown = 1
        self._worker: WorkerProcess | None = None
        self._turn = threading.RLock()

    def __enter__(self) -> Session:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id of a live local interpreter."""
        return self._worker.pid if self._worker else None

    def start(self) -> bool:
        """Start the interpreter unless it is alive; False after a failed start, which is final."""
        with self._turn:
            return self.status == "ok" and (self._worker is not None or self._start())

    def _start(self) -> bool:
        try:
            environment, flags = split_settings(self.spec.framework, self.settings)
            interpreter = self._interpreter()
            self.starts += 1
            self._slowdown = emulation.SLOWDOWN if interpreter.emulator else 1
            self._worker = WorkerProcess(interpreter, environment, self._slowdown)
            reply = self._worker.ask(self._hello(flags), self.start_timeout * self._slowdown)
        except environments.NotInstalled as error:
            return self._failed("not_installed", str(error))
        except FrameworkError as error:
            return self._failed("error", str(error))
        except NoReply as fault:
            return self._failed(fault.status, fault.reason)
        if reply["status"] != "ok":
            return self._failed(reply["status"], reply["reason"])
        if self.status != "ok":  # abandoned meanwhile
            self._end()
            return False
        self.info = self._described(reply, interpreter, flags)
        wrong = self._wrong_version()
        return True if wrong is None else self._failed("not_installed", wrong)

    def _interpreter(self) -> environments.Interpreter:
        if self.place is not None:
            return environments.Interpreter(self.spec, self.place, "named")
        return environments.find(self.spec, self.settings.get(emulation.SETTING, ""))

    @property
    def limit(self) -> float:
        """The seconds that one run may take, once the interpreter has started."""
        return self._seconds(None)

    def _seconds(self, timeout: float | None) -> float:
        return (self.timeout if timeout is None else timeout) * self._slowdown

    def run(
        self,
        op: str,
        direction: str,
        inputs: Mapping[str, npt.NDArray[Any]],
        params: Mapping[str, Any] | None = None,
        device: str | None = None,
        timeout: float | None = None,
        leaves: Collection[str] | None = None,
    ) -> Reply:
        """Run `op` "forward" or, through the framework's autograd, "backward", on `device` (by
        default the target's own, or the CPU).

        Inputs are named as in the op table (for backward with the cotangent); inputs that are None
        are left out.  They are never modified.  Linear's weight is (out, in) everywhere.
        `leaves`: the inputs that backward differentiates, by default all of floating point.
        """
        if direction not in DIRECTIONS:
            return Reply("error", f"direction is {direction!r}: it must be 'forward' or 'backward'")
        message = {
            "do": "run",
            "op": op,
            "direction": direction,
            "params": _plain_params(params or {}),
            "device": device or self.name.device or "cpu",
            "leaves": None if leaves is None else list(leaves),
        }
        arrays = {name: value for name, value in inputs.items() if value is not None}
        return self._asked(lambda worker, limit: worker.run(message, arrays, limit), timeout)

    def load(self, path: str | Path, key: str | None, timeout: float | None = None) -> Reply:
        """The tensors in a file of the framework's own (torch's .pt), by name.

        key   the tensor of that name; "" for the only one; None for all
        The framework's process reads the file, and only tensors: nothing else is unpickled.
        """
        message = {"do": "load", "key": key}
        return self._asked(lambda worker, limit: worker.load(message, Path(path), limit), timeout)

    def sweep(
        self,
        op: str,
        dtype: str,
        first: int,
        count: int,
        device: str | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Run `op` forward on `count` consecutive bit patterns of `dtype` from `first` on.

        The interpreter makes the inputs itself. The one output, named "", is a view of memory that
        the next sweep of this session overwrites: copy it to keep it.
        """
        message: dict[str, Any] = {"do": "sweep", "op": op, "dtype": dtype}
        message["device"] = device or self.name.device or "cpu"
        message.update(first=int(first), count=int(count))
        return self._asked(lambda worker, limit: worker.sweep(message, limit), timeout)

    def _asked(
        self, ask: Callable[[WorkerProcess, float], dict[str, Any]], timeout: float | None
    ) -> Reply:
        with self._turn:
            if not self.start():
                return Reply(self.status, self.reason, started=False)
            assert self._worker is not None
            try:
                reply = ask(self._worker, self._seconds(timeout))
            except TypeError as error:
                return Reply("unsupported", str(error))
            except NoReply as fault:
                reply = {"status": fault.status, "reason": fault.reason, "lost": fault.lost}
            if reply["status"] in ENDED or reply.get("final"):
                self._end()
            if reply["status"] != "ok":
                reason = f"{short(str(self.name))}: {reply['reason']}"
                return Reply(reply["status"], reason, started=not reply.get("lost"))
            return Reply("ok", None, reply["outputs"], float(reply.get("seconds", 0.0)))

    def close(self) -> None:
        """End the interpreter and remove everything it left; a later run starts a new one."""
        with self._turn:
            if self._worker is not None:
                worker, self._worker = self._worker, None
                worker.quit()

    def abandon(self) -> None:
        """End the interpreter at once, even in the middle of a run, and refuse every later run."""
        self.status, self.reason = "error", f"{self.name}: the session was abandoned"
        if (
            worker := self._worker
        ):  # without taking a turn, since its holder may be waiting for the worker
            worker.end()

    def _end(self) -> None:
        if self._worker is not None:
            worker, self._worker = self._worker, None
            worker.kill()

    def _failed(self, status: str, reason: str) -> bool:
        self._end()
        # The sentences of `environments` name the framework already.
        name = short(str(self.name))
        sentence = reason if reason.startswith(str(self.spec)) else f"{name}: {reason}"
        self.status, self.reason, self.info = status, sentence, {}
        return False

    def _hello(self, flags: Mapping[str, str]) -> dict[str, Any]:
        return {
            "do": "hello",
            "source": self.spec.framework.source(),
            "file": str(self.spec.framework.adapter),
            "module": self.spec.framework.module,
            "kernel": (self.spec.framework.kernel or {}).get("file"),
            "flags": dict(flags),
            "dtypes": list(DTYPES),
            "inline_bytes": INLINE_BYTES,
        }

    def _described(
        self, reply: dict[str, Any], interpreter: environments.Interpreter, flags: Mapping[str, str]
    ) -> dict[str, Any]:
        keys_in_use = (*flags, emulation.SETTING)
        applied = {
            key: value
            for key, value in self.settings.items()
            if key in keys_in_use or not is_flag(key)
        }
        environment = {
            "framework": self.spec.name,
            **emulation.described(reply["environment"], interpreter.emulator),
            "interpreter": interpreter.source,
            "settings": applied,
        }
        keys = ("version", "devices", "ops", "formulas", "instruction_sets", "capabilities")
        reported = {key: reply[key] for key in keys}
        return {"framework": self.spec.name, **reported, "environment": environment}

    def _wrong_version(self) -> str | None:
        """Why the version is not the one that the name asks for, which an added interpreter may
        lack; None if it is."""
        version = self.info["version"]
        if versions.fits(version, self.spec.version):
            return None
        return (
            f"the interpreter has version {version}: run `refkernels env create {self.spec}`, "
            f"or name another one with `refkernels env add {self.spec} PYTHON`"
        )


def split_settings(
    framework: Framework, settings: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """(environment variables, flags of this framework); raise `FrameworkError` for an unknown flag
    and for a machine that cannot be emulated.

    A flag of another framework's adapter is left out, so that one list of settings serves all.
    """
    emulation.foreign(settings.get(emulation.SETTING, ""))
    environment = {key: value for key, value in settings.items() if not is_flag(key)}
    own_flags = flags_of(framework.adapter)
    settings = {key: value for key, value in settings.items() if key != emulation.SETTING}
    flags = {key: value for key, value in settings.items() if key in own_flags}
    stray = [key for key in settings if is_flag(key) and key not in flags]
    if stray:
        known_flags = {
            flag
            for any_framework in catalog.frameworks()
            for flag in flags_of(any_framework.adapter)
        }
        unknown = [key for key in stray if key not in known_flags]
        if unknown:
            raise FrameworkError(
                f"no adapter has a flag named {unknown[0]!r}: "
                f"{did_you_mean(unknown[0], sorted(known_flags | own_flags), 'the flags are')}, "
                "and environment variables are in upper case"
            )
    return environment, flags


def is_flag(key: str) -> bool:
    """Whether a setting is a flag of an adapter; an environment variable has upper-case letters."""
    return key == key.lower()


def _plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Params in the few types that can be sent: eps as a float, normalized_shape and axes as None
    or a tuple of int."""
    plain: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, (tuple, list)):
            plain[name] = tuple(int(size) for size in value)
        elif name == "normalized_shape" and value is not None:
            plain[name] = (int(value),)
        elif value is None or isinstance(value, (bool, int, str)):
            plain[name] = value
        else:
            plain[name] = float(value)
    return plain
