"""Steps from a multiple of the gradient: a loss scale left in, a sum over ranks."""

import itertools
from typing import Any

import numpy as np
import pytest
from hunting import one_in

from refkernels import explain, registry

STATES = {"adam": ("m", "v"), "adamw": ("m", "v"), "sgd": ("buf",), "momentum": ("buf",)}
PARAMS: dict[str, dict[str, Any]] = {
    "adam": {"lr": 0.01, "eps": 1e-3, "step": 3},
    "adamw": {"lr": 0.01, "eps": 1e-3, "step": 3, "weight_decay": 0.1},
    "sgd": {"lr": 0.05, "momentum": 0.9},
    "momentum": {"lr": 0.05, "momentum": 0.9},
}


def question(op: str, zero: bool) -> dict[str, Any]:
    rng = np.random.default_rng(12)
    inputs = {n: rng.standard_normal(60).astype(np.float32) for n in ("param", "grad")}
    for name in STATES[op]:
        state = np.square(rng.standard_normal(60)) * (not zero)
        inputs[name] = state.astype(np.float32)
    return inputs


def stepped(op: str, inputs: dict[str, Any], factor: float) -> Any:
    times = (inputs["grad"] * np.float32(factor)).astype(np.float32)
    return registry.get(op).plain("forward", {**inputs, "grad": times}, PARAMS[op], "float32")


@pytest.mark.parametrize(
    ("op", "factor"), one_in(2, itertools.product(STATES, (65536.0, 8.0, 3.0, 1 / 4, 1 / 6)))
)
def test_a_step_from_a_multiple_of_the_gradient_is_named(op: str, factor: float) -> None:
    inputs = question(op, zero=False)
    explanation = explain(op, inputs, stepped(op, inputs, factor), PARAMS[op])
    assert (explanation.cause, explanation.confidence) == ("gradient_multiplied", "proven")
    named = explanation.candidates[0].details["factor"]
    assert named == (str(round(factor)) if factor > 1 else f"1/{round(1 / factor)}")


@pytest.mark.parametrize("op", ["adam", "adamw"])
def test_the_second_moment_separates_a_multiplied_gradient_from_a_multiplied_first_moment(
    op: str,
) -> None:
    """With moments of 0, m is 8 times the right one, and v 64 times."""
    inputs = question(op, zero=True)
    outputs = stepped(op, inputs, 8.0)
    explanation = explain(op, inputs, outputs, PARAMS[op])
    assert (explanation.cause, explanation.confidence) == ("gradient_multiplied", "proven")
    alone = explain(op, inputs, {"m": outputs["m"]}, PARAMS[op])
    assert (alone.cause, alone.confidence) == ("scale_factor", "proven")


@pytest.mark.parametrize("op", STATES)
def test_right_steps_and_foreign_factors_are_no_multiples(op: str) -> None:
    inputs = question(op, zero=False)
    for factor in (1.0, 0.7371):
        explanation = explain(op, inputs, stepped(op, inputs, factor), PARAMS[op])
        assert explanation.cause != "gradient_multiplied"
