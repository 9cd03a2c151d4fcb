"""The symptoms on the cards are explained while the kernel still runs, and kept in the records."""

import json
from pathlib import Path
from typing import Any

import planted_faults
import pytest
from command_helpers import said

from refkernels.cli.shared import explaining
from refkernels.reporting.measure import symptoms
from refkernels.runs.measurement import run

CASE = "layernorm/row_length[n=17,seed=102]"


fakes = planted_faults.fixture("correct", "swapped_gradients")


def measured(out: Path, *more: str) -> list[dict[str, Any]]:
    frameworks = [
        "--framework",
        "fake_swapped_gradients",
        "--framework",
        "fake_correct",
        "--device",
        "cpu",
    ]
    question = ["measure", "--case", CASE, "--dtype", "float32", *frameworks, "--out", str(out)]
    ran = said(*question, *more)
    assert ran.exit_code == 0, ran.output
    lines = (out / "records.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def explanations(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if record["kind"] == "explanation"]


def test_the_cause_of_a_planted_fault_stands_on_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (explanation,) = explanations(measured(tmp_path))
    assert (explanation["framework"], explanation["case"], explanation["direction"]) == (
        "fake_swapped_gradients",
        CASE,
        "backward",
    )
    assert (explanation["cause"], explanation["confidence"]) == (
        "swapped_weight_bias_grad",
        "proven",
    )
    assert explanation["evidence"]["bits"] >= 40
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "it returns the gradient of the bias as that of the weight" in page
    cards = page[page.index("<article>") : page.index('id="matrix"')]
    assert "(proven)" in cards
    monkeypatch.setattr(explaining, "_explained", None)  # nothing is explained twice
    assert explanations(measured(tmp_path, "--resume")) == [explanation]


def test_what_no_card_shows_unfolded_is_explained_on_request_even_when_all_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(symptoms, "MOST_EXPLAINED", 0)
    records = measured(tmp_path)
    assert explanations(records) == []
    explained = measured(tmp_path, "--resume", "--explain-all")
    assert [each["cause"] for each in explanations(explained)] == ["swapped_weight_bias_grad"]
    assert [each for each in explained if each["kind"] != "explanation"] == records
    # The gradient of the bias has the cause of the weight's, which was explained.
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count("it returns the gradient of the bias as that of the weight") >= 2


def test_a_judge_s_process_explains_as_this_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = explanations(measured(tmp_path / "alone"))
    calls = []

    def call(judges: run.Judges, function: Any, *arguments: Any) -> Any:
        calls.append(judges._pool is not None)
        return direct(judges, function, *arguments)

    direct = run.Judges.call
    monkeypatch.setattr(run.Judges, "call", call)
    monkeypatch.setattr(run, "UNITS_EACH", 1)
    assert explanations(measured(tmp_path / "apart")) == alone
    assert calls == [True]


def test_an_explanation_that_is_lost_on_its_way_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(*_: Any) -> Any:
        return lambda: 1 // 0

    monkeypatch.setattr(run.Judges, "call", call)
    (explanation,) = explanations(measured(tmp_path))
    assert (explanation["status"], explanation["cause"]) == ("error", None)
    assert explanation["reason"].startswith("ZeroDivisionError")


def test_what_explain_cannot_do_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("refkernels.diagnosis.several_cases.jointly", fails)
    (explanation,) = explanations(measured(tmp_path))
    assert (explanation["status"], explanation["cause"]) == ("error", None)
    assert "planted" in explanation["reason"]
    assert "planted" not in (tmp_path / "report.html").read_text("utf-8")
