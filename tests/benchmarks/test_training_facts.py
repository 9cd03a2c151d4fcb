"""The survey's claims: each has a kept answer, none is open, and the page shows them."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import training_facts
from facts import asked

ROOT = Path(__file__).parent.parent.parent
KEPT = ROOT / "benchmarks" / "results" / "cpu-x86_64-linux" / "training_facts.json"
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "write_training_facts.py"))


def records() -> list[dict[str, Any]]:
    return list(json.loads(KEPT.read_text(encoding="utf-8"))["records"])


def test_every_claim_has_an_answer_and_none_is_open() -> None:
    kept = training_facts.answered(KEPT, training_facts.FACTS)
    assert list(kept) == [fact.name for fact in training_facts.FACTS]
    assert len(kept) == len(records()) > 300


def test_what_is_different_may_be_asked_again() -> None:
    kept = training_facts.answered(KEPT, training_facts.FACTS, again=True)
    assert {record["verdict"] for record in kept.values()} == {"reproduced"}
    assert len(kept) == sum(record["verdict"] == "reproduced" for record in records())


def test_a_difference_has_a_reason_and_a_cause_a_script() -> None:
    causes = 0
    for record in records():
        assert (record["verdict"] == "differs") == bool(record["because"]), record
        if record["script"] is not None and "`" in record["ours"]:
            causes += 1
            assert record["script"], record
    assert causes > 30


def test_the_page_shows_the_kept_answers() -> None:
    text = TOOL["PAGE"].read_text(encoding="utf-8")
    assert text == TOOL["page"](text, records()), "python tools/write_training_facts.py"
    assert TOOL["page"](text, records()[:9]) != text


@pytest.mark.parametrize(
    ("got", "expected", "digits", "holds"),
    [
        ([0.59999996], [0.6], 7, True),
        ([0.5999995], [0.6], 7, False),
        ([np.nan, np.inf, 0.0], [np.nan, np.inf, 0.0], 7, True),
        ([0.0], [np.nan], 7, False),
        ([1e-30], [0.0], 7, False),
        ([1.0], [1.0, 2.0], 7, False),
    ],
)
def test_numbers_agree_to_the_last_printed_digit(
    got: list[float], expected: list[float], digits: int, holds: bool
) -> None:
    assert asked.compared(got, expected, digits).holds is holds


@pytest.mark.parametrize(
    ("figure", "text", "holds"),
    [
        (4.0, "3 ulp", True),
        (60.0, "3 to 70 ulp in 4 draws", True),
        (800.0, "3 to 70 ulp in 39 draws", False),
    ],
)
def test_a_figure_may_lie_between_further_draws(figure: float, text: str, holds: bool) -> None:
    """As soon as it does, and within a factor of two after one."""
    drawn = [3.0, 9.0, 20.0, 70.0, *[5.0] * (asked.DRAWS - 4)]
    see = asked.ulps(lambda *_: drawn[0], figure, lambda k: lambda *_: drawn[k])
    seen = see(asked.Seats(), asked.Fact("4", "torch", "claim", "4", see))
    assert (seen.ours, seen.holds) == (text, holds)


def test_a_fact_that_does_not_hold_is_open_without_a_reason() -> None:
    seen = asked.Seen("3", False)
    seats = asked.Seats()
    open_fact = asked.Fact("1", "torch", "claim", "4", lambda *_: seen)
    explained = asked.Fact("1", "torch", "claim", "4", lambda *_: seen, "another draw")
    assert training_facts.record_of(open_fact, seats)["verdict"] == "open"
    assert training_facts.record_of(explained, seats)["verdict"] == "differs"
