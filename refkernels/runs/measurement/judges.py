"""Who judges: this process, or several others beside it.

Judging is mostly Python, which runs on one core at a time in a process: where there are more cores,
each judges units of its own, and the threads that ask the frameworks have this process's Python to
themselves. Which process judged makes no difference to a record.
"""

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from typing import Any

from refkernels import registry
from refkernels.arithmetic import waiting
from refkernels.arithmetic.mode import in_default_mode
from refkernels.frameworks.gateway import Reply
from refkernels.op import Case, Direction
from refkernels.runs.measurement.plan import Unit
from refkernels.runs.measurement.seats import Seat
from refkernels.runs.measurement.unit import Record, judged
from refkernels.runs.sweeps.crew import Processes

UNITS_EACH = 100  # for fewer, a judge would take longer to start than it saves
Name = tuple[str, str, str, Direction]


class Judges:
    """So many processes that judge; one is this process. They start at once, beside the frameworks.

    A process that dies, for want of memory say, is no loss: this one judges what is left.
    """

    def __init__(self, number: int) -> None:
        self._abandoned = False
        self._alone = threading.Lock()
        self._asked = 0
        self._crew: Processes | None = None
        if number > 1:
            self._crew = Processes(number)
            self._crew.prepare(_begin)
            self._hands = ThreadPoolExecutor(number + 1)  # one more, so that none waits for a unit

    def __enter__(self) -> "Judges":
        return self

    def __exit__(self, *exception: object) -> None:
        self.abandon()
        if self._crew is not None:
            self._hands.shutdown(cancel_futures=True)

    def abandon(self) -> None:
        """End all judges at once; what they had begun is lost."""
        if self._crew is not None and not self._abandoned:
            self._abandoned = True
            self._hands.shutdown(wait=False, cancel_futures=True)
            self._crew.close(at_once=True)

    def judge(
        self, unit: Unit, seats: Sequence[Seat], replies: Sequence[Future[Reply]]
    ) -> Callable[[], list[Record]]:
        """A `unit.Judge`: the units are judged in the order in which they are given, as soon as
        their replies are there."""
        if self._crew is None or not _has_name(unit):
            return functools.partial(self._here, unit, seats, replies)
        self._asked += 1
        first = self._asked == 1
        return self._hands.submit(self._elsewhere, unit, seats, replies, first).result

    def _here(
        self, unit: Unit, seats: Sequence[Seat], replies: Sequence[Future[Reply]]
    ) -> list[Record]:
        with self._alone:
            return judged(unit, seats, (reply.result() for reply in replies))

    def _elsewhere(
        self, unit: Unit, seats: Sequence[Seat], replies: Sequence[Future[Reply]], first: bool
    ) -> list[Record]:
        assert self._crew is not None
        assert unit.case is not None
        name = (unit.op.name, unit.case.name, unit.dtype, unit.direction)
        there = [reply.result() for reply in replies]
        places = [seat.name_only for seat in seats]
        if not self._abandoned:
            with contextlib.suppress(BrokenExecutor, OSError, EOFError):  # it died, or never began
                return self._crew.executor().submit(_judged, name, places, there, first).result()
        return [] if self._abandoned else self._here(unit, seats, replies)


def _begin() -> None:
    """What a judge needs before its first unit. Numba's own pool sleeps between calls, while
    OpenMP's spins and takes the cores from the frameworks."""
    import numba

    numba.config.THREADING_LAYER = "workqueue"


def _has_name(unit: Unit) -> bool:
    """Whether another process finds the unit by its name: its op and its case are ours."""
    assert unit.case is not None
    known = _cases(unit.op.name) if registry.ops().get(unit.op.name) is unit.op else {}
    same = known.get(unit.case.name)
    return same is not None and _contents(same) == _contents(unit.case)


def _contents(case: Case) -> tuple[Any, ...]:
    """What says that two cases are the same; those of an op are made anew whenever it is asked."""
    build = inspect.unwrap(case.build)
    while isinstance(build, functools.partial):
        build = inspect.unwrap(build.func)
    code = getattr(build, "__code__", build)
    return case.regime, case.parameters, case.seed, case.dtypes, case.directions, code


@functools.cache
def _cases(op: str) -> dict[str, Case]:
    return {case.name: case for case in registry.get(op).cases()}


@in_default_mode
def _judged(
    name: Name, seats: Sequence[Seat], replies: Sequence[Reply], talks: bool
) -> list[dict[str, Any]]:
    """The records of a unit, in a judge's process. `talks`: whether it may say that it waits for
    kernels, which one of them says for all."""
    _begin()
    waiting.watch.silence(not talks)
    op, case, dtype, direction = name
    return judged(Unit(registry.get(op), _cases(op)[case], dtype, direction), seats, replies)
