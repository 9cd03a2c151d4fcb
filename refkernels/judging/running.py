"""A kernel's answers to challenges, each from a fresh process.

Inputs are read-only, which some compiled functions do not accept. A kernel that fails on them and
succeeds on writable inputs gets writable ones from then on, as long as it does not change them. A
kernel that dies of a memory fault every time, but not when its arrays lie against the other
protected page, has touched memory outside of its arrays. A kernel that does not answer in a forked
process is run in an interpreter of its own: threads that its file started do not survive a fork.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.cells import Cell, CellCall, CellReply
from refkernels.frameworks.environments import Interpreter
from refkernels.judging.standard import Challenge

_FAULTS = (signal.SIGSEGV, signal.SIGBUS)


class JudgedKernel:
    """A kernel in its cell. `outside`: it has touched memory outside of its arrays; `hung`: the
    reply that did not come in time; `flushes`: as in its replies; `guarded`: whether its arrays lie
    between protected pages of the CPU's memory."""

    def __init__(
        self,
        framework: Framework,
        interpreter: Interpreter,
        device: str,
        seconds: float = 10.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._cell = Cell(framework, interpreter, device, seconds, environment)
        self.guarded = self._cell.forks
        self.compiled = bool((framework.kernel or {}).get("abi"))
        self.outside = False
        self.hung: CellReply | None = None
        self.flushes: str | None = None
        self.answered = 0

    def __enter__(self) -> JudgedKernel:
        return self

    def __exit__(self, *exception: object) -> None:
        self._cell.close()

    def answer(self, challenge: Challenge) -> CellReply:
        """The answer of a fresh process."""
        self.answered += 1
        # strides that are ignored lead beyond the end, not before the beginning
        before = self.answered % 4 == 3 and challenge.family != "strides"
        call = call_of(challenge, self.answered, before=before)
        reply = self._once(call)
        if reply.status in ("error", "killed"):
            reply = self._again(call, reply)
        if reply.status == "timeout" and self._cell.forks:
            self._cell.forks = False
            reply = self._once(call)
        if reply.status == "timeout":
            self.hung = reply
        if reply.flushes is not None:
            self.flushes = reply.flushes
        return reply

    def calls(self, calls: list[CellCall]) -> list[CellReply]:
        """The answers of one process, up to the one that ends it."""
        replies = []
        with self._cell.session() as session:
            for call in calls:
                replies.append(session.call(call))
                if session.over:
                    break
        return replies

    def _once(self, call: CellCall) -> CellReply:
        with self._cell.session() as session:
            return session.call(call)

    def _again(self, call: CellCall, reply: CellReply) -> CellReply:
        """Repeat the call on writable inputs, and with the arrays against the other page."""
        if not self._cell.writable:
            self._cell.writable = True
            other = self._once(call)
            if other.status == "ok":
                self._cell.writable = not other.written
                return other
            self._cell.writable = False
        if reply.signal in _FAULTS:
            other = self._once(replace(call, before=not call.before))
            self.outside |= other.status == "ok" and self._once(call).signal in _FAULTS
        return reply


def call_of(challenge: Challenge, key: int, slot: int = 0, before: bool = False) -> CellCall:
    """The call that asks a challenge."""
    arrays = [
        a for value in challenge.inputs.values() for a in (value if _several(value) else [value])
    ]
    sizes = sorted({array.nbytes for array in arrays if array.size})
    params = dict(challenge.params)
    return CellCall(
        challenge.direction, challenge.inputs, params, slot, before, key, tuple(sizes[-3:])
    )


def _several(value: Any) -> bool:
    return not isinstance(value, np.ndarray)
