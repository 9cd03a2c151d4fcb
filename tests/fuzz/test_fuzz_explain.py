"""explain answers every question of every op, or refuses it in a sentence of its own."""

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawn_questions import Drawn, printed, question
from hunting import one_in

import refkernels
from refkernels import registry
from refkernels.op import Direction
from refkernels.printed import text, verdict
from refkernels.reporting.answer import printed as pages

WAYS = [(op.name, direction) for op in registry.ops().values() for direction in op.directions]


def answered(drawn: Drawn) -> bool:
    """Whether explain answers. Raises AssertionError where it does neither that nor refuse."""
    asked = (drawn.op, drawn.inputs, drawn.outputs, drawn.params, drawn.direction)

    def answer() -> None:
        explanation = refkernels.explain(*asked)
        json.dumps(explanation.to_dict(), allow_nan=False)
        for language in ("en", "zh"):
            explanation.to_markdown(language)

    return _answers(answer, str(drawn))


def answered_as_text(drawn: Drawn, rng: np.random.Generator) -> bool:
    """Whether `explain --pasted` answers the question, as `answered` says."""
    written, inputs, outputs = printed(rng, drawn)

    def answer() -> None:
        tensors = text.tensors(written)
        asked = (drawn.op, tensors, inputs, outputs, drawn.params, drawn.direction)
        explained = verdict.explain_printed(*asked)
        json.dumps(explained, allow_nan=False)
        for language in ("en", "zh"):
            pages.brief(explained, language)
            pages.page(explained, language)

    return _answers(answer, f"{drawn}\n{written[:3000]}")


def _answers(answer: Callable[[], None], asked: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            answer()
        except (TypeError, ValueError) as refusal:
            if str(refusal).isprintable():
                return False
            raise AssertionError(asked) from refusal
        except Exception as failure:
            raise AssertionError(asked) from failure
    return True


@pytest.mark.parametrize(("name", "direction"), one_in(9, WAYS))
def test_explain_answers_or_refuses_in_a_sentence(
    hunt: Any, name: str, direction: Direction
) -> None:
    for number, rng in hunt.cases(1):
        asked = question(rng, registry.get(name), direction)
        small = question(rng, registry.get(name), direction, most=64)
        try:
            answered(asked)
            answered_as_text(small, rng)
        except AssertionError as failure:
            raise AssertionError(f"{failure}\n{hunt.replay(number)}") from failure
