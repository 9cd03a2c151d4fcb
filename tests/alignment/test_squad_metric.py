"""SQuAD's scores, and the test whether two differ by more than sampling."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from refkernels.alignment import metric
from refkernels.cli.app import app


def test_answers_are_compared_as_the_official_evaluation_does() -> None:
    assert metric.normalised("The  Cat's (black) an hat.") == "cats black hat"
    assert metric.exact_match("the Norman", ["Normans", "a norman!"])
    assert not metric.exact_match("Norman", ["Normans"])
    assert metric.f1("the quick brown fox", ["a brown fox", "dog"]) == pytest.approx(2 * 2 / 5)
    assert metric.f1("cat", ["dog"]) == 0.0
    assert metric.f1("no no", ["no"]) == pytest.approx(2 / 3)  # a word counts as often as it stands


def test_the_seed_s_figures() -> None:
    """81.71 (lazy), 82.57 (graph), 80.72 (TensorFlow) of 10,570 questions."""
    difference = metric.of_figures(81.71, 82.57, 10570)
    assert round(difference.deviation, 3) == 0.527
    assert difference.p == pytest.approx(math.erfc(0.86 / difference.deviation / math.sqrt(2)))
    assert difference.p > 0.05
    assert metric.of_figures(80.72, 82.57, 10570).p < 0.001


@pytest.mark.parametrize(("a", "b"), [(0, 0), (1, 0), (5, 5), (3, 12), (40, 70), (900, 1100)])
def test_mcnemar_is_the_exact_binomial(a: int, b: int) -> None:
    n = a + b
    below = sum(Fraction(math.comb(n, k), 2**n) for k in range(min(a, b) + 1))
    assert metric.mcnemar(a, b) == pytest.approx(float(min(Fraction(1), 2 * below)), rel=1e-12)
    assert metric.mcnemar(a, b) == metric.mcnemar(b, a)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="only one of the two"):
        metric.of_answers({"1": True}, {"2": True})
    with pytest.raises(ValueError, match="no question"):
        metric.of_answers({}, {})
    with pytest.raises(ValueError, match="percentage"):
        metric.of_figures(101.0, 5.0, 10)
    with pytest.raises(ValueError, match="number of questions"):
        metric.of_figures(1.0, 5.0, 0)
    with pytest.raises(ValueError, match="not a SQuAD file"):
        metric.right_answers({"data": [{}]})


def test_random_signs_are_fisher_s_exact_test() -> None:
    """All signs of a few differences, counted; and McNemar's p where they are 1."""
    rng = np.random.default_rng(5)
    differences = rng.choice([-1.0, -0.4, 0.0, 0.25, 0.5, 2 / 3], 11)
    every = np.array(list(itertools.product([-1.0, 1.0], repeat=11))) @ np.abs(differences)
    exact = float(np.mean(np.abs(every) >= abs(differences.sum()) - 1e-12))
    assert 0.05 < exact < 1.0
    spread = math.sqrt(exact * (1 - exact) / 10_000)
    assert metric.random_signs(differences) == pytest.approx(exact, abs=4 * spread)
    ones = np.array([1.0] * 12 + [-1.0] * 3)
    assert metric.random_signs(ones) == pytest.approx(metric.mcnemar(3, 12), abs=0.006)


def test_the_command_compares_em_and_f1_question_by_question(tmp_path: Path) -> None:
    names = [str(i) for i in range(60)]
    questions = [{"id": name, "answers": [{"text": "a red fox"}]} for name in names]
    answers = {
        "dataset": {"data": [{"paragraphs": [{"qas": questions}]}]},
        "a": dict.fromkeys(names, "red fox"),
        "b": {name: "red fox" if i >= 20 else "the fox" for i, name in enumerate(names)},
    }
    for name, content in answers.items():
        (tmp_path / name).write_text(json.dumps(content))
    words = ["align", "--dataset", str(tmp_path / "dataset")]
    words += [word for name in "ab" for word in ("--answers", str(tmp_path / name))]
    figures = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert figures["em"]["difference"] == pytest.approx(-100 * 20 / 60)
    assert figures["em"]["p"] == metric.mcnemar(20, 0)
    assert figures["f1"]["difference"] == pytest.approx(-100 * 20 / 60 / 3)
    assert figures["f1"]["p"] == 1e-4
    assert (figures["f1"]["only_a"], figures["f1"]["only_b"]) == (20, 0)
    printed = CliRunner().invoke(app, words).output
    assert "EM: The scores differ by -33.33 points: 20 questions are right in A alone" in printed
    assert "F1: The scores differ by -11.11 points: 20 questions score higher in A" in printed
