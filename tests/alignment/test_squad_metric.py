"""SQuAD's scores, and the test whether two differ by more than sampling."""

import math
from fractions import Fraction

import numpy as np
import pytest

from refkernels.alignment import metric


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


def test_mcnemar_keeps_its_level() -> None:
    rng = np.random.default_rng(1)
    tested = [metric.mcnemar(k, 60 - k) for k in map(int, rng.binomial(60, 0.5, 2000))]
    assert np.mean(np.array(tested) <= 0.05) <= 0.05


def test_paired_answers_are_sharper() -> None:
    rng = np.random.default_rng(2)
    a = {str(i): bool(right) for i, right in enumerate(rng.random(2000) < 0.8)}
    b = {name: right or rng.random() < 0.1 for name, right in a.items()}
    paired = metric.of_answers(a, b)
    assert paired.only_a == 0
    assert paired.p < 1e-8
    scores = [100 * float(np.mean(list(run.values()))) for run in (a, b)]
    assert paired.difference == pytest.approx(scores[1] - scores[0])


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="one of the two only"):
        metric.of_answers({"1": True}, {"2": True})
    with pytest.raises(ValueError, match="no question"):
        metric.of_answers({}, {})
    with pytest.raises(ValueError, match="percentage"):
        metric.of_figures(101.0, 5.0, 10)
    with pytest.raises(ValueError, match="number of questions"):
        metric.of_figures(1.0, 5.0, 0)
    with pytest.raises(ValueError, match="not a SQuAD file"):
        metric.right_answers({"data": [{}]})


def test_predictions_are_checked_against_a_squad_file() -> None:
    questions = [{"id": "1", "answers": [{"text": "Paris"}]}, {"id": "2", "answers": []}]
    right = metric.right_answers({"data": [{"paragraphs": [{"qas": questions}]}]})
    assert metric.exact({"1": "paris."}, right) == {"1": True, "2": False}
