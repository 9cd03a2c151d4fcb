"""A real Dask cluster of two workers, one of them killed in the middle."""

import os
import signal
from pathlib import Path

import planted_faults
import pytest
from sweep_helpers import comparable, in_this_process

from refkernels.frameworks import catalog
from refkernels.runs import sweeps


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
