"""Keras's optimizers subtract weight decay before the step, and add eps inside the square root. The
sums of squares alone cannot tell this from decay that is left out."""

from collections.abc import Callable

import numpy as np
import pytest

import refkernels
from refkernels import registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.diagnosis.explanation import Explanation

Arrays = dict[str, np.ndarray]
LR, DECAY, EPS, RHO = (np.float32(value) for value in (0.01, 0.1, 1e-3, 0.99))


def _inputs(op: str) -> Arrays:
    rng = np.random.default_rng(3)
    param, grad = rng.standard_normal((2, 300)).astype(np.float32)
    return {"param": param, "grad": grad, "accum": np.square(grad) + np.float32(0.1)}


def _keras(op: str, inputs: Arrays, decayed: Callable[[np.ndarray], np.ndarray]) -> Arrays:
    squares = np.square(inputs["grad"])
    accum = inputs["accum"]
    accum = RHO * accum + (1 - RHO) * squares if op == "rmsprop" else accum + squares
    step = LR * inputs["grad"] / np.sqrt(accum + EPS)
    return {"param": decayed(inputs["param"]) - step, "accum": accum}


def _explained(op: str, decayed: Callable[[np.ndarray], np.ndarray]) -> Explanation:
    params = {"lr": float(LR), "eps": float(EPS), "weight_decay": float(DECAY)}
    if op == "rmsprop":
        params["rho"] = float(RHO)
    inputs = _inputs(op)
    assert set(inputs) <= set(registry.get(op).takes("forward"))
    return refkernels.explain(op, inputs, _keras(op, inputs, decayed), params=params)


@pytest.mark.parametrize("op", ["rmsprop", "adagrad"])
def test_decay_apart_from_the_step_is_proven_by_all_outputs_together(op: str) -> None:
    explanation = _explained(op, lambda param: param - param * DECAY * LR)
    assert (explanation.cause, explanation.confidence) == ("decay_decoupled", "proven")
    assert explanation.candidates[0].details == {"with": "eps_inside_sqrt"}
    ignored = {
        candidate.confidence
        for candidate in explanation.candidates
        if candidate.cause == "decay_ignored"
    }
    assert ignored - {None} == {"consistent"}


def test_bits_of_two_moments_prove_nothing_that_the_param_refutes() -> None:
    """Adam's moments lack a decay that the step has in a way that no hypothesis has."""
    rng = np.random.default_rng(4)
    param, grad, m = rng.standard_normal((3, 48)).astype(np.float32)
    inputs = {"param": param, "grad": grad, "m": m, "v": np.square(m[::-1])}
    plain = registry.get("adam").plain
    outputs = plain("forward", inputs, {**registry.get("adam").params, "step": 3}, BINARY32)
    outputs["param"] = outputs["param"] - np.float32(1e-3) * np.sin(np.float32(9.0) * grad * param)
    explanation = refkernels.explain("adam", inputs, outputs, {"step": 3, "weight_decay": 0.1})
    assert explanation.cause in ("decay_ignored", "decay_decoupled")
    assert explanation.confidence == "consistent"
