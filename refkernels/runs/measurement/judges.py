"""Judges units in this process, or in several others beside it.

Judging is mostly Python, of which a process runs one thread at a time. On several cores other
processes judge, each its own units, and this process's interpreter is free for the threads that ask
the frameworks. At the end of a run the same processes explain. Records do not depend on the process
that judged or explained.
"""

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from refkernels import registry
from refkernels.arithmetic import waiting
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.frameworks.gateway import Reply
from refkernels.op import Case, Direction
from refkernels.runs.measurement.plan import Unit
from refkernels.runs.measurement.targets import Target
from refkernels.runs.measurement.unit import Record, judged
from refkernels.runs.sweeps.pool import Processes

UNITS_EACH = 100  # with fewer, a judge takes longer to start than it saves
Name = tuple[str, str, str, Direction]
T = TypeVar("T")


class Judges:
    """`number` processes that judge; with 1, this process judges. They start immediately, while the
    frameworks start.

    If one dies, for example for lack of memory, this process does the remaining work.
    """

    def __init__(self, number: int) -> None:
        self._abandoned = False
        self._alone = threading.Lock()
        self._speaker = threading.Lock()  # held by the first call, which may print that it waits
        self._pool: Processes | None = None
        if number > 1:
            self._pool = Processes(number)
            self._pool.prepare(_begin)
            self._threads = ThreadPoolExecutor(number + 1)  # one more, so that no judge is idle

    def __enter__(self) -> "Judges":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if self._pool is None:
            return
        if error is None and not self._abandoned:
            self._abandoned = True
            self._threads.shutdown()
            self._pool.close()  # a judge that ends normally leaks no semaphore
        self.abandon()
        self._threads.shutdown(cancel_futures=True)

    def abandon(self) -> None:
        """End all judges immediately; work in progress is lost."""
        if self._pool is not None and not self._abandoned:
            self._abandoned = True
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._pool.close(at_once=True)

    def judge(
        self, unit: Unit, targets: Sequence[Target], replies: Sequence[Future[Reply]]
    ) -> Callable[[], list[Record]]:
        """A `unit.Judge`: units are judged in the order of the calls, each as soon as its replies
        have come."""
        if self._pool is None or not _has_name(unit):
            return functools.partial(self._here, unit, targets, replies)
        return self._threads.submit(self._elsewhere, unit, targets, replies).result

    def call(self, function: Callable[..., T], *arguments: Any) -> Callable[[], T]:
        """Start function(*arguments) in a judge's process; return a function that waits for its
        result. Without judges, that function does the work, in this process. `function` is defined
        at the top level of a module and has no side effects."""
        if self._pool is None:
            return functools.partial(function, *arguments)
        return self._threads.submit(self._called, function, *arguments).result

    def _here(
        self, unit: Unit, targets: Sequence[Target], replies: Sequence[Future[Reply]]
    ) -> list[Record]:
        with self._alone:
            return judged(unit, targets, (reply.result() for reply in replies))

    def _elsewhere(
        self, unit: Unit, targets: Sequence[Target], replies: Sequence[Future[Reply]]
    ) -> list[Record]:
        assert unit.case is not None
        name = (unit.op.name, unit.case.name, unit.dtype, unit.direction)
        answers = [reply.result() for reply in replies]
        names = [target.name_only for target in targets]
        with contextlib.suppress(BrokenExecutor, OSError, EOFError):  # it died or never started
            return self._sent(_judged, name, names, answers)
        return [] if self._abandoned else self._here(unit, targets, replies)

    def _called(self, function: Callable[..., T], *arguments: Any) -> T:
        try:
            return self._sent(function, *arguments)
        except (BrokenExecutor, OSError, EOFError):
            if self._abandoned:
                raise
        with self._alone:
            return function(*arguments)

    def _sent(self, function: Callable[..., T], *arguments: Any) -> T:
        """The result from another process. Raises BrokenExecutor, OSError or EOFError if there is
        none."""
        assert self._pool is not None
        if self._abandoned:
            raise BrokenExecutor("The judges were abandoned.")
        speaks = self._speaker.acquire(blocking=False)
        result: T = self._pool.executor().submit(_in_judge, speaks, function, *arguments).result()
        return result


def _begin() -> None:
    """Prepare a judge's process. Between calls, Numba's own pool sleeps; OpenMP's would spin and
    take the cores from the frameworks."""
    import numba

    numba.config.THREADING_LAYER = "workqueue"


def _has_name(unit: Unit) -> bool:
    """Whether another process can find the unit by its name: the registry has its op and case."""
    assert unit.case is not None
    registered = _cases(unit.op.name) if registry.ops().get(unit.op.name) is unit.op else {}
    namesake = registered.get(unit.case.name)
    return namesake is not None and _contents(namesake) == _contents(unit.case)


def _contents(case: Case) -> tuple[Any, ...]:
    """What equal cases have in common: an op makes new cases at every call, each with a new
    `build`."""
    build = inspect.unwrap(case.build)
    while isinstance(build, functools.partial):
        build = inspect.unwrap(build.func)
    code = getattr(build, "__code__", build)
    return case.regime, case.parameters, case.seed, case.dtypes, case.directions, code


@functools.cache
def _cases(op: str) -> dict[str, Case]:
    return {case.name: case for case in registry.get(op).cases()}


@with_default_fenv
def _in_judge(speaks: bool, function: Callable[..., T], *arguments: Any) -> T:
    """function(*arguments), in a judge's process. `speaks`: whether it may print that it waits for
    kernels, as one call does for all."""
    _begin()
    waiting.watch.silence(not speaks)
    return function(*arguments)


def _judged(name: Name, targets: Sequence[Target], replies: Sequence[Reply]) -> list[Record]:
    """The records of a unit, in a judge's process."""
    op, case, dtype, direction = name
    return judged(Unit(registry.get(op), _cases(op)[case], dtype, direction), targets, replies)
