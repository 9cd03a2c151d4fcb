"""Asks all targets at once, ahead of the judge.

Each target answers in its own thread, in the order of its questions: a slow framework delays no
other, and none waits while the oracle works and answers are judged.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from refkernels.runs.measurement.plan import Unit
from refkernels.runs.measurement.targets import Target

AHEAD = 96  # units asked and not yet judged, of several ops: work for judges beside a slow target
ELEMENTS = 1 << 22  # most elements of their inputs, because their answers wait in memory


class Dispatcher:
    """A thread for each target, which asks it. On exit, questions that a target has not begun to
    answer are dropped."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self.targets = tuple(targets)
        self._threads = [ThreadPoolExecutor(1) for _ in targets]

    def __enter__(self) -> "Dispatcher":
        return self

    def __exit__(self, *_: object) -> None:
        # All threads are stopped first, so that none begins a job while another ends.
        for wait in (False, True):
            for thread in self._threads:
                thread.shutdown(wait, cancel_futures=True)

    def ask(self, function: Callable[..., Any], *arguments: Any) -> list[Future[Any]]:
        """Start function(target, *arguments) for each target, in its thread."""
        pairs = zip(self._threads, self.targets, strict=True)
        return [thread.submit(function, target, *arguments) for thread, target in pairs]


@dataclass(frozen=True)
class AskedUnit:
    """A unit that the targets have been asked. `elements`: the number in its inputs. `records`
    waits for the answers and judges them."""

    unit: Unit
    elements: int
    records: Callable[[], list[dict[str, Any]]]


def in_advance(questions: Iterable[AskedUnit]) -> Iterator[AskedUnit]:
    """The questions in order, each after as many of the following ones as allowed were asked."""
    asked: deque[AskedUnit] = deque()
    for question in questions:
        asked.append(question)
        while len(asked) > AHEAD or sum(waiting.elements for waiting in asked) > ELEMENTS:
            yield asked.popleft()
    yield from asked
