"""How far tests search: a run draws a few examples of each kind, and `make hunt` many more. Where
a claim is made of many alike, a run tries some of each kind (`one_in`, and the rows of the tests in
tests/sampled.txt), and says at its end how many it left out; `make all-tests` asks all, and so does
a hunt. A test of that table that is asked for by its name (file::test) is asked in full.

REFKERNELS_HUNT=10 multiplies the examples by 10, and REFKERNELS_HUNT=1 is `make all-tests`.
REFKERNELS_FUZZ_SEED=new draws others; a failure names the seed that draws the same again.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")

LEFT = {"rows": 0}  # out of this run
HUNT, ALL = int(os.environ.get("REFKERNELS_HUNT", "1")), "REFKERNELS_HUNT" in os.environ
EXAMPLES = 30 * HUNT  # Hypothesis's, where a test does not say how many


def shares() -> dict[str, int]:
    """Of how many rows of a test in tests/sampled.txt a run asks one; 0 where it asks none."""
    lines = (Path(__file__).parent / "sampled.txt").read_text("utf-8").splitlines()
    words = (line.split() for line in lines if line and line[0] != "#")
    return {name: int(share) for name, share in words}


def left_out(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The rows that a run leaves out: which, depends on the name of the test."""
    asked, rows, left = shares(), Counter[str](), list[pytest.Item]()
    for item in items:
        name = item.nodeid.partition("[")[0]
        if (share := asked.get(name)) is not None:
            turn = rows[name] + crc32(name.encode())
            left += [item] if share == 0 or turn % share else []
            rows[name] += 1
    return left


def one_in(
    count: int, examples: Iterable[T], kind: Callable[[T], Hashable] = lambda example: None
) -> list[T]:
    """Of each kind of examples, the first of every so many; where all rows are asked, all."""
    chosen, seen = [], Counter[Hashable]()
    for example in examples:
        if ALL or seen[kind(example)] % count == 0:
            chosen.append(example)
        seen[kind(example)] += 1
    LEFT["rows"] += seen.total() - len(chosen)
    return chosen


def one_way(passes: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of each op's passes, forward of one op and backward of the next; or all (`one_in`)."""
    by_op: dict[str, list[tuple[str, str]]] = {}
    for op, direction in passes:
        by_op.setdefault(op, []).append((op, direction))
    turned = [ways[::-1] if k % 2 else ways for k, ways in enumerate(by_op.values())]
    return [way for ways in turned for way in one_in(len(ways), ways)]


def seed_of(default: int) -> int:
    """The seed that the environment asks for, or the default."""
    chosen = os.environ.get("REFKERNELS_FUZZ_SEED")
    return time.time_ns() % 2**32 if chosen == "new" else int(chosen or default)
