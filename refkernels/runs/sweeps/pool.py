"""The workers of a sweep: any `concurrent.futures.Executor`, by default processes started here.

A worker may die at any moment. Its chunk is then tried again alone, which separates a chunk that
kills its worker from innocent chunks that ran beside it. A chunk that kills its worker twice gets a
status, and the others continue. Each chunk's result is taken once.
"""

import contextlib
import multiprocessing
import multiprocessing.util
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
RETRIED = ("killed", "oom")  # statuses after which another try may succeed
TRIES = 3
_LONGEST_FINALIZER = 10.0  # seconds
_PAUSE = 0.01
CONNECT_SECONDS = 10.0  # that a Dask scheduler has to answer


class PoolError(Exception):
    """No worker is available; the message is one sentence with a suggested fix."""


@dataclass(frozen=True)
class Job:
    """One call, `function(*arguments)`, and the key that names it."""

    key: str
    function: Callable[..., Json]
    arguments: tuple[Any, ...]


class WorkerPool:
    """Workers behind an executor. `width`: how many of them work at the same time."""

    def __init__(self, width: int) -> None:
        self.width = width

    def executor(self) -> Executor:
        """The executor, created on first use."""
        raise NotImplementedError

    def replace(self) -> None:
        """Replaces an executor that has broken."""
        raise NotImplementedError

    def close(self, at_once: bool = False) -> None:
        """Release the workers; with `at_once`, even in the middle of a chunk."""

    def limit(self, most: int) -> None:
        """Lowers `width` to `most`, the most workers that will ever have work at the same time.
        Called before the workers start."""
        self.width = min(self.width, most)

    def results(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Json]]:
        """Every job with its result, in the order of completion; each once."""
        waiting, suspects = deque(jobs), deque[Job]()
        tries: Counter[str] = Counter()
        running: dict[Future[Json], Job] = {}
        while waiting or suspects or running:
            lost = self._fill(waiting, suspects, running)
            alone = len(running) == 1
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                try:
                    result = future.result()
                except BrokenExecutor:
                    lost.append(job)
                    continue
                except BaseException as error:  # a remote worker was lost, or the job cancelled
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    result = failed("error", f"The worker failed: {one_line(error)}.")
                    result["lost"] = True
                tries[job.key] += 1
                again = result.pop("lost", False) or result["status"] in RETRIED
                if again and tries[job.key] < (TRIES if result["status"] == "error" else 2):
                    waiting.append(job)
                else:
                    yield job, result
            if lost:
                lost += running.values()
                running.clear()
                self.replace()
                for job in lost:
                    tries[job.key] += 1
                    if alone and tries[job.key] > 1:
                        yield job, failed("killed", "The worker's process died, twice.")
                    else:
                        suspects.append(job)

    def _fill(
        self, waiting: deque[Job], suspects: deque[Job], running: dict[Future[Json], Job]
    ) -> list[Job]:
        """Submit jobs, suspects one at a time; returns the jobs that a broken executor refused."""
        while waiting or suspects:
            if len(running) >= (1 if suspects else 2 * self.width):
                break
            job = suspects.popleft() if suspects else waiting.popleft()
            try:
                running[self._submit(job)] = job
            except BrokenExecutor:
                return [job]
            if suspects:
                break
        return []

    def _submit(self, job: Job) -> Future[Json]:
        executor = self.executor()
        for _ in range(2):  # one that broke while it started a worker says so at the next call
            with contextlib.suppress(OSError):
                return executor.submit(job.function, *job.arguments)
        raise BrokenExecutor("It starts no worker.")


class Processes(WorkerPool):
    """Processes of this machine, each with one session of the framework; by default one per core.

    They end with the process that made them, however it ends, because each holds one end of a pipe.
    If the system allows it, they are forked from a process that has no threads yet and has imported
    what they need (`template`).
    """

    def __init__(self, width: int | None = None) -> None:
        super().__init__(usable_cores() if width is None else width)
        self._executor: Any = None
        self._starting: threading.Thread | None = None
        self._closed = False
        if "forkserver" in multiprocessing.get_all_start_methods():
            from multiprocessing import forkserver, resource_tracker

            resource_tracker.ensure_running()  # first, because it unblocks interrupts again
            forkserver.set_forkserver_preload(["refkernels.runs.sweeps.template"])
            with _no_interrupt():
                forkserver.ensure_running()
            self._context: Any = multiprocessing.get_context("forkserver")
        else:
            self._context = multiprocessing.get_context("spawn")
        self._lifeline, self._end = self._context.Pipe(duplex=False)

    def prepare(self, function: Callable[..., None], *arguments: Any) -> None:
        """Start the workers, each with this call, whose result is ignored. Returns immediately; the
        workers start when the process from which they are forked is ready."""
        executor = self.executor()

        def start() -> None:
            with contextlib.suppress(Exception):  # the first job meets and reports it
                for _ in range(self.width):
                    executor.submit(function, *arguments)

        self._starting = threading.Thread(target=start, daemon=True)
        self._starting.start()

    def executor(self) -> Executor:
        from concurrent.futures import ProcessPoolExecutor

        self._settle()
        if self._closed:
            raise BrokenExecutor("The workers were released.")
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                self.width, self._context, initializer=_begin, initargs=(self._lifeline,)
            )
        executor: Executor = self._executor
        return executor

    def replace(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = None

    def close(self, at_once: bool = False) -> None:
        self._settle()
        self._closed = True
        if at_once:
            self._end.close()
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None
        self._end.close()
        self._lifeline.close()

    def _settle(self) -> None:
        starting = self._starting  # several threads may wait for it
        if starting is not None:
            starting.join()
            self._starting = None


class ExternalExecutor(WorkerPool):
    """An executor that belongs to the caller."""

    def __init__(self, executor: Executor, width: int) -> None:
        super().__init__(width)
        self._executor = executor

    def executor(self) -> Executor:
        return self._executor

    def replace(self) -> None:
        raise PoolError("The executor has broken: give a new one, and add --resume to continue.")


class Dask(ExternalExecutor):
    """The workers of a Dask cluster. Raises PoolError if it or `distributed` is missing."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise PoolError(
                "--scheduler needs Dask's `distributed`: run `pip install 'refkernels[dask]'`."
            ) from None
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise PoolError(
                f"No Dask scheduler answers at {address!r} ({one_line(error)}): start one with "
                "`dask scheduler`."
            ) from None
        threads = sum(self._client.nthreads().values())
        if not threads:
            self._client.close()
            raise PoolError(f"The scheduler at {address} has no workers: start `dask worker`.")
        super().__init__(self._client.get_executor(), threads)

    def close(self, at_once: bool = False) -> None:
        self._client.close()


def failed(status: str, reason: str) -> Json:
    """The result of a chunk that no worker could finish."""
    return {"status": status, "reason": reason, "version": None, "tally": None}


def one_line(error: BaseException) -> str:
    """Type and first line of an exception."""
    text = " ".join(str(error).split())[:200].rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def usable_cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Processes started here ignore Ctrl-C: their parent handles it and they wait for the parent.
    A system without signal masks (Windows) does not fork either, and `_begin` ignores Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _finalizing() -> bool:
    """Whether another thread runs one of multiprocessing's finalizers."""
    finalizer = multiprocessing.util.Finalize.__call__.__code__
    stacks = (f for n, f in sys._current_frames().items() if n != threading.get_ident())
    return any(
        frame.f_code is finalizer for stack in stacks for frame, _ in traceback.walk_stack(stack)
    )


def _begin(lifeline: Any) -> None:
    """Begin a worker: it leaves Ctrl-C to its parent, and ends when its parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ending = threading.Lock()

    def watch() -> None:
        try:
            lifeline.poll(None)
            # Numba's lock is a named semaphore, of whose loss Python's tracker would warn. The main
            # thread may be ending too: neither may end in the middle of the other's unlinking it.
            with ending:
                multiprocessing.util._run_finalizers(0)  # type: ignore[attr-defined]
            end = time.monotonic() + _LONGEST_FINALIZER
            while _finalizing() and time.monotonic() < end:
                time.sleep(_PAUSE)
        finally:
            os._exit(1)

    multiprocessing.util.Finalize(None, ending.acquire, exitpriority=-1)
    threading.Thread(target=watch, daemon=True).start()
