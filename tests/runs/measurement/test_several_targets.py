"""Several targets of one framework are measured side by side, each under its own settings."""

from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from refkernels import registry
from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.gateway import Session
from refkernels.runs import measurement
from refkernels.runs.measurement import unit
from refkernels.runs.measurement.dispatcher import Dispatcher
from refkernels.runs.measurement.invariance import PROPERTIES, ThreadedTargets, ask_invariance
from refkernels.runs.measurement.plan import Unit
from refkernels.runs.measurement.targets import Target
from refkernels.target_names import TargetName, parse

NAMES = ("numpy", "numpy@OMP_NUM_THREADS=1", "numpy@NPY_DISABLE_CPU_FEATURES=:cpu", "numpy:cpu")
CASE = "sin/subnormals[seed=0]"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> measurement.RunOutcome:
    plan = measurement.select(["sin"], ["float32"], [CASE])
    folder = tmp_path_factory.mktemp("targets") / "out"
    return measurement.measure(plan, folder, frameworks=NAMES, settings={"FOR_ALL": "1"})


def test_each_target_has_records_of_its_own(outcome: measurement.RunOutcome) -> None:
    measured = [record for record in outcome.records if record.get("status") == "ok"]
    settings = {record["framework"]: record["settings"] for record in measured}
    assert settings == {
        "numpy": {"FOR_ALL": "1"},
        "numpy@OMP_NUM_THREADS=1": {"FOR_ALL": "1", "OMP_NUM_THREADS": "1"},
        "numpy@NPY_DISABLE_CPU_FEATURES=": {"FOR_ALL": "1", "NPY_DISABLE_CPU_FEATURES": ""},
    }
    assert len(measured) == 3  # numpy:cpu is numpy
    assert outcome.faults == 0


def test_each_target_has_an_environment_and_agrees_with_each_other(
    outcome: measurement.RunOutcome,
) -> None:
    frameworks = [
        record["framework"] for record in outcome.records if record["kind"] == "environment"
    ]
    assert len(frameworks) == len(set(frameworks)) == 3
    pairs = [
        (record["a"], record["b"]) for record in outcome.records if record["kind"] == "agreement"
    ]
    assert len(set(pairs)) == 3
    assert all(str(parse(name)) == name for pair in pairs for name in pair)


def test_a_run_with_the_same_targets_goes_on(outcome: measurement.RunOutcome) -> None:
    plan = measurement.select(["sin"], ["float32"], [CASE])
    again = measurement.measure(
        plan, outcome.path.parent, frameworks=NAMES, settings={"FOR_ALL": "1"}, resume=True
    )
    assert again.records == outcome.records


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("numpy:cuda:7", "no framework reports a device 'cuda:7' here: numpy has cpu"),
        ("numpy@num_thread=1", "did you mean 'num_threads'"),
        ("numpy@OMP_NUM_THREADS", "write NAME=VALUE"),
        ("./mine.py:sin", "mine.py cannot be read"),
        ("mine.py", "names no function"),
        ("nampy@A=1", "did you mean 'numpy'"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(
    name: str, said: str, tmp_path: Path
) -> None:
    plan = measurement.select(["sin"], ["float32"], [CASE])
    with pytest.raises(FrameworkError) as caught:
        measurement.measure(plan, tmp_path / "out", frameworks=[name])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_targets_own_number_of_threads_does_not_hide_what_threads_change() -> None:
    session = Session("numpy@OMP_NUM_THREADS=1")
    target = Target(session, "numpy@OMP_NUM_THREADS=1", None, "cpu", session.settings, "id")
    pair = ThreadedTargets(1.0).pair(target)
    assert [target.session.settings["OMP_NUM_THREADS"] for target in pair] == ["1", "2"]


def test_a_target_that_does_not_start_is_not_started_again_for_invariance() -> None:
    session, threaded = Session("numpy", start_timeout=0.001), ThreadedTargets(1.0)
    target = Target(session, "numpy", None, "cpu", session.settings, "id")
    question = Unit(registry.get("sin"), None, "float32", "forward")
    with Dispatcher([target]) as dispatcher:
        records = ask_invariance(question, dispatcher, threaded).records()
    assert {record["property"] for record in records} == set(PROPERTIES)
    assert {(record["status"], record["started"]) for record in records} == {("timeout", False)}
    assert session.starts == 1
    assert not threaded._sessions


def test_a_session_has_the_settings_and_the_device_of_its_name() -> None:
    with Session("numpy@OMP_NUM_THREADS=1:gpu:1", {"OMP_NUM_THREADS": "4", "A": "2"}) as session:
        assert session.settings == {"OMP_NUM_THREADS": "1", "A": "2"}
        x = {"x": np.ones(3, np.float32)}
        assert "no device named gpu:1" in str(session.run("sin", "forward", x).reason)
        assert session.run("sin", "forward", x, device="cpu").ok


def test_answers_with_the_same_bits_are_judged_once(tmp_path: Path) -> None:
    plan = measurement.select(["sin"], ["float32"], [CASE])
    plan = replace(plan, units=plan.units[:1])
    targets = ["numpy", "numpy@OMP_NUM_THREADS=1", "numpy@OMP_NUM_THREADS=2"]
    with (
        mock.patch.object(unit, "judge_by", wraps=unit.judge_by) as judge,
        mock.patch.object(unit, "agreement", wraps=unit.agreement) as agreement,
    ):
        records = measurement.measure(plan, tmp_path / "out", frameworks=targets).records
    measured = [record for record in records if record["kind"] == "measurement"]
    pairs = [record for record in records if record["kind"] == "agreement"]
    assert [record["framework"] for record in measured] == targets
    assert len({record["digest"] for record in measured}) == 1
    assert len(pairs) == 3
    assert all(pair["equal_bits"] == pair["elements"] > 0 for pair in pairs)
    assert (judge.call_count, agreement.call_count) == (1, 1)


def test_every_instruction_set_of_a_framework_is_a_target(tmp_path: Path) -> None:
    with Session("numpy") as session:
        choices = session.info["instruction_sets"]
    if not choices:
        with pytest.raises(FrameworkError, match="no instruction sets to choose"):
            measurement.with_instruction_sets(["numpy"], {}, 60.0)
        pytest.skip("NumPy has one instruction set for this processor")
    targets = measurement.with_instruction_sets(["numpy", "libm"], {}, 60.0)
    assert [parse(target) for target in targets[: len(choices) + 1]] == [
        TargetName("numpy"),
        *(TargetName("numpy", settings=((name, value),)) for name, value in choices),
    ]
    assert targets[len(choices) + 1 :] == ("libm",)
    first = choices[0][0]
    fixed = measurement.with_instruction_sets(["numpy"], {first: choices[0][1]}, 60.0)
    assert not any(first in target for target in fixed)  # chosen for all already
