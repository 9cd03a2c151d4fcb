"""What some measured cases are for: a known mistake of a framework is proven there, not guessed."""

from typing import Any

import numpy as np
import pytest

from refkernels import explain, registry


def question(op: str, regime: str, dtype: str) -> tuple[dict[str, Any], dict[str, Any]]:
    case = next(case for case in registry.get(op).cases() if case.regime == regime)
    return case.build(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logits_of_zero_prove_slopes_that_are_added(dtype: str) -> None:
    """Paddle's gradient: 0 and -1/2, of relu(x) and of log(1 + e^-|x|), where x is 0."""
    inputs, params = question("bce_with_logits", "zeros", dtype)
    x, one = inputs["x"], np.ones(1, dtype)
    slope = one / (one + np.exp(-x)) - inputs["target"]
    wrong = inputs["dloss"] * (slope - (x == 0))
    explanation = explain("bce_with_logits", inputs, {"dx": wrong}, params, "backward")
    assert (explanation.cause, explanation.confidence) == ("relu_slope_at_zero", "proven")


@pytest.mark.parametrize("op", ["sgd", "momentum"])
def test_a_parameter_that_is_not_decayed_for_its_name_is_proven(op: str) -> None:
    """MindSpore's rule: no decay where the name contains beta or gamma."""
    inputs, params = question(op, "named", "float32")
    assert "beta" in params["name"]
    undecayed = {**params, "weight_decay": 0.0}
    outputs = registry.get(op).plain("forward", inputs, undecayed, "float32")
    explanation = explain(op, inputs, outputs, params)
    assert (explanation.cause, explanation.confidence) == ("decay_ignored", "proven")


def test_a_name_has_no_effect_on_the_definition() -> None:
    inputs, params = question("adam", "named", "float32")
    answers = [
        registry.get("adam").evaluate("forward", inputs, {**params, "name": name}, "enclosure")
        for name in ("weight", "norm.beta")
    ]
    for first, second in zip(*(answer.values() for answer in answers), strict=True):
        if first is not None:
            assert np.array_equal(first.hi, second.hi, equal_nan=True)
            assert np.array_equal(first.lo, second.lo, equal_nan=True)
