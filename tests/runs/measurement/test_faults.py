"""Frameworks with planted faults, measured end to end: every fault is seen and named, a correct
kernel raises no alarm, and nothing keeps the rest from being measured."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import planted_faults
import pytest

from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.gateway import Reply, Session
from refkernels.runs import measurement
from refkernels.runs.measurement import run

CASES = (
    "matmul/k_sweep[K=1,seed=0]",
    "matmul/k_sweep[K=64,seed=0]",
    "matmul/specials[kind=zeros,seed=0]",
    "layernorm/affine_gradients[seed=107]",
    "layernorm/mean_over_std[n=768,ratio=10000,eps=1e-05,seed=101]",
    "sin/subnormals[seed=0]",
    "cos/array_size[n=17,seed=0]",
)
FAULTS = (*planted_faults.WRONG_NUMBERS, *planted_faults.STATUS_OF)
FRAMEWORKS = ("numpy", "fake_missing", *(f"fake_{fault}" for fault in ("correct", *FAULTS)))


@pytest.fixture(scope="module", autouse=True)
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every fake in the catalog, and one framework that nobody has installed."""
    folder = tmp_path_factory.mktemp("fakes")
    fakes = [planted_faults.framework(fault, folder) for fault in planted_faults.FAULTS]
    fakes.append(replace(fakes[0], name="fake_missing", module="fake_missing", python=None))
    with planted_faults.registered(*fakes):
        yield


@pytest.fixture(scope="module")
def outcome(planted: None, tmp_path_factory: pytest.TempPathFactory) -> measurement.RunOutcome:
    plan = measurement.select(dtypes=["float32"], cases=CASES)
    others = [name for name in FRAMEWORKS if name != "fake_hang"]
    found, hung = (
        measurement.measure(
            plan, tmp_path_factory.mktemp("out"), frameworks=names, devices=["cpu"], timeout=limit
        )
        for names, limit in ((others, 60.0), (["fake_hang"], 2.0))
    )
    return replace(found, records=found.records + hung.records, faults=found.faults + hung.faults)


def measured(
    outcome: measurement.RunOutcome, fault: str, case: str = "", **wanted: str
) -> list[Any]:
    """The measurements of one fake; at least one, so that no loop over them is empty."""
    records = [
        record
        for record in outcome.records
        if record["kind"] == "measurement"
        and record["framework"] == f"fake_{fault}"
        and record["case"]["name"].startswith(case)
        and all(record[key] == value for key, value in wanted.items())
    ]
    assert records
    return records


def test_a_correct_kernel_raises_no_alarm(outcome: measurement.RunOutcome) -> None:
    records = measured(outcome, "correct")
    assert {record["status"] for record in records} == {"ok"}
    assert {record["verdict"] for record in records} <= {"rounding", "correctly_rounded"}
    assert {flag for record in records for flag in record["flags"]} == set()
    assert {tuple(record["invariants_violated"]) for record in records} == {()}
    # Float64's own roundings show where mean / std is 1e4, and nowhere else.
    plain = [r for r in records if r["case"]["regime"] != "mean_over_std"]
    assert {record["verdict"] for record in plain} == {"correctly_rounded"}


def test_every_element_one_ulp_off_is_seen(outcome: measurement.RunOutcome) -> None:
    (product,) = measured(outcome, "one_ulp_off", "matmul/k_sweep[K=1,", direction="forward")
    assert product["verdict"] == "exceeds_bound"  # a product has one rounding: half an ulp
    (cosine,) = measured(outcome, "one_ulp_off", "cos/", direction="forward")
    assert cosine["verdict"] == "invariant_violated"  # cos(0) is above 1
    (sine,) = measured(outcome, "one_ulp_off", "sin/", direction="forward")
    assert sine["verdict"] == "rounding"  # inside the limit of the op, and still told:
    assert 1.0 <= sine["ulp"]["max"] <= 1.5
    assert sine["counts"]["not_correctly_rounded"] == sine["counts"]["compared"]
    (zeros,) = measured(outcome, "one_ulp_off", "matmul/specials", direction="forward")
    assert "nonzero_at_zero" in zeros["flags"]


def test_flushed_subnormals_are_named(outcome: measurement.RunOutcome) -> None:
    (forward,) = measured(outcome, "flush_to_zero", "sin/subnormals", direction="forward")
    assert "flushed_subnormals" in forward["flags"]
    assert forward["counts"]["flushed_subnormals"] > 1000
    (elsewhere,) = measured(outcome, "flush_to_zero", "matmul/k_sweep[K=64", output="c")
    assert elsewhere["flags"] == []


def test_swapped_gradients_of_weight_and_bias_are_named(outcome: measurement.RunOutcome) -> None:
    records = measured(outcome, "swapped_gradients", "layernorm/affine", direction="backward")
    assert {record["output"]: record["verdict"] for record in records} == {
        "dx": "correctly_rounded",
        "dweight": "exceeds_bound",
        "dbias": "exceeds_bound",
    }


def test_a_nan_is_a_special_value_mismatch_and_never_averaged(
    outcome: measurement.RunOutcome,
) -> None:
    for record in measured(outcome, "nan"):
        assert record["verdict"] == "special_value_mismatch"
        assert record["counts"]["special_value_mismatches"] == 1
        assert record["worst"]["got"]["decimal"] == "nan"
        assert record["ulp"] is None or record["ulp"]["max"] <= 1.5


def test_a_wrong_shape_is_named_with_both_shapes(outcome: measurement.RunOutcome) -> None:
    records = measured(outcome, "wrong_shape")
    assert {record["status"] for record in records} == {"wrong_shape"}
    (cosine,) = measured(outcome, "wrong_shape", "cos/", direction="forward")
    assert cosine["reason"] == "y has shape (1, 17) where (17,) is right."


STRIKING = tuple(
    fault for fault in planted_faults.STATUS_OF if fault not in ("import_error", "crash_at_import")
)


@pytest.mark.parametrize("fault", STRIKING)
def test_a_fault_in_one_op_is_a_status_and_the_others_are_measured(
    outcome: measurement.RunOutcome, fault: str
) -> None:
    records = measured(outcome, fault)
    struck = [record for record in records if record["op"] == "sin"]
    assert [(r["direction"], r["status"]) for r in struck] == [
        ("forward", planted_faults.STATUS_OF[fault]),
        ("backward", planted_faults.STATUS_OF[fault]),
    ]
    assert all(r["reason"].startswith(f"fake_{fault}: ") and "verdict" not in r for r in struck)
    assert {r["status"] for r in records if r["op"] != "sin"} == {"ok"}
    assert {"matmul", "layernorm", "cos"} <= {record["op"] for record in records}


@pytest.mark.parametrize("fault", ["import_error", "crash_at_import", "missing"])
def test_a_framework_that_does_not_start_says_why_in_every_record(
    outcome: measurement.RunOutcome, fault: str
) -> None:
    status = planted_faults.STATUS_OF.get(fault, "not_installed")
    records = measured(outcome, fault)
    assert {record["status"] for record in records} == {status}
    assert len(records) == 2 * len(CASES)
    assert all(f"fake_{fault}" in record["reason"] for record in records)


def test_the_outcome_distinguishes_faults_from_what_is_missing(
    outcome: measurement.RunOutcome,
) -> None:
    assert outcome.missing == ("fake_missing",)
    failed = [r for r in outcome.records if r["kind"] == "measurement" and r["status"] != "ok"]
    harmless = [r for r in failed if r["status"] in ("not_installed", "unsupported")]
    assert outcome.faults == len(failed) - len(harmless) > 0
    unsupported = {r["framework"] for r in failed if r["status"] == "unsupported"}
    assert unsupported == {"numpy"}  # has no derivatives


def test_every_framework_has_a_record_in_every_unit(outcome: measurement.RunOutcome) -> None:
    questions = {
        (r["framework"], r["case"]["name"], r["direction"])
        for r in outcome.records
        if r["kind"] == "measurement"
    }
    assert len(questions) == len(FRAMEWORKS) * len(CASES) * 2


@pytest.mark.parametrize(
    ("victim", "kill_at", "after"),
    [("fake_correct", "cos", 0.0), ("fake_hang", "sin", 0.5)],
    ids=["idle", "busy"],
)
def test_a_worker_killed_from_outside_costs_one_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str, kill_at: str, after: float
) -> None:
    """`fake_hang` is killed while it hangs in sin, `fake_correct` before it is asked for cos."""
    sessions = catch_sessions(monkeypatch)
    plan = measurement.select(dtypes=["float32"], cases=(CASES[2], *CASES[-2:]))
    plan = replace(plan, units=tuple(u for u in plan.units if u.direction == "forward"))

    def kill() -> None:
        pid = sessions[victim].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    answer = Session.run

    def run_and_die(session: Session, op: str, *arguments: Any, **options: Any) -> Reply:
        if op == kill_at and session is sessions[victim]:
            threading.Timer(after, kill).start() if after else kill()
        return answer(session, op, *arguments, **options)

    monkeypatch.setattr(Session, "run", run_and_die)
    outcome = measurement.measure(
        plan, tmp_path, frameworks=["numpy", victim], devices=["cpu"], timeout=60.0
    )
    records = [r for r in outcome.records if r["kind"] == "measurement"]
    (killed,) = [record for record in records if record["status"] != "ok"]
    assert (killed["framework"], killed["status"]) == (victim, "killed")
    assert killed["op"] == kill_at
    assert "SIGKILL" in killed["reason"]
    assert len(records) == 2 * len(plan.units) == 6
    assert outcome.faults == 1


def catch_sessions(monkeypatch: pytest.MonkeyPatch) -> dict[str, Session]:
    """The sessions that measure() opens, as it opens them."""
    caught: dict[str, Session] = {}
    original: Callable[..., dict[str, Session]] = run.opened

    def opened(*arguments: Any) -> dict[str, Session]:
        caught.update(original(*arguments))
        return caught

    monkeypatch.setattr(run, "opened", opened)
    return caught


def test_a_device_that_nobody_has_is_refused_with_what_there_is(tmp_path: Path) -> None:
    plan = measurement.select(dtypes=["float32"], cases=CASES[-1:])
    with pytest.raises(FrameworkError, match=r"'cuda' here: fake_correct has cpu, fake:0"):
        measurement.measure(plan, tmp_path, frameworks=["fake_correct"], devices=["cuda"])
    # Nothing was measured, so the folder is free for the next question.
    outcome = measurement.measure(
        plan, tmp_path, frameworks=["fake_correct", "numpy", "fake_missing"], devices=["fake"]
    )
    answers = {
        (r["framework"], r["device"], r["status"], r["reason"])
        for r in outcome.records
        if r["kind"] == "measurement" and r["direction"] == "forward"
    }
    reasons = {name: reason for name, _, _, reason in answers}
    assert {(name, device, status) for name, device, status, _ in answers} == {
        ("fake_correct", "fake:0", "ok"),
        ("numpy", "fake", "unsupported"),
        ("fake_missing", "fake", "not_installed"),
    }
    assert reasons["numpy"] == "numpy reports no device fake: it has cpu"
    assert "refkernels env create fake_missing" in reasons["fake_missing"]


def test_a_flag_that_nobody_has_is_refused_before_anything_starts(tmp_path: Path) -> None:
    plan = measurement.select(dtypes=["float32"], cases=CASES[-1:])
    with pytest.raises(FrameworkError, match=r"no adapter has a flag named 'colour'"):
        measurement.measure(plan, tmp_path, frameworks=["numpy"], settings={"colour": "red"})
    assert list(tmp_path.iterdir()) == []
