"""Another beta1 of Lion flips signs only: those that flip bound the value that was used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.diagnosis.explanation import Explanation

F = np.float32


def question(n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(n).astype(F) for name in ("param", "grad", "m")}


def lion(inputs: Any, beta1: float, beta2: float = 0.99, decay: float = 0.0) -> dict[str, Any]:
    param, grad, m = inputs.values()
    sign = np.sign(F(beta1) * m + F(1 - beta1) * grad)
    shrunk = param * F(1 - 1e-4 * decay)
    return {"param": shrunk - F(1e-4) * sign, "m": F(beta2) * m + F(1 - beta2) * grad}


def explained(inputs: Any, got: Any, **params: float) -> Explanation:
    return refkernels.explain("lion", inputs, got, {"weight_decay": 0.0, **params})


def first(explanation: Explanation) -> Any:
    return explanation.candidates[0].details


@pytest.mark.parametrize("beta1", [0.675, 0.3, 0.98])
def test_another_beta1_is_named_with_its_interval(beta1: float) -> None:
    inputs = question(400)
    found = explained(inputs, lion(inputs, beta1))
    assert (found.cause, found.confidence) == ("param_differs", "proven")
    low, high = first(found)["interval"]
    assert first(found)["param"] == "beta1"
    assert low < beta1 < high < low + 0.05
    assert low <= first(found)["value"] <= high
    assert f"{low:g} to {high:g}" in found.summary


def test_a_number_of_few_digits_is_named_where_the_interval_is_narrow() -> None:
    inputs = question(40_000)
    found = explained(inputs, lion(inputs, 0.5))
    assert (found.cause, found.confidence) == ("param_differs", "proven")
    low, high = first(found).pop("interval")
    assert low < 0.5 < high
    named = {"param": "beta1", "value": 0.5, "asked": 0.9}
    assert named.items() <= first(found).items()
    assert "several" not in first(found)


def test_a_flip_or_two_are_no_proof() -> None:
    inputs = question(200)
    inputs["grad"] *= F(20)  # most signs change between 0.9 and 1
    found = explained(inputs, lion(inputs, 0.895))
    assert found.cause in (None, "param_differs")
    assert found.confidence != "proven"


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_requested_beta1_is_not_blamed(decay: float) -> None:
    inputs = question(400)
    found = explained(inputs, lion(inputs, 0.9, decay=decay), weight_decay=decay)
    assert found.cause in (None, "summation_order")


def test_signs_that_flip_at_random_are_no_other_beta1() -> None:
    inputs = question(400)
    got = lion(inputs, 0.9)
    flipped = np.random.default_rng(1).permutation(400)[:40]
    got["param"][flipped] = 2 * inputs["param"][flipped] - got["param"][flipped]
    assert all(c.cause != "param_differs" for c in explained(inputs, got).candidates)


def test_exchanged_betas_keep_their_name() -> None:
    inputs = question(400)
    assert explained(inputs, lion(inputs, 0.99, 0.9)).cause == "betas_exchanged"


def test_the_new_parameter_alone_may_be_that_of_another_gradient() -> None:
    inputs = question(400)
    found = explained(inputs, {"param": lion(inputs, 0.675)["param"]})
    assert (found.cause, found.confidence) == ("param_differs", "consistent")


def test_a_gradient_times_a_number_keeps_its_name() -> None:
    inputs = question(400)
    got = lion({**inputs, "grad": 4 * inputs["grad"]}, 0.9)
    assert explained(inputs, got).cause == "gradient_multiplied"
