"""How far tests search: a run draws a few examples of each kind, and `make hunt` many more. Where
a claim is made of many alike, a run tries some of each kind, and `make hunt` all (`one_in`).

REFKERNELS_HUNT=10 multiplies their number by 10. REFKERNELS_FUZZ_SEED=new draws others than before;
a failure names the seed that draws the same again.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")

HUNT = int(os.environ.get("REFKERNELS_HUNT", "1"))
EXAMPLES = 30 * HUNT  # Hypothesis's, where a test does not say how many


def one_in(
    count: int, examples: Iterable[T], kind: Callable[[T], Hashable] = lambda example: None
) -> list[T]:
    """Of each kind of examples, the first of every so many; in a hunt, all of them."""
    chosen, seen = [], Counter[Hashable]()
    for example in examples:
        if HUNT > 1 or seen[kind(example)] % count == 0:
            chosen.append(example)
        seen[kind(example)] += 1
    return chosen


def covering(examples: Iterable[T], kinds: Callable[[T], Collection[Hashable]]) -> list[T]:
    """The first examples that show each kind of theirs; in a hunt, all of them."""
    chosen, seen = [], set[Hashable]()
    for example in examples:
        if HUNT > 1 or not seen.issuperset(kinds(example)):
            chosen.append(example)
        seen.update(kinds(example))
    return chosen


def one_way(passes: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of each op's passes, forward of one op and backward of the next; in a hunt, all of them."""
    by_op: dict[str, list[tuple[str, str]]] = {}
    for op, direction in passes:
        by_op.setdefault(op, []).append((op, direction))
    turned = [ways[::-1] if k % 2 else ways for k, ways in enumerate(by_op.values())]
    return [way for ways in turned for way in one_in(len(ways), ways)]


def seed_of(default: int) -> int:
    """The seed that the environment asks for, or the default."""
    chosen = os.environ.get("REFKERNELS_FUZZ_SEED")
    return time.time_ns() % 2**32 if chosen == "new" else int(chosen or default)
