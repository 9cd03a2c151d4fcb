"""Blocks of work on threads."""

import threading
import weakref
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from waiting import HANGS

from refkernels.arithmetic import blocks
from refkernels.arithmetic.blocks import CACHED, HANDED_OVER, TIMED, spread


def test_a_task_may_spread_work_again() -> None:
    """Tasks of tasks, more than there are threads: none waits for a helper that waits for it."""
    blocks: list[tuple[int, int]] = []

    def outer(start: int, stop: int) -> None:
        spread(50, lambda first, last: blocks.append((start, first)), 1)

    for _ in range(20):
        blocks.clear()
        spread(8, outer, 1)
        assert sorted(blocks) == [(i, j) for i in range(8) for j in range(50)]


def test_a_failed_task_is_reported_and_leaves_the_threads_usable() -> None:
    def fail(start: int, stop: int) -> None:
        raise ValueError("no")

    for _ in range(3):
        try:
            spread(8, fail, 1)
        except ValueError:
            continue
        raise AssertionError
    done: list[int] = []
    spread(8, lambda start, stop: done.append(start), 1)
    assert sorted(done) == list(range(8))


def test_a_task_is_forgotten_once_its_blocks_are_done() -> None:
    """Else its arrays stay allocated until a helper wakes, and the next call takes fresh pages."""
    for _ in range(200):
        array = np.zeros(1 << 12)
        spread(array.size, lambda start, stop, array=array: array[start:stop].fill(1.0), 1 << 8)
        alive = weakref.ref(array)
        del array
        assert alive() is None


@pytest.mark.parametrize("size", [CACHED + 1, 3 * CACHED, 3 * CACHED + 7])
@pytest.mark.parametrize("pays", [False, True])
def test_work_is_shared_where_its_first_block_says_that_it_pays(
    size: int, pays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each element once either way."""
    seconds = HANDED_OVER * TIMED / (size - TIMED) * (2.0 if pays else 0.5)
    monkeypatch.setattr(blocks, "time", SimpleNamespace(perf_counter=iter([0.0, seconds]).__next__))
    shared = pays and size > 2 * CACHED and numba.get_num_threads() > 1
    done: list[tuple[int, int]] = []
    threads: set[int] = set()
    several = threading.Event()

    def task(start: int, stop: int) -> None:
        threads.add(threading.get_ident())
        done.append((start, stop))
        if len(threads) > 1:
            several.set()
        elif start and shared:
            several.wait(HANGS)

    spread(size, task, timed=True)
    done.sort()
    assert [start for start, _ in done] == [0, *(stop for _, stop in done[:-1])]
    assert done[0] == (0, TIMED)
    assert done[-1][1] == size
    assert len(threads) > 1 if shared else threads == {threading.get_ident()}
