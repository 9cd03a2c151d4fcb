"""A kernel's answers to challenges, each from a fresh process. Where a process must first compile
the kernel, or load a library, the first one that has done so is kept, and the others are forks of
it; where it cannot be forked, or its forks start as slowly, one answers several.

Inputs are read-only, which some compiled functions do not accept. A kernel that fails on them and
succeeds on writable inputs gets writable ones from then on, as long as it does not change them. A
kernel that dies of a memory fault every time, but not when its arrays lie against the other
protected page, has touched memory outside of its arrays. A kernel that does not answer in a forked
process is run in an interpreter of its own: threads that its file started do not survive a fork.
"""

from __future__ import annotations

import contextlib
import math
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.cells import Cell, CellCall, CellReply, CellSession
from refkernels.judging.standard import Challenge

STARTING = 0.2  # seconds, of a process that is shared: its kernel is compiled, or a library loaded
SHARED = 256  # challenges, asked in one process
_FAULTS = (signal.SIGSEGV, signal.SIGBUS)
_KNOWN = """
import pkgutil, sys
find = pkgutil.resolve_name
for name in sys.argv[1:]:
    try:
        find(name)
        print(name)
    except (ImportError, AttributeError):
        pass
"""


class JudgedKernel(Cell):
    """A kernel's cell, and how it is asked. `outside`: it has touched memory outside of its arrays;
    `hung`: the reply that did not come in time; `flushes`: as in its replies; `replaced`: the
    functions of other modules that it replaces; `guarded`: whether its arrays lie between protected
    pages of the CPU's memory."""

    outside = False
    hung: CellReply | None = None
    flushes: str | None = None
    replaced: tuple[str, ...] = ()
    answered = 0
    _shared: bool | None = None
    _keeps = True
    _left = 0
    _session: CellSession | None = None

    def __init__(self, framework: Framework, *arguments: Any, **options: Any) -> None:
        self._stack = contextlib.ExitStack()
        super().__init__(framework, *arguments, **options)
        self.guarded, self.compiled = self.forks, bool((framework.kernel or {}).get("abi"))

    def close(self) -> None:
        self._end()
        super().close()

    def answer(self, challenge: Challenge) -> CellReply:
        """The answer of a fresh process, or of one that has answered a few other challenges."""
        self.answered += 1
        # strides that are ignored lead beyond the end, not before the beginning
        before = self.answered % 4 == 3 and challenge.family != "strides"
        call = call_of(challenge, self.answered, before=before)
        reply = self._once(call)
        if reply.status in ("error", "killed"):
            reply = self._again(call, reply)
        if reply.status == "timeout" and self.forks:
            self.forks = False
            reply = self._once(call)
        if reply.status == "timeout":
            self.hung = reply
        if reply.flushes is not None:
            self.flushes = reply.flushes
        return reply

    def calls(
        self, calls: Sequence[CellCall], fewest: int = 0, seconds: float = math.inf
    ) -> list[CellReply]:
        """The answers of one process, up to the one that ends it; after the fewest, up to these
        seconds. Then it says what it has replaced. A shared one is asked on, unless it is kept:
        another would compile again."""

        def answered() -> list[CellReply]:
            replies, begin = list[CellReply](), math.inf
            session = self._session or self._stack.enter_context(self.session())
            for call in calls:
                begin = time.monotonic() if len(replies) == fewest else begin
                if session.over or time.monotonic() - begin > seconds:
                    break
                replies.append(session.call(call))
            if not (session.over or self.replaced) and (names := session.replaced()):
                self.replaced = self._known(names)
            self._end()
            return replies

        if self._may_be_kept:
            self._end()
        return self._surviving(answered)

    def _known(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names that a bare interpreter knows: what it lacks, a kernel has added to a library.
        All where it cannot say."""
        command = [self._python, "-c", _KNOWN, *names]
        bare = subprocess.run(command, env=self._environment, capture_output=True, text=True)
        return tuple(names if bare.returncode else bare.stdout.splitlines())

    def _once(self, call: CellCall) -> CellReply:
        return self._surviving(lambda: [self._asked(call)])[-1]

    def _surviving(self, ask: Callable[[], list[CellReply]]) -> list[CellReply]:
        """What a process answers. A fork of a kept one that dies may lack what its library had:
        another that is no such fork is asked, and none is kept from then on."""
        kept, replies = self.warm, ask()
        if kept and replies and replies[-1].status in ("killed", "timeout"):
            self._keeps, self._shared = False, None
            self.restart()
            replies = ask()
        return replies

    def _asked(self, call: CellCall) -> CellReply:
        """The answer of the process that is shared, or of a fresh one: after the first of those it
        is found out whether a process costs much more than a second answer, and is shared."""
        if self._session is not None and self._left:
            self._left -= 1
            reply = self._session.call(call)
            if not self._session.over:  # what ended it is asked alone
                return reply
        self._end()
        begin = time.monotonic()
        session = self._stack.enter_context(self.session())
        reply = session.call(call)
        if self._shared is None and reply.status == "ok":
            first, begin = time.monotonic() - begin, time.monotonic()
            session.call(call)
            self._shared = first - (time.monotonic() - begin) > STARTING
        if self._shared and not session.over:
            self._session, self._left = session, SHARED
        else:
            self._end()
        return reply

    @property
    def _may_be_kept(self) -> bool:
        """Whether later processes may be forks of the one that is shared."""
        session = self._session
        alone = session is not None and session.one_thread and not session.over
        return alone and self._keeps and self.forks and not self.warm

    def _end(self) -> None:
        """End the process that is shared. The first one is kept, for forks of it."""
        if self._session and self._may_be_kept:
            self._session.keep()
            self._shared = None
        self._stack.close()
        self._session = None

    def _again(self, call: CellCall, reply: CellReply) -> CellReply:
        """Repeat the call on writable inputs, and with the arrays against the other page."""
        if not self.writable:
            self.writable = True
            other = self._once(call)
            if other.status == "ok":
                self.writable = not other.written
                return other
            self.writable = False
        if reply.signal in _FAULTS:
            other = self._once(replace(call, before=not call.before))
            self.outside |= other.status == "ok" and self._once(call).signal in _FAULTS
        return reply


def call_of(challenge: Challenge, key: int, slot: int = 0, before: bool = False) -> CellCall:
    """The call that asks a challenge."""
    values = challenge.inputs.values()
    arrays = [a for v in values for a in (v if isinstance(v, list | tuple) else [v])]
    sizes = sorted({array.nbytes for array in arrays if array.size})
    given = challenge.direction, challenge.inputs, dict(challenge.params)
    return CellCall(*given, slot, before, key, tuple(sizes[-3:]))
