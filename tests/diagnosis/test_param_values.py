"""Another value of a param is found from an output alone, where it has few digits. Of a beta1 of
Lion, which flips signs only, those that flip bound the value that was used."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import planting
import pytest
from hunting import HUNT, one_in
from numpy_kernels import adam, lion, normal

import refkernels
from refkernels import registry
from refkernels.diagnosis.edits.solved import USUAL
from refkernels.diagnosis.variants.params import USUAL_EPS

PLANTED: list[planting.Planted] = []
of = partial(planting.Asked, PLANTED)
STEP = {
    "param": normal(200, scale=0.5),
    "grad": normal(200, seed=1),
    "m": normal(200, seed=2, scale=0.1),
}
STEP["v"] = np.abs(normal(200, seed=3, scale=0.1))
FINE = {"param": normal(400, scale=0.25), "grad": normal(400, seed=1)}
FINE |= {"m": normal(400, seed=2, scale=0.1), "v": np.abs(normal(400, seed=3, scale=0.1))}
BUFFERED = {"param": STEP["param"], "grad": STEP["grad"], "buf": normal(200, seed=4)}
ADAM = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "step": 3}
X, TARGET, LABELS = normal(40, 7), normal(40, 7, seed=1), np.arange(40) % 7


def plain(op: str, direction: Any = "forward", **params: Any) -> Any:
    """The right kernel of those params."""
    return lambda **inputs: registry.get(op).plain(direction, inputs, params, "float32")


def differs(op: str, inputs: Any, asked: dict[str, Any], name: str, *values: float) -> None:
    """Another value of a param than the one that is asked for."""
    for value in values:
        kernel = plain(op, **{**asked, name: value})
        of(op, inputs, **asked)("param_differs", kernel, param=name, value=value)


rows = {"dloss": normal(1)[0], "x": normal(16, 256), "target": np.arange(16)}
smoothed = plain("cross_entropy", "backward", label_smoothing=0.1)  # errs in all elements together
of("cross_entropy", rows)("param_differs", smoothed, value=0.1)
differs("adam", STEP, ADAM, "lr", 2e-3)
half = {"dy": normal(40).astype("f2"), "x": normal(40, 100).astype("f2"), "target": LABELS}
cooled = plain("selective_log_softmax", "backward", temperature=0.95)  # 1 leaves no constant
of("selective_log_softmax", half).consistent("param_differs", cooled, value=0.95)
differs("adam", STEP, ADAM, "beta1", 0.95, 0.0)
differs("adam", STEP, ADAM, "beta2", 0.99)
differs("huber", {"x": X, "target": TARGET}, {"delta": 1.0, "reduction": "none"}, "delta", 1.5)
differs("elu", {"x": X}, {}, "alpha", 1.67)
differs("elu", {"x": X}, {"alpha": 1.5}, "alpha", 0.0)
differs("cross_entropy", {"x": X, "target": LABELS}, {"reduction": "none"}, "label_smoothing", 0.1)
differs("sgd", BUFFERED, {"lr": 0.05, "momentum": 0.9, "step": 3}, "momentum", 0.0)
differs("rmsprop", {**BUFFERED, "accum": STEP["v"]}, {"rho": 0.9}, "momentum", 0.0)
differs("rotary", {"x": normal(18, 64), "position": np.arange(18) * 50}, {}, "base", 7500.0)
fault = of("adam", STEP, **ADAM)
fault(None, plain("adam", **ADAM))
fault("decay_unasked", plain("adam", **ADAM, weight_decay=3e-3), weight_decay=3e-3)
fault = of("adam", STEP, **ADAM, weight_decay=0.05)  # whose definition without it has a name
fault("decay_ignored", plain("adam", **ADAM, weight_decay=0.0))
fault = of("norm", {"x": normal(30, 40)})
fault("other_norm", lambda x: np.abs(x).sum(-1))
fault.never("param_differs", lambda x: np.abs(x).sum(-1))
fault = of("adam", {name: array[:2] for name, array in STEP.items()}, **ADAM)
fault.unsure("param_differs", lambda **a: adam(**a, lr=1.001e-3)[0])


def drawn(n: int, by: float = 1.0) -> dict[str, Any]:
    return {"param": normal(n), "grad": normal(n, seed=1, scale=by), "m": normal(n, seed=2)}


def flipped(**inputs: Any) -> Any:
    """One sign of ten is another's."""
    new, m = lion(**inputs)
    places = np.random.default_rng(1).permutation(400)[:40]
    new[places] = 2 * inputs["param"][places] - new[places]
    return new, m


fault = of("lion", drawn(400), weight_decay=0.0)
fault(None, lion)
for beta1 in (0.675, 0.3, 0.95):
    fault("param_differs", partial(lion, beta1=beta1), param="beta1", interval=beta1)
fault.unsure("betas_exchanged", partial(lion, beta1=0.98))  # 0.99 gives nearly the same signs
fault.never("param_differs", flipped)
fault("gradient_multiplied", lambda param, grad, m: lion(param, 4 * grad, m))
# The new parameter alone may be that of another gradient.
fault.consistent("param_differs", lambda **a: lion(**a, beta1=0.675)[0])
of("lion", drawn(400), weight_decay=0.1)(None, partial(lion, decay=0.1))
fault = of("lion", drawn(200, by=20), weight_decay=0.0)  # most signs change between 0.9 and 1
fault.unsure("param_differs", partial(lion, beta1=0.895))


@planting.each(PLANTED)
def test_another_value_of_a_param_is_proven(planted: planting.Planted) -> None:
    planted.check()


def test_a_value_is_told_beside_the_one_that_was_asked_for() -> None:
    for planted in PLANTED[:2]:
        assert f" = {planted.details['value']} instead of " in planted.explained().to_markdown()


@pytest.mark.parametrize(
    ("op", "inputs", "asked", "name"),
    [("elu", {"x": X}, {"alpha": 1.5}, "alpha"), ("adam", FINE, ADAM, "lr")],
)
def test_a_small_value_of_many_digits_is_neither_zero_nor_named(
    op: str, inputs: Any, asked: Any, name: str
) -> None:
    outputs = registry.get(op).plain("forward", inputs, {**asked, name: 1.2345678e-3}, "float32")
    first = dict([next(iter(outputs.items()))])
    cause, confidence, details = planting.named(op, inputs, first, asked)
    assert (cause, confidence) == ("param_differs", "proven")
    low, high = details["interval"]
    assert low <= 1.2345678e-3 <= high <= (1 + 2.0**-15) * low


def test_a_short_value_in_a_wide_interval_is_fitted_and_not_proven() -> None:
    """One step of a few parameters shows little of a decay: 0.249 would fit as well as 0.25."""
    few = {name: array[:16] for name, array in STEP.items()}
    asked = {"step": 7, "weight_decay": 0.0}
    outputs = plain("adamw", **{**asked, "weight_decay": 0.25})(**few)
    explanation = refkernels.explain("adamw", few, outputs, asked)
    assert (explanation.cause, explanation.confidence) == ("decay_unasked", "consistent")
    details = explanation.candidates[0].details
    low, high = details["interval"]
    assert (low < 0.25 < high, details["fitted"]) == (True, True)
    assert f"{low:g} to {high:g} (these data cannot tell which)" in explanation.summary


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
    for _ in range(2 * HUNT if HUNT > 1 else 1):
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
                # Of an interval that a usual value is in as well, that is the name.
                named &= not any(0 < abs(usual - used) < usual / 128 for usual in USUAL)
                assert not named or details[details["solved"]] == pytest.approx(used, rel=1e-12)


@pytest.mark.parametrize(("n", "beta1"), [(400, 0.675), (40_000, 0.5)])
def test_a_number_of_few_digits_is_named_where_the_interval_is_narrow(n: int, beta1: float) -> None:
    inputs = drawn(n)
    outputs = dict(zip(("param", "m"), lion(**inputs, beta1=beta1), strict=True))
    found = refkernels.explain("lion", inputs, outputs, {"weight_decay": 0.0})
    details = found.candidates[0].details
    low, high = details["interval"]
    assert low < beta1 < high < low + 0.05
    assert low <= details["value"] <= high
    assert ("several" in details) == (n == 400)
    assert n > 400 or f"{low:g} to {high:g}" in found.summary
    assert n == 400 or (details["value"], details["asked"]) == (0.5, 0.9)
