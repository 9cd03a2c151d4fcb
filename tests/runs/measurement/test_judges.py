"""Who judges makes no difference to a record; a judge that dies or is ended loses nothing."""

import contextlib
import os
import time
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refkernels.frameworks.gateway import Reply
from refkernels.runs import measurement
from refkernels.runs.measurement import run
from refkernels.runs.measurement.judges import Judges
from refkernels.runs.measurement.plan import Plan, Unit

CASES = ("softmax/specials*", "matmul/specials*", "clip_by_value/*", "argmax/specials*")
OPS, DTYPES = ["softmax", "matmul", "clip_by_value", "argmax"], ("float32", "float16")


@pytest.fixture(autouse=True)
def _judges_for_few_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "UNITS_EACH", 1)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return measurement.select(OPS, DTYPES, CASES)


@pytest.fixture(scope="module")
def expected(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of a run that this process judges, without their times."""
    folder = tmp_path_factory.mktemp("here")
    return timeless(measurement.measure(plan, folder, frameworks=["numpy"]).records)


def timeless(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in r.items() if name != "seconds"} for r in records]


def test_other_processes_give_the_same_records_in_the_same_order(
    plan: Plan, expected: list[dict[str, Any]], tmp_path: Path
) -> None:
    outcome = measurement.measure(plan, tmp_path, frameworks=["numpy"], judges=2)
    assert timeless(outcome.records) == expected
    assert "error" not in {record.get("status") for record in expected}  # of whole numbers neither
    assert sum(record["kind"] == "measurement" for record in expected) > 20


def test_a_stopped_run_goes_on_where_it_was(
    plan: Plan, expected: list[dict[str, Any]], tmp_path: Path
) -> None:
    def stop(now: measurement.Progress) -> None:
        if now.done == 3:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"frameworks": ["numpy"], "judges": 2}
    with pytest.raises(KeyboardInterrupt):
        measurement.measure(plan, tmp_path, progress=stop, **options)
    assert not (tmp_path / "records.jsonl").exists()
    kept = (tmp_path / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(kept) >= 4  # the environments, and three units
    outcome = measurement.measure(plan, tmp_path, resume=True, **options)
    assert timeless(outcome.records) == expected


def test_judges_that_cannot_begin_are_no_loss(plan: Plan) -> None:
    class Broken:
        def submit(self, *job: Any) -> Any:
            raise OSError("handle is closed")

    unit = next(unit for unit in plan.units if unit.op.name == "softmax")
    with Judges(2) as judges:
        assert judges._pool is not None
        judges._pool.executor = Broken  # type: ignore[method-assign, assignment]
        assert judges.judge(unit, [], [])() == []


def killed(judges: Judges) -> None:
    assert judges._pool is not None
    executor: Any = judges._pool.executor()
    for process in list(executor._processes.values()):
        process.kill()
        process.join()


def test_what_a_dead_judge_leaves_is_judged_here(plan: Plan) -> None:
    unit = next(unit for unit in plan.units if unit.op.name == "softmax")
    with Judges(2) as judges:
        answer = judges.judge(unit, [], [])
        assert answer() == []
        killed(judges)
        assert [judges.judge(unit, [], [])() for _ in range(3)] == [[], [], []]


def test_a_function_is_called_in_a_judge_and_here_where_it_died() -> None:
    with Judges(2) as judges:
        assert judges.call(os.getpid)() != os.getpid()
        killed(judges)
        assert judges.call(os.getpid)() == os.getpid()
        waiting = judges.call(time.sleep, 0.0)
        judges.abandon()
        with contextlib.suppress(CancelledError, BrokenExecutor):
            waiting()
    with Judges(1) as alone:
        assert alone.call(os.getpid)() == os.getpid()


def test_judges_that_are_abandoned_end_though_a_framework_hangs(plan: Plan) -> None:
    unit = next(unit for unit in plan.units if unit.op.name == "softmax")
    hangs: Future[Reply] = Future()
    with Judges(2) as judges:
        judges.judge(unit, [], [])()
        records = judges.judge(unit, [], [hangs])
        assert judges._pool is not None
        executor: Any = judges._pool.executor()
        processes = list(executor._processes.values())
        assert any(process.is_alive() for process in processes)
        judges.abandon()
        hangs.set_result(Reply("error", "the session was abandoned"))
        with contextlib.suppress(CancelledError):  # where it had not begun
            assert records() == []
    assert not any(process.is_alive() for process in processes)


def test_a_unit_that_no_other_process_finds_is_judged_here(plan: Plan) -> None:
    unit = next(unit for unit in plan.units if unit.op.name == "softmax")
    assert unit.case is not None
    build = unit.case.build
    changes: list[dict[str, Any]] = [
        {"name": "softmax/my own"}, {"build": lambda dtype: build(dtype)}, {"seed": 99},
        {"parameters": {"rows": 3}},
    ]  # fmt: skip
    sent: list[Unit] = []
    with Judges(2) as judges:
        judges._elsewhere = lambda unit, *_: sent.append(unit) or []  # type: ignore[method-assign]
        for change in changes:
            judges.judge(replace(unit, case=replace(unit.case, **change)), [], [])()
        assert sent == []
        judges.judge(unit, [], [])()
        assert sent == [unit]


@pytest.mark.parametrize(
    ("judges", "error"), [(0, ValueError), (True, TypeError), ("2", TypeError)]
)
def test_an_impossible_number_of_judges_is_refused(
    plan: Plan, tmp_path: Path, judges: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="judges"):
        measurement.measure(plan, tmp_path, frameworks=["numpy"], judges=judges)
