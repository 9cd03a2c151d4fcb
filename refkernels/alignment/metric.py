"""SQuAD's exact match and F1, and whether two scores differ by more than the choice of questions.

Scores are those of the official evaluation of SQuAD 1.1 (Rajpurkar et al. 2016, arXiv:1606.05250).
Exact matches of the same questions are compared by McNemar's test (1947), their F1 by Fisher's
randomisation test: if two models are alike, each question's difference has either sign by a fair
coin. Two figures without predictions show only the weaker, unpaired difference. A score from 0 to 1
with mean p has at most the variance p (1 - p) of an exact match.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_FLIPS = 9_999  # random signs of all differences, beside the observed ones
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = set(string.punctuation)


def normalised(answer: str) -> str:
    """An answer in the form that is compared."""
    letters = "".join(letter for letter in answer.lower() if letter not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", letters).split())


def exact_match(prediction: str, answers: Sequence[str]) -> bool:
    """Whether a prediction is one of the answers."""
    return any(normalised(prediction) == normalised(answer) for answer in answers)


def f1(prediction: str, answers: Sequence[str]) -> float:
    """The best harmonic mean of precision and recall in words, over the answers."""
    predicted, best = normalised(prediction).split(), 0.0
    for right in (normalised(answer).split() for answer in answers):
        if shared := sum((Counter(predicted) & Counter(right)).values()):
            best = max(best, 2.0 * shared / (len(predicted) + len(right)))
    return best


@dataclass(frozen=True)
class MetricTest:
    """`difference` of two percentages in points; `deviation`: its standard deviation by sampling of
    questions alone; `p`, two-sided; `paired`: whether the same questions were compared one by one;
    `only_a`, `only_b`: how many questions only one of them has right, or scores higher in;
    `graded`: whether a question's score may lie between 0 and 1."""

    difference: float
    deviation: float
    p: float
    paired: bool
    questions: int
    only_a: int | None = None
    only_b: int | None = None
    graded: bool = False


def of_figures(a: float, b: float, questions: int) -> MetricTest:
    """Two percentages of right answers to that many questions each, by the normal approximation of
    two independent binomials. Raises ValueError for a figure that is not a percentage, or for no
    questions."""
    for value in (a, b):
        if not 0.0 <= value <= 100.0:
            raise ValueError(f"a metric is {value:g}: give a percentage from 0 to 100.")
    if questions < 1:
        raise ValueError(f"n is {questions}: give the number of questions.")
    variance = sum(p / 100 * (1 - p / 100) for p in (a, b)) / questions
    deviation = 100.0 * math.sqrt(variance)
    difference = b - a
    surprise = abs(difference) / deviation if deviation else math.inf if difference else 0.0
    p = math.erfc(surprise / math.sqrt(2.0))
    return MetricTest(difference, deviation, p, False, questions)


def of_answers(a: Mapping[str, float], b: Mapping[str, float]) -> MetricTest:
    """The test of two models' scores from 0 to 1, right or wrong (McNemar) or in between (random
    signs), question by question. Raises ValueError if they did not answer the same questions."""
    if a.keys() != b.keys():
        unshared = len(a.keys() ^ b.keys())
        raise ValueError(f"{unshared} questions were answered by only one of the two.")
    if not a:
        raise ValueError("no question was answered.")
    differences = np.array([b[name] - a[name] for name in a], np.float64)
    only_a, only_b = (int(np.count_nonzero(sign * differences > 0)) for sign in (-1, 1))
    graded = not set(a.values()) | set(b.values()) <= {0, 1}
    p = random_signs(differences) if graded else mcnemar(only_a, only_b)
    difference = 100.0 * float(np.mean(differences))
    deviation = 100.0 * float(np.linalg.norm(differences)) / len(a)
    return MetricTest(difference, deviation, p, True, len(a), only_a, only_b, graded)


def random_signs(differences: npt.NDArray[np.float64]) -> float:
    """The two-sided p-value: the share of random signs, the observed ones included, that give the
    differences as large a sum. It exceeds no level by chance, whatever the number of draws."""
    sizes = np.abs(differences[differences != 0.0])
    observed, rng = abs(float(np.sum(differences))), np.random.default_rng(0)
    room = 1e-12 * float(np.sum(sizes))  # equal sums in another order
    at_least = 1 + sum(
        abs(2.0 * float(np.sum(sizes[rng.random(sizes.size) < 0.5])) - float(np.sum(sizes)))
        >= observed - room
        for _ in range(_FLIPS)
    )
    return at_least / (_FLIPS + 1)


def mcnemar(only_a: int, only_b: int) -> float:
    """The exact two-sided p-value: each discordant question falls to either side by a fair coin."""
    discordant, fewer = only_a + only_b, min(only_a, only_b)
    tail = sum(math.comb(discordant, k) for k in range(fewer + 1))
    return min(1.0, 2 * tail / 2**discordant)


def right_answers(dataset: object) -> dict[str, list[str]]:
    """The accepted answers by question id, of a SQuAD file. Raises ValueError for another file."""
    try:
        paragraphs = (part for one in dataset["data"] for part in one["paragraphs"])  # type: ignore[index]
        questions = [question for part in paragraphs for question in part["qas"]]
        return {
            str(question["id"]): [str(answer["text"]) for answer in question["answers"]] or [""]
            for question in questions
        }
    except (KeyError, TypeError, IndexError):
        message = "this is not a SQuAD file with data, paragraphs, qas and answers."
        raise ValueError(message) from None


def scores(
    predictions: object, right: Mapping[str, Sequence[str]],
    score: Callable[[str, Sequence[str]], float] = exact_match,
) -> dict[str, float]:  # fmt: skip
    """The score of each question, 0 without a prediction. Raises ValueError where predictions are
    not a mapping."""
    if not isinstance(predictions, dict):
        raise ValueError("predictions must be a JSON object: question id to answer.")
    return {
        name: float(score(str(predictions[name]), answers)) if name in predictions else 0.0
        for name, answers in right.items()
    }


SCORES = {"em": exact_match, "f1": f1}
