"""Blocks of work on threads."""

import weakref

import numpy as np

from refkernels.arithmetic.blocks import spread


def test_a_task_may_spread_work_again() -> None:
    """Tasks of tasks, more than there are threads: none waits for a helper that waits for it."""
    seen: list[tuple[int, int]] = []

    def outer(start: int, stop: int) -> None:
        spread(50, lambda first, last: seen.append((start, first)), 1)

    for _ in range(20):
        seen.clear()
        spread(8, outer, 1)
        assert sorted(seen) == [(i, j) for i in range(8) for j in range(50)]


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
