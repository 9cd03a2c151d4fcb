"""Pools, Dask and the journal: workers die, chunks are tried again, each result is taken once."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import planted_faults
import pytest
import sweep_helpers as helpers
from sweep_helpers import comparable, in_this_process

from refkernels.frameworks import catalog
from refkernels.runs import sweeps
from refkernels.runs.sweeps import chunk as chunks
from refkernels.runs.sweeps import pool as crews
from refkernels.runs.sweeps.journal import SweepJournal
from refkernels.runs.sweeps.pool import Dask, Job, PoolError, Processes, WorkerPool


def collect(pool: WorkerPool, jobs: list[Job]) -> dict[str, dict]:
    results: dict[str, dict] = {}
    for job, result in pool.results(jobs):
        assert job.key not in results
        results[job.key] = result
    return results


def test_a_worker_that_dies_takes_nothing_with_it(tmp_path: Path) -> None:
    """One chunk kills its worker once, one always: the others and the first have their results."""
    jobs = [Job(str(n), helpers.square, (n,)) for n in range(9)]
    jobs.insert(2, Job("once", helpers.die_once, (str(tmp_path), 5)))
    jobs.insert(5, Job("always", helpers.die, (1,)))
    pool = Processes(2)
    try:
        results = collect(pool, jobs)
    finally:
        pool.close()
    assert len(results) == len(jobs)
    assert {str(n): results[str(n)]["number"] for n in range(9)} == {
        str(n): n * n for n in range(9)
    }
    assert results["once"]["number"] == 25
    assert results["always"]["status"] == "killed"
    assert results["always"]["reason"] == "The worker's process died, twice."


@pytest.mark.parametrize("second", [BrokenExecutor("died"), ConnectionRefusedError()])
def test_an_executor_that_breaks_while_it_starts_a_worker_is_replaced(second: Exception) -> None:
    """Its pipes close under a starting worker (an OSError); the next call says that it broke, or
    that nobody starts workers any more."""

    class Breaking(ThreadPoolExecutor):
        begun = 0

        def submit(self, *job: Any, **options: Any) -> Any:
            self.begun += 1
            if self.begun <= 2:
                raise OSError("handle is closed") if self.begun == 1 else second
            return super().submit(*job, **options)

    pools: list[Executor] = [Breaking(1), ThreadPoolExecutor(1)]

    class Own(WorkerPool):
        def executor(self) -> Executor:
            return pools[0]

        def replace(self) -> None:
            del pools[0]

    results = collect(Own(2), [Job(str(n), helpers.square, (n,)) for n in range(4)])
    assert {key: result["number"] for key, result in results.items()} == {
        str(n): n * n for n in range(4)
    }
    assert len(pools) == 1


@pytest.mark.parametrize(("chunk", "most"), [(1 << 8, 3), (1 << 24, 1)])
def test_no_more_workers_start_than_have_work(chunk: int, most: int, tmp_path: Path) -> None:
    """The patterns of the range are 513: two chunks and a pattern, or one chunk; of two formats."""
    started: list[Any] = []

    class Counting(ThreadPoolExecutor):
        def submit(self, function: Any, *arguments: Any, **options: Any) -> Any:
            started.append(function)
            return super().submit(function, *arguments, **options)

    plan = sweeps.plan(
        ["sqrt"], ["numpy"], ["float16", "float32"], range="0x3c00:0x3e00", chunk=chunk
    )
    with Counting(1) as executor:
        pool = sweeps.ExternalExecutor(executor, 8)
        records = sweeps.sweep(plan, tmp_path / "out", pool=pool)
        executor.submit(chunks.kept.release).result()
    assert [record["status"] for record in records if record["kind"] == "sweep"] == ["ok", "ok"]
    assert pool.width == most
    assert started.count(chunks.describe) == 2 * most


def test_a_killed_framework_is_asked_again_once_and_other_faults_are_not() -> None:
    with helpers.in_this_process() as pool:
        statuses: list[str] = []

        def answer(status: str) -> dict:
            statuses.append(status)
            return helpers.fail(status)

        results = collect(
            pool, [Job(status, answer, (status,)) for status in ("killed", "timeout")]
        )
    assert sorted(statuses) == ["killed", "killed", "timeout"]
    assert results["killed"]["reason"] == "planted"


def test_an_exception_far_away_is_a_status_after_three_tries() -> None:
    with helpers.in_this_process() as pool:
        (result,) = collect(pool, [Job("a", int, ("x",))]).values()
    assert result["status"] == "error"
    assert result["reason"].startswith("The worker failed: ValueError: invalid literal")


def test_workers_end_at_once_when_they_are_let_go(tmp_path: Path) -> None:
    pool = Processes(1)
    jobs = [Job("a", helpers.square, (2,)), Job("b", helpers.sleep, (str(tmp_path / "woke"),))]
    results = pool.results(jobs)
    next(results)
    pool.close(at_once=True)
    assert not (tmp_path / "woke").exists()


def test_a_scheduler_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(crews, "CONNECT_SECONDS", 1.0)
    with pytest.raises(PoolError, match=r"No Dask scheduler answers at 'tcp://127.0.0.1:9'"):
        Dask("tcp://127.0.0.1:9")


@pytest.mark.parametrize("at_once", [False, True])
def test_workers_that_are_let_go_leave_no_semaphore(at_once: bool) -> None:
    """Numba makes one with its threads, and Python would tell the user that it was leaked."""
    work = (
        "import numba\n"
        "from refkernels.runs.sweeps.pool import Processes\n"
        "pool = Processes(1)\n"
        "assert pool.executor().submit(numba.get_num_threads).result() > 0\n"
        f"pool.close(at_once={at_once})\n"
    )
    ended = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_worker_lost_in_the_middle_changes_no_count(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")  # here: it takes a second in each process
    fake = planted_faults.framework("one_ulp_off", tmp_path)
    catalog.register(fake, replace_existing=True)
    try:
        plan = sweeps.plan(["cos"], [fake.name], range="0x3f000000:0x3f03ffff", chunk=1 << 13)
        with in_this_process() as pool:
            alone = comparable(sweeps.sweep(plan, tmp_path / "alone", pool=pool))
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            pids = [worker.pid for worker in cluster.workers.values()]
            done: list[int] = []

            def watch(now: sweeps.Progress) -> None:
                done.append(now.done)
                if now.done >= 10 << 13 and pids:
                    os.kill(pids.pop(), signal.SIGKILL)
                    pids.clear()

            pool = sweeps.Dask(cluster.scheduler_address)
            records = sweeps.sweep(plan, tmp_path / "dask", pool=pool, progress=watch)
        assert not pids, "no worker was killed"
        assert done == sorted(done)
        assert comparable(records) == alone
        assert alone[0]["counts"]["inputs"] == 1 << 18
    finally:
        catalog.unregister(fake.name)


QUESTION = {"ops": ["sin"], "chunk": 16}
A = "sin a environment"
TOLD = {"status": "ok", "version": "1", "environment": {}}


def test_what_was_added_is_there_again(tmp_path: Path) -> None:
    SweepJournal(tmp_path, QUESTION, False).add(A, TOLD)
    assert SweepJournal(tmp_path, QUESTION, True).done == {A: TOLD}


def test_at_the_end_records_stand_and_the_journal_goes(tmp_path: Path) -> None:
    journal = SweepJournal(tmp_path, QUESTION, False)
    journal.add(A, TOLD)
    path = journal.finish([{"kind": "sweep"}])
    assert json.loads(path.read_text()) == {"kind": "sweep"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sweep.json", "sweeps.jsonl"]
    assert SweepJournal(tmp_path, QUESTION, True).records() == [{"kind": "sweep"}]
