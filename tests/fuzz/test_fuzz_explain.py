"""explain answers every question of every op, or refuses it in a sentence of its own."""

import functools
import json
import warnings
from typing import Any

import pytest
from drawn_questions import Drawn, drawn
from hunting import HUNT
from test_fuzz_calls import fault_of

import refkernels
from refkernels import registry
from refkernels.op import Direction

WAYS = [(op.name, direction) for op in registry.ops().values() for direction in op.directions]


def answered(question: Drawn) -> bool:
    """Whether explain answers. Raises AssertionError where it does neither that nor refuse."""
    asked = (question.op, question.inputs, question.outputs, question.params, question.direction)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            explanation = refkernels.explain(*asked)
            json.dumps(explanation.to_dict(), allow_nan=False)
            for language in ("en", "zh"):
                explanation.to_markdown(language)
        except Exception as failure:
            fault = fault_of("explain", failure)
            assert fault is None, f"{question}\n{fault}"
            return False
    return True


@pytest.mark.parametrize(("name", "direction"), WAYS)
def test_explain_answers_or_refuses_in_a_sentence(
    hunt: Any, name: str, direction: Direction
) -> None:
    hunt.seconds = 0.0
    for number, rng in hunt.cases(least=2 * HUNT):
        question = drawn(rng, registry.get(name), direction)
        try:
            answered(question)
        except AssertionError as failure:
            raise AssertionError(f"{failure}\n{hunt.replay(number)}") from failure
