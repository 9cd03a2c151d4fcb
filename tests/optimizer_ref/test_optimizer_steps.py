"""Optimizers' steps: bounds, and what wrong ones are called."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hunting import HUNT

import refkernels
from refkernels import optimizer_ref, registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.op import Op
from refkernels.runs.measurement.plan import select

ADAM = registry.get("adam")
W, G = (np.float32([x]) for x in (0.7, -0.3))


def test_an_op_without_a_backward_pass_says_so_and_is_planned_forward_alone() -> None:
    assert {unit.direction for unit in select(["adam"]).units} == {"forward"}
    inputs = {"param": W, "grad": G}
    with pytest.raises(ValueError, match="sgd has no backward pass: ask for its forward pass"):
        refkernels.explain("sgd", inputs, W, None, "backward")
    assert registry.get("sgd").names("backward") == ()


@pytest.mark.parametrize(
    "op",
    [op for op in optimizer_ref.OPS if len(op.definition.of("forward").forms) > 1],
    ids=lambda op: op.name,
)
def test_the_bound_of_any_mixture_is_that_of_every_form(op: Op) -> None:
    """But for the bound's own roundings."""
    kept = op.cases()
    for case in (kept[0], kept[len(kept) // 2], kept[-1]):
        inputs, params = case.build("float32")
        bound = op.bound("forward", inputs, params, BINARY32)
        forms = op.forms("forward", inputs, params, BINARY32)
        for of_form in forms.values():
            for name, array in of_form.items():
                assert np.all(bound[name] * (1 + 2.0**-40) >= array)


def which(op: str, formula: Any, names: tuple[str, ...], **params: Any) -> Any:
    """What explain calls a step taken by a formula of NumPy's, in float32, of 300 parameters."""
    rng = np.random.default_rng(3)
    state = rng.standard_normal((len(names), 300)).astype(np.float32) * np.float32(1e-7)
    inputs = dict(
        zip(names, np.where(np.array(names)[:, None] == "v", state**2, state), strict=True)
    )
    with np.errstate(all="ignore"):
        after = formula(**inputs)
    return refkernels.explain(op, inputs, {"param": after.astype(np.float32)}, params)


def test_which_adam_is_this_has_an_answer() -> None:
    def hat(param: Any, grad: Any, m: Any, v: Any) -> Any:
        first, second = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad.astype(float) ** 2
        rate = 1e-3 * np.sqrt(1 - 0.999**5) / (1 - 0.9**5)
        return param - rate * first / (np.sqrt(second) + 1e-8)

    explanation = which("adam", hat, ("param", "grad", "m", "v"), step=5)
    assert (explanation.cause, explanation.confidence) == ("eps_hat", "proven")


@pytest.mark.parametrize("decay", [0.01, 2e-3, 5e-4])
def test_an_unrequested_decay_is_named(decay: float) -> None:
    """1 - lr decay, in float32, may be half an ulp off in all elements."""
    rng = np.random.default_rng(5)
    before = {name: rng.standard_normal(300).astype(np.float32) for name in ("param", "grad")}
    m, v = np.zeros((2, 300), np.float32)
    g = before["grad"].astype(float)
    after = before["param"] * (1 - 1e-3 * decay) - 1e-3 * g / (abs(g) + 1e-8)
    inputs, params = {**before, "m": m, "v": v}, {"step": 1, "weight_decay": 0.0}
    explanation = refkernels.explain("adamw", inputs, {"param": after.astype(np.float32)}, params)
    details = explanation.candidates[0].details
    assert (explanation.cause, details["weight_decay"]) == ("decay_unasked", decay)
    assert explanation.confidence == ("consistent" if decay == 2e-3 else "proven")  # by its name
    low, high = details["interval"]
    assert low <= decay <= high <= low + 1e-4


def drawn(seed: int) -> dict[str, Any]:
    numbers = np.random.default_rng(seed).standard_normal((3, 300)).astype(np.float32)
    return dict(zip(("param", "grad", "buf"), numbers, strict=True))


def test_an_unrequested_dampening_is_named() -> None:
    inputs = drawn(seed=6)
    w, g, b = (array.astype(float) for array in inputs.values())
    after = {"param": w - 0.01 * (0.9 * b + 0.9 * g), "buf": 0.9 * b + 0.9 * g}
    got = {name: array.astype(np.float32) for name, array in after.items()}
    explanation = refkernels.explain("sgd", inputs, got, {"step": 5})
    assert (explanation.cause, explanation.confidence) == ("dampening_unasked", "proven")
    assert explanation.candidates[0].details["dampening"] == 0.1


@pytest.mark.parametrize("base", [0.9, 0.999, 1 - 2**-24, 0.5, 1.0, 0.0, 1.5, -1.0, -0.9, 1e-30])
def test_powers_in_float32_are_those_of_a_loop(base):
    for n in (1, 2, 7, 1000, 2**16, 2**16 + 1, 2**17 + 3):
        with np.errstate(all="ignore"):
            loop = np.full(n, base, np.float32).cumprod(dtype=np.float32)[-1]
            assert optimizer_ref._power_in_float32(base, n) == loop, n


NEAR_1 = 1 - 2 ** -(24 if HUNT > 1 else 20)  # 10^9 steps to a power of 0 take seconds


@pytest.mark.parametrize("beta", [0.9, NEAR_1, 0.5, 0.0, 1e-30])
@pytest.mark.parametrize("step", [10**6, 2**53 + 1])
def test_a_late_step_is_answered_and_its_plain_algorithm_keeps_to_the_bound(beta, step):
    inputs = {name: np.float32([0.5, 1, 3]) for name in ("param", "grad", "m", "v")}
    question = "forward", inputs, {"step": step, "beta1": beta}
    exact, bound = (ADAM.evaluate(*question)["param"], ADAM.bound(*question, BINARY32)["param"])
    plain = ADAM.plain(*question, BINARY32)["param"].astype(np.float64)
    bounded = np.isfinite(bound) & np.isfinite(exact.radius)
    assert np.all(
        np.abs(plain[bounded] - exact.hi[bounded]) <= bound[bounded] + exact.radius[bounded]
    )
    assert bounded.all() or step > 10**6


def test_keras_nesterov_is_a_rate_in_the_momentum() -> None:
    """v' = mu v - lr g and w + mu v' - lr g, as Sutskever's look-ahead is written there."""
    inputs = drawn(seed=7)
    w, g, b = (array.astype(float) for array in inputs.values())
    velocity = 0.9 * b - 0.01 * g
    after = {"param": w + 0.9 * velocity - 0.01 * g, "buf": velocity}
    got = {name: array.astype(np.float32) for name, array in after.items()}
    explanation = refkernels.explain("momentum", inputs, got, {"nesterov": True})
    assert (explanation.cause, explanation.confidence) == ("lr_in_momentum", "proven")


def test_updates_that_vanish_in_a_narrow_format_are_counted() -> None:
    rng = np.random.default_rng(4)
    param = rng.standard_normal(203).astype(ml_dtypes.bfloat16)
    update = np.float32(2.0**-10) * rng.standard_normal(203).astype(np.float32)
    update[::7] = 0.0
    moved = (param.astype(np.float64) + update).astype(ml_dtypes.bfloat16)
    lost = np.sum((moved == param) & (update != 0))
    assert optimizer_ref.lost_updates(param, update) == lost > 20
    assert optimizer_ref.lost_updates(param, update, "float32") == 0
