"""Another value of a param is found from an output alone, where it has few digits. Of a beta1 of
Lion, which flips signs only, those that flip bound the value that was used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hunting import HUNT, one_in

import refkernels
from refkernels import registry
from refkernels.diagnosis.explanation import Explanation
from refkernels.diagnosis.variants.params import USUAL_EPS

RNG = np.random.default_rng(11)
F = np.float32


def numbers(*shape: int, scale: float = 1.0) -> Any:
    return (scale * RNG.standard_normal(shape)).astype(F)


STEP = {
    "param": numbers(200), "grad": numbers(200), "m": numbers(200, scale=0.1),
    "v": np.abs(numbers(200, scale=0.1)),
}  # fmt: skip
ADAM = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "step": 3}
X, TARGET = numbers(40, 7), numbers(40, 7)
LABELS = RNG.integers(0, 7, 40)


@pytest.mark.parametrize(
    ("op", "inputs", "params", "name", "value"),
    [
        ("adam", STEP, ADAM, "lr", 2e-3),
        ("adam", STEP, ADAM, "beta1", 0.95),
        ("adam", STEP, ADAM, "beta2", 0.99),
        ("huber", {"x": X, "target": TARGET}, {"delta": 1.0}, "delta", 1.5),
        ("elu", {"x": X}, {}, "alpha", 1.67),
        ("cross_entropy", {"x": X, "target": LABELS}, {}, "label_smoothing", 0.1),
    ],
)
def test_a_param_s_other_value_is_proven(
    op: str, inputs: Any, params: Any, name: str, value: float
) -> None:
    params = params if op in ("adam", "elu") else {**params, "reduction": "none"}
    outputs = registry.get(op).plain("forward", inputs, {**params, name: value}, "float32")
    explanation = refkernels.explain(op, inputs, outputs, params)
    assert (explanation.cause, explanation.confidence) == ("param_differs", "proven")
    details = explanation.candidates[0].details
    assert (details["param"], details["value"]) == (name, value)
    assert f" = {value} instead of " in explanation.to_markdown()


SGD = {"lr": 0.05, "momentum": 0.9, "step": 3}
BUFFERED = {"param": STEP["param"], "grad": STEP["grad"], "buf": numbers(200)}


@pytest.mark.parametrize(
    ("op", "inputs", "params", "name"),
    [
        ("adam", STEP, ADAM, "beta1"),
        ("sgd", BUFFERED, SGD, "momentum"),
        ("rmsprop", {**BUFFERED, "accum": np.square(numbers(200))}, {"rho": 0.9}, "momentum"),
        ("elu", {"x": X}, {"alpha": 1.5}, "alpha"),
    ],
)
def test_a_param_of_zero_in_place_of_its_value_is_proven(
    op: str, inputs: Any, params: Any, name: str
) -> None:
    outputs = registry.get(op).plain("forward", inputs, {**params, name: 0.0}, "float32")
    explanation = refkernels.explain(op, inputs, outputs, params)
    assert (explanation.cause, explanation.confidence) == ("param_differs", "proven")
    details = explanation.candidates[0].details
    assert (details["param"], details["value"]) == (name, 0.0)


def test_a_definition_without_the_param_names_it_better() -> None:
    asked = {**ADAM, "weight_decay": 0.05}
    outputs = registry.get("adam").plain("forward", STEP, {**asked, "weight_decay": 0.0}, "float32")
    explanation = refkernels.explain("adam", STEP, outputs, asked)
    assert (explanation.cause, explanation.confidence) == ("decay_ignored", "proven")


def assert_interval(explanation: Any, value: float) -> None:
    """What is proven is another value of the param, in an interval that is tight."""
    assert (explanation.cause, explanation.confidence) == ("param_differs", "proven")
    low, high = explanation.candidates[0].details["interval"]
    assert low <= value <= high <= (1 + 2.0**-15) * low


def test_a_decay_that_was_not_requested_is_named_with_any_value() -> None:
    outputs = registry.get("adam").plain("forward", STEP, {**ADAM, "weight_decay": 3e-3}, "float32")
    explanation = refkernels.explain("adam", STEP, outputs, ADAM)
    assert (explanation.cause, explanation.confidence) == ("decay_unasked", "proven")
    assert explanation.candidates[0].details["weight_decay"] == 3e-3


@pytest.mark.parametrize(
    ("op", "inputs", "asked", "name"),
    [("elu", {"x": X}, {"alpha": 1.5}, "alpha"), ("adam", STEP, ADAM, "lr")],
)
def test_a_small_value_of_many_digits_is_neither_zero_nor_named(
    op: str, inputs: Any, asked: Any, name: str
) -> None:
    outputs = registry.get(op).plain("forward", inputs, {**asked, name: 1.2345678e-3}, "float32")
    first = dict([next(iter(outputs.items()))])
    assert_interval(refkernels.explain(op, inputs, first, asked), 1.2345678e-3)


def test_a_short_value_in_a_wide_interval_is_fitted_and_not_proven() -> None:
    """One step of a few parameters shows little of a decay: 0.249 would fit as well as 0.25."""
    few = {name: array[:16] for name, array in STEP.items()}
    asked = {"step": 7, "weight_decay": 0.0}
    given = {**asked, "weight_decay": 0.25}
    outputs = registry.get("adamw").plain("forward", few, given, "float32")
    explanation = refkernels.explain("adamw", few, outputs, asked)
    assert (explanation.cause, explanation.confidence) == ("decay_unasked", "consistent")
    details = explanation.candidates[0].details
    low, high = details["interval"]
    assert (low < 0.25 < high, details["fitted"]) == (True, True)
    assert f"{low:g} to {high:g} (these data cannot tell which)" in explanation.summary


def test_the_base_of_a_rotation_is_known_to_what_its_logarithm_is_rounded_to() -> None:
    inputs = {"x": numbers(18, 64), "position": np.arange(18) * 50}
    outputs = registry.get("rotary").plain("forward", inputs, {"base": 7500.0}, "float32")
    explanation = refkernels.explain("rotary", inputs, outputs)
    assert (explanation.cause, explanation.confidence) == ("param_differs", "proven")
    assert explanation.candidates[0].details["value"] == 7500.0


def test_a_definition_with_a_name_of_its_own_goes_before_a_value() -> None:
    x = numbers(30, 40)
    explanation = refkernels.explain("norm", {"x": x}, {"y": np.abs(x).sum(-1)})
    assert (explanation.cause, explanation.confidence) == ("other_norm", "proven")
    assert "param_differs" not in {c.cause for c in explanation.candidates}


def test_a_right_kernel_and_a_few_elements_are_not_blamed() -> None:
    outputs = registry.get("adam").plain("forward", STEP, ADAM, "float32")
    assert refkernels.explain("adam", STEP, outputs, ADAM).cause in (None, "summation_order")
    two = {name: array[:2] for name, array in STEP.items()}
    near = registry.get("adam").plain("forward", two, {**ADAM, "lr": 1.001e-3}, "float32")
    explanation = refkernels.explain("adam", two, {"param": near["param"]}, ADAM)
    assert explanation.confidence != "proven"


WITH_PARAMS = [
    (name, param)
    for name in registry.ops()
    for param, default in registry.get(name).params.items()
    if isinstance(default, float) and param != "norm_type"  # 2 or infinity
]


@pytest.mark.parametrize(("name", "param"), one_in(6, WITH_PARAMS))
def test_what_is_proven_of_a_param_holds_the_value_that_was_used(name: str, param: str) -> None:
    """Drawn cases, directions and formats. A value has a name only if it is the right one."""
    op = registry.get(name)
    assert op.definition is not None
    rng = np.random.default_rng([WITH_PARAMS.index((name, param)), 1])
    small = [
        case for case in op.cases() if sum(map(np.size, case.build("float32")[0].values())) < 999
    ]
    for _ in range(2 * HUNT):
        direction = rng.choice(op.directions)
        format = str(rng.choice(["float16", "bfloat16", "float32", "float64"]))
        arrays, params = small[rng.integers(len(small))].build(format)
        inputs = {key: arrays[key] for key in op.takes(direction) if key in arrays}
        asked = {**op.params, **params}[param]
        used = asked * rng.choice([0.1, 0.9, 1.01, 1.5]) if asked else rng.choice([0.1, 1e-3])
        used = float(rng.choice(USUAL_EPS) if param == "eps" else used)
        if used == asked or used not in op.definition.domain(param):
            continue
        with np.errstate(all="ignore"):
            try:
                outputs = op.plain(direction, inputs, {**op.params, **params, param: used}, format)
            except ValueError:  # no such value beside these inputs: a z-loss with weights
                continue
        explanation = refkernels.explain(op, inputs, outputs, params, direction=direction)
        for candidate in explanation.candidates:
            details = candidate.details
            if candidate.confidence in ("proven", "matched") and "solved" in details:
                low, high = details["interval"]
                assert details.get("param", details["solved"]) == param
                assert low <= used <= high
                named = not {"several", "fitted"} & details.keys()
                assert not named or details[details["solved"]] == pytest.approx(used, rel=1e-12)


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
    assert found.cause in (None, "param_differs", "corrupted_elements")
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


def test_the_new_parameter_alone_may_be_that_of_another_gradient() -> None:
    inputs = question(400)
    found = explained(inputs, {"param": lion(inputs, 0.675)["param"]})
    assert (found.cause, found.confidence) == ("param_differs", "consistent")


def test_a_gradient_times_a_number_keeps_its_name() -> None:
    inputs = question(400)
    got = lion({**inputs, "grad": 4 * inputs["grad"]}, 0.9)
    assert explained(inputs, got).cause == "gradient_multiplied"
