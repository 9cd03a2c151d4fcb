"""Targets are asked ahead of the judge, each in its own order, and none waits for another."""

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
from waiting import HANGS

from refkernels.runs.measurement import dispatcher
from refkernels.runs.measurement.dispatcher import AskedUnit, Dispatcher, in_advance
from refkernels.runs.measurement.plan import Unit
from refkernels.runs.measurement.targets import Target

SLOW, FAST = (cast(Target, name) for name in ("slow", "fast"))


def test_a_slow_target_keeps_no_other_waiting_and_each_keeps_its_order() -> None:
    answered: dict[Any, list[int]] = {SLOW: [], FAST: []}
    done = threading.Event()

    def answer(target: Target, number: int) -> bool:
        in_time = done.wait(HANGS) if target is SLOW else True
        answered[target].append(number)
        if answered[FAST] == [0, 1, 2]:
            done.set()
        return in_time

    with Dispatcher([SLOW, FAST]) as running:
        futures = [future for number in range(3) for future in running.ask(answer, number)]
        assert all(future.result() for future in futures)
    assert answered == {SLOW: [0, 1, 2], FAST: [0, 1, 2]}


def test_questions_that_no_target_has_begun_are_dropped_on_leaving() -> None:
    begun, go_on = threading.Event(), threading.Event()
    answered: list[int] = []

    def answer(target: Target, number: int) -> None:
        begun.set()
        go_on.wait()
        answered.append(number)

    with Dispatcher([SLOW]) as running:
        futures = [running.ask(answer, number)[0] for number in range(5)]
        assert begun.wait(HANGS)
        futures[-1].add_done_callback(lambda _: go_on.set())
    assert answered == [0]
    assert [future.cancelled() for future in futures] == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("elements", "ahead"),
    [(1, dispatcher.AHEAD), (dispatcher.ELEMENTS // 4, 4), (2 * dispatcher.ELEMENTS, 0)],
)
def test_the_targets_are_asked_ahead_as_far_as_memory_allows(elements: int, ahead: int) -> None:
    drawn: list[int] = []

    def questions() -> Iterator[AskedUnit]:
        for number in range(100):
            drawn.append(number)
            yield AskedUnit(cast(Unit, number), elements, list)

    order, furthest = [], 0
    for question in in_advance(questions()):
        order.append(cast(int, question.unit))
        furthest = max(furthest, len(drawn) - len(order))
    assert order == list(range(100))
    assert furthest == ahead
