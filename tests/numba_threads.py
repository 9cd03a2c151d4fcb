"""Runs by one thread and by all, whose answers must be the same bits."""

from collections.abc import Iterator

import numba


def each_number_of_threads() -> Iterator[int]:
    """1 and all, which Numba has while the loop's body runs."""
    before = numba.get_num_threads()
    try:
        for number in (1, before):
            numba.set_num_threads(number)
            yield number
    finally:
        numba.set_num_threads(before)
