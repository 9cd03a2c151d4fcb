"""A kernel's answers to challenges, each from a fresh process.

Some compiled functions take no read-only arrays. A kernel that fails on them and succeeds on
writable ones is asked with writable ones from then on, if it leaves them as they are. One that
dies of a memory fault, again and again, and lives when its arrays lie against the other page, has
touched memory outside of them. One that does not answer in a forked process is asked in an
interpreter of its own: threads that its file has started do not survive a fork.
"""

from __future__ import annotations

import signal
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.cells import Call, Cell, Reply
from refkernels.frameworks.environments import Interpreter
from refkernels.judging.standard import Challenge

_FAULTS = (signal.SIGSEGV, signal.SIGBUS)


class Kernel:
    """A kernel in its cell. `outside`: it has touched memory outside of its arrays; `hung`: the
    reply that did not come in time; `guarded`: whether its arrays lie between pages that nobody may
    touch, in the CPU's memory."""

    def __init__(
        self, framework: Framework, interpreter: Interpreter, device: str, seconds: float = 10.0
    ) -> None:
        self._cell = Cell(framework, interpreter, device, seconds)
        self.guarded = self._cell.forks
        self.compiled = bool((framework.kernel or {}).get("abi"))
        self.outside = False
        self.hung: Reply | None = None
        self.answered = 0

    def __enter__(self) -> Kernel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cell.close()

    def answer(self, challenge: Challenge) -> Reply:
        """The answer of a fresh process."""
        self.answered += 1
        call = call_of(challenge, self.answered, before=self.answered % 4 == 3)
        reply = self._once(call)
        if reply.status in ("error", "killed"):
            reply = self._again(call, reply)
        if reply.status == "timeout" and self._cell.forks:
            self._cell.forks = False
            reply = self._once(call)
        if reply.status == "timeout":
            self.hung = reply
        return reply

    def calls(self, calls: list[Call]) -> list[Reply]:
        """The answers of one process, up to the one that ends it."""
        replies = []
        with self._cell.session() as session:
            for call in calls:
                replies.append(session.call(call))
                if session.over:
                    break
        return replies

    def _once(self, call: Call) -> Reply:
        with self._cell.session() as session:
            return session.call(call)

    def _again(self, call: Call, reply: Reply) -> Reply:
        """The same on writable inputs, and on the other side of the pages."""
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


def call_of(challenge: Challenge, key: int, slot: int = 0, before: bool = False) -> Call:
    """The call that asks a challenge."""
    arrays = [a for one in challenge.inputs.values() for a in (one if _several(one) else [one])]
    sizes = sorted({array.nbytes for array in arrays if array.size})
    params = dict(challenge.params)
    return Call(challenge.direction, challenge.inputs, params, slot, before, key, tuple(sizes[-3:]))


def _several(value: Any) -> bool:
    return not isinstance(value, np.ndarray)
