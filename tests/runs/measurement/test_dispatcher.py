"""Targets are asked ahead of the judge, each in its own order; one that did not answer in time is
not asked the same with more, and the record says so."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import planted_faults
import pytest
from waiting import HANGS

from refkernels.frameworks.gateway import Reply, Session
from refkernels.runs import measurement
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


LIMIT = 1000  # elements: `Slow` does not answer more


class Slow:
    """A session that runs out of time on large inputs, and lists what it was asked. It says that
    it takes `seconds` for each element."""

    limit = 120.0

    def __init__(self, status: str = "timeout", started: bool = True, seconds: float = 0.0) -> None:
        self.asked: list[tuple[str, str, int, str]] = []
        self.status, self.started, self.seconds = status, started, seconds

    def run(self, op: str, direction: str, inputs: Any, *_: Any, **__: Any) -> Reply:
        x = inputs["x"]
        self.asked.append((op, direction, x.size, x.dtype.name))
        if x.size > LIMIT:
            return Reply(self.status, "slow: no answer within 120 s", started=self.started)
        return Reply("ok", seconds=self.seconds * x.size)


def target_of(session: Slow) -> Target:
    return Target(cast(Session, session), "slow", "1", "cpu", {}, "slow-1")


def ask(
    target: Target, n: int, dtype: str = "float32", axis: int | None = None, op: str = "max",
    direction: str = "backward",
) -> Reply:  # fmt: skip
    return target.run(op, direction, {"x": np.ones((1, n), dtype)}, {"axis": axis})


def test_a_larger_question_is_not_asked_and_its_record_names_the_smaller() -> None:
    session = Slow()
    target = target_of(session)
    assert ask(target, 2000).status == "timeout"
    for n, dtype in ((2000, "float32"), (5000, "float32"), (2000, "float64")):
        reply = ask(target, n, dtype)
        assert reply.status == "timeout"
        assert reply.reason == (
            "slow: no answer within 120 s, with x [1, 2000] float32; not asked with more"
        )
    assert session.asked == [("max", "backward", 2000, "float32")]


def test_a_question_that_would_exceed_the_limit_is_not_asked() -> None:
    """By the time that each element took in a smaller one, if that was slow."""
    session = Slow(seconds=0.05)
    target = target_of(session)
    assert ask(target, 100).status == "ok"  # 5 s: not slow
    assert ask(target, 400).status == "ok"  # 20 s: slow, so that 2,400 elements take 120 s
    asked = len(session.asked)
    reply = ask(target, 2500)
    assert (reply.status, len(session.asked)) == ("timeout", asked)
    assert reply.reason == (
        "125 s or more are expected, and the limit is 120 s: "
        "20 s with x [1, 400] float32; not asked with more"
    )
    assert ask(target, 900).status == "ok"
    ask(target, 2500, axis=-1)
    assert len(session.asked) == asked + 2


@pytest.mark.parametrize(
    ("failed", "other"),
    [
        (("timeout", True), {"n": 1999}),
        (("timeout", True), {"n": 5000, "dtype": "float16"}),
        (("timeout", True), {"n": 5000, "axis": -1}),
        (("timeout", True), {"n": 5000, "op": "sum"}),
        (("timeout", True), {"n": 5000, "direction": "forward"}),
        (("timeout", False), {"n": 2000}),
        (("killed", True), {"n": 2000}),
    ],
    ids=str,
)
def test_what_may_fare_otherwise_is_asked(failed: tuple[str, bool], other: dict[str, Any]) -> None:
    session, second = Slow(*failed), Slow()
    target = target_of(session)
    ask(target, 2000)
    ask(target, **other)
    ask(target_of(second), 2000)
    assert (len(session.asked), len(second.asked)) == (2, 1)


def test_a_hang_costs_a_run_its_limit_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fake_hang` hangs in sin, whatever its size: of the sizes in ascending order, the first."""
    cases = [f"sin/array_size[n={n},seed=0]" for n in (1, 17, 4096)]
    runs: list[int] = []
    answer = Session.run

    def counted(
        session: Session, op: str, direction: Any, inputs: Any, *rest: Any, **how: Any
    ) -> Reply:
        runs.append(inputs["x"].size)
        return answer(session, op, direction, inputs, *rest, **how)

    monkeypatch.setattr(Session, "run", counted)
    plan = measurement.select(dtypes=["float32"], cases=cases)
    with planted_faults.registered(planted_faults.framework("hang", tmp_path)):
        outcome = measurement.measure(
            plan, tmp_path / "out", frameworks=["fake_hang"], devices=["cpu"], timeout=1.0
        )
    records = [r for r in outcome.records if r["kind"] == "measurement"]
    assert [r["status"] for r in records] == ["timeout"] * len(plan.units)
    sizes = sorted({r["case"]["shapes"]["x"][0] for r in records})
    assert len(sizes) > 1
    assert runs == [sizes[0]] * 2  # forward, backward
    later = [r for r in records if r["case"]["shapes"]["x"][0] > sizes[0]]
    assert later
    assert all("not asked with more" in r["reason"] for r in later)
