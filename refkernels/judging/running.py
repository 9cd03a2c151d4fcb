"""A kernel's answers to challenges, each from a fresh process.

Some compiled functions take no read-only arrays. A kernel that fails on them and succeeds on
writable ones is asked with writable ones from then on, if it leaves them as they are. One that
dies, and lives when its arrays lie against the other page, has touched memory outside of them.
"""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.cells import Call, Cell, Reply
from refkernels.frameworks.environments import Interpreter
from refkernels.judging.standard import Challenge


class Kernel:
    """A kernel in its cell. `outside`: it has touched memory outside of its arrays; `writes`: it
    has changed an input."""

    def __init__(self, framework: Framework, interpreter: Interpreter, device: str) -> None:
        self._cell = Cell(framework, interpreter, device)
        self.compiled = bool((framework.kernel or {}).get("abi"))
        self.outside = self.writes = False
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

    @property
    def guarded(self) -> bool:
        """Whether its arrays lie between pages that nobody may touch: in the CPU's memory."""
        return self._cell.forks

    def answer(self, challenge: Challenge) -> Reply:
        """The answer of a fresh process."""
        self.answered += 1
        call = call_of(challenge, self.answered, before=self.answered % 4 == 3)
        reply = self._once(call)
        if reply.status in ("error", "killed"):
            reply = self._again(call, reply)
        self.writes |= bool(reply.written)
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
        if reply.signal:
            other = self._once(replace(call, before=not call.before))
            self.outside |= other.status == "ok"
        return reply


def call_of(challenge: Challenge, key: int, slot: int = 0, before: bool = False) -> Call:
    """The call that asks a challenge."""
    arrays = [a for one in challenge.inputs.values() for a in (one if _several(one) else [one])]
    sizes = sorted({array.nbytes for array in arrays if array.size})
    params = dict(challenge.params)
    return Call(challenge.direction, challenge.inputs, params, slot, before, key, tuple(sizes[-3:]))


def _several(value: Any) -> bool:
    return not isinstance(value, np.ndarray)
