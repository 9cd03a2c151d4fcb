"""Special values that are lost or invented are named, with the inputs that account for them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunting import one_in

import refkernels
from refkernels import registry
from refkernels.diagnosis.explanation import Explanation
from refkernels.diagnosis.specials import CAUSES

Array = npt.NDArray[Any]
RNG = np.random.default_rng(11)


def named(explanation: Explanation) -> tuple[str | None, str | None]:
    return explanation.cause, explanation.confidence


def with_one(value: float, size: int = 300) -> Array:
    x = RNG.standard_normal(size)
    x[7] = value
    return x


def test_a_slope_by_comparison_loses_nan() -> None:
    x, dy = with_one(np.nan), RNG.standard_normal(300)
    with np.errstate(invalid="ignore"):
        dx = dy * np.where(x < 0, np.exp(np.minimum(x, 0)), 1.0)
    explanation = refkernels.explain("elu", {"x": x, "dy": dy}, {"dx": dx}, {}, "backward")
    assert named(explanation) == ("nan_lost", "proven")
    assert explanation.candidates[0].details["first"] == [[7]]


def test_a_maximum_by_comparison_loses_the_nan_of_its_row() -> None:
    x = RNG.standard_normal((40, 6))
    x[3, 2] = np.nan
    y = np.fmax.reduce(x, axis=-1)
    explanation = refkernels.explain("max", {"x": x}, {"y": y}, {"axis": -1})
    assert named(explanation) == ("nan_lost", "proven")


def test_minus_infinity_times_zero_is_nan() -> None:
    x = with_one(-np.inf)
    with np.errstate(invalid="ignore"):
        y = x * np.tanh(np.logaddexp(0.0, x))
    explanation = refkernels.explain("mish", {"x": x}, {"y": y})
    assert named(explanation) == ("nan_of_infinity", "consistent")  # one argument of 300


def test_a_nan_beside_each_of_several_infinities_is_proven() -> None:
    a, b = RNG.standard_normal((2, 300)).astype(np.float32)
    a[::40] = np.inf
    with np.errstate(invalid="ignore"):
        y = np.where(np.isinf(a), a - a, np.hypot(a, b))
    explanation = refkernels.explain("hypot", {"a": a, "b": b}, {"y": y})
    assert named(explanation) == ("nan_of_infinity", "proven")


def test_the_limit_of_an_undefined_result_is_told() -> None:
    x, target = with_one(np.inf), np.zeros(300)
    loss = np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
    inputs = {"x": x, "target": target}
    explanation = refkernels.explain(
        "bce_with_logits", inputs, {"loss": loss}, {"reduction": "none"}
    )
    assert explanation.verdict == "special_value_mismatch"
    assert named(explanation) == ("limit_at_infinity", "proven")


def test_a_gradient_of_zero_where_none_is_defined_is_told() -> None:
    a, b, dy = (RNG.standard_normal(300) for _ in range(3))
    a[7], b[7] = 0.0, 0.0
    square = a * a + b * b
    square[7] = 1.0
    inputs, outputs = {"a": a, "b": b, "dy": dy}, {"da": dy * b / square, "db": -dy * a / square}
    explanation = refkernels.explain("atan2", inputs, outputs, {}, "backward")
    assert named(explanation) == ("zero_where_undefined", "proven")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_wrong_number_elsewhere_refutes_it(value: float) -> None:
    """A claim accounts for every wrong element."""
    x = with_one(value)
    y = np.arctan(x)
    y[7], y[9] = 0.25, 0.25
    explanation = refkernels.explain("atan", {"x": x}, {"y": y})
    assert not {candidate.cause for candidate in explanation.candidates} & set(CAUSES)


def test_a_nan_of_ordinary_numbers_is_not_put_down_to_an_infinity_elsewhere() -> None:
    x = with_one(-np.inf)
    y = np.arctan(x)
    y[100] = np.nan
    explanation = refkernels.explain("atan", {"x": x}, {"y": y})
    assert not {candidate.cause for candidate in explanation.candidates} & set(CAUSES)


def test_subnormal_inputs_that_are_read_as_zero_are_named() -> None:
    tiny = np.float32(1e-40) * RNG.uniform(0.1, 1.0, 50).astype(np.float32)
    x = np.concatenate([tiny, RNG.uniform(0.1, 9.0, 200).astype(np.float32)])
    with np.errstate(divide="ignore"):
        y = np.log(np.where(x < np.finfo(np.float32).tiny, 0.0, x).astype(np.float64))
    explanation = refkernels.explain("log", {"x": x}, {"y": y.astype(np.float32)})
    assert named(explanation) == ("flush_to_zero", "proven")
    assert explanation.candidates[0].details["inputs"] == "x"


def test_a_product_whose_terms_are_flushed_is_named() -> None:
    tiny = float(np.finfo(np.float64).tiny)
    a = RNG.standard_normal((7, 6)) * np.sqrt(tiny)
    b = RNG.standard_normal((6, 5)) * np.sqrt(tiny)
    c = np.zeros((7, 5))
    for k in range(6):
        term = a[:, k : k + 1] * b[k]
        c = c + np.where(np.abs(term) < tiny, 0.0, term)
        c = np.where(np.abs(c) < tiny, 0.0, c)
    assert np.any(c != 0.0)
    explanation = refkernels.explain("matmul", {"a": a, "b": b}, {"c": c})
    assert explanation.verdict == "exceeds_bound"
    assert named(explanation) == ("flush_to_zero", "proven")


def test_a_nan_that_any_infinity_might_explain_is_not_proven() -> None:
    """Every row of the mask has infinities; four elements are NaN for no reason."""
    q, k, v = RNG.standard_normal((3, 2, 12, 8)).astype(np.float32)
    mask = np.where(RNG.random((12, 12)) < 0.5, 0.0, -np.inf).astype(np.float32)
    mask[:, 0] = 0.0
    inputs = {"q": q, "k": k, "v": v, "mask": mask}
    y = registry.get("attention").plain("forward", inputs, {}, "float32")["y"]
    y.reshape(-1)[[5, 60, 100, 151]] = np.nan
    explanation = refkernels.explain("attention", inputs, {"y": y})
    assert named(explanation) != ("nan_of_infinity", "proven")


def test_a_nan_at_zero_alone_is_answered() -> None:
    x = np.concatenate([RNG.standard_normal(60), [0.0]]).astype(np.float32)
    y = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)
    y[-1] = np.nan
    assert refkernels.explain("sigmoid", {"x": x}, {"y": y}).verdict == "special_value_mismatch"


# --- a decay of 0 ---------------------------------------------------------------------------------

STATES = {"sgd": "buf", "adam": "m v", "adamw": "m v", "lamb": "m v", "adagrad": "accum",
          "rmsprop": "accum", "lion": "m"}  # fmt: skip


def update(op: str, infinite: int, decay: float, dtype: str = "float32") -> Any:
    """An optimizer's question with some infinite parameters."""
    names = "param", "grad", *STATES[op].split()
    inputs = {name: RNG.standard_normal(200).astype(dtype) for name in names}
    for name in {"v", "accum"} & inputs.keys():
        inputs[name] = np.square(inputs[name])
    inputs["param"][RNG.permutation(200)[:infinite]] = np.inf
    known = registry.get(op).params
    return inputs, {**known, "weight_decay": decay, **({"step": 3} if "step" in known else {})}


def stepped(op: str, inputs: Any, params: Any, zero_decay: bool) -> Any:
    with np.errstate(invalid="ignore"):
        grad = inputs["grad"] + 0 * inputs["param"] if zero_decay else inputs["grad"]
    dtype = inputs["param"].dtype.name
    return registry.get(op).plain("forward", {**inputs, "grad": grad}, params, dtype)


@pytest.mark.parametrize("op", one_in(2, STATES))
def test_a_decay_of_0_that_multiplies_the_parameter_is_named(op: str) -> None:
    inputs, params = update(op, 16, 0.0)
    found = refkernels.explain(op, inputs, stepped(op, inputs, params, True), params)
    assert named(found) == ("zero_decay", "proven")
    right = refkernels.explain(op, inputs, stepped(op, inputs, params, False), params)
    assert right.cause in (None, "summation_order")


@pytest.mark.parametrize("op", ["adamw", "lamb"])
def test_a_second_decay_of_0_beside_a_decoupled_one_is_named(op: str) -> None:
    inputs, params = update(op, 1, 0.01)
    found = refkernels.explain(op, inputs, stepped(op, inputs, params, True), params)
    assert named(found) == ("zero_decay", "consistent")  # one place says little


def test_an_infinite_parameter_that_becomes_nan_has_two_reasons() -> None:
    inputs, params = update("lion", 16, 0.0)
    got = stepped("lion", inputs, params, False)
    got["param"] = np.where(np.isinf(inputs["param"]), np.float32(np.nan), got["param"])
    found = refkernels.explain("lion", inputs, got, params)
    of_param = [c for c in found.candidates if not c.ruled_out and c.output == "param"]
    assert {c.cause for c in of_param} == {"zero_decay", "nan_of_infinity"}
    assert {c.confidence for c in of_param} == {"consistent"}


def test_some_nan_of_infinite_parameters_are_no_decay_of_0() -> None:
    inputs, params = update("adamw", 16, 0.01)
    got = stepped("adamw", inputs, params, True)
    right = stepped("adamw", inputs, params, False)
    last = np.flatnonzero(np.isinf(inputs["param"]))[-1]
    for name in ("m", "v"):
        got[name][last] = right[name][last]
    found = refkernels.explain("adamw", inputs, {name: got[name] for name in ("m", "v")}, params)
    assert found.cause != "zero_decay"


@pytest.mark.parametrize(("op", "dtype"), [("adamw", "float32"), ("lamb", "float64")])
def test_oneflow_multiplies_the_parameter_by_a_decay_of_0(
    session_for: Any, op: str, dtype: str
) -> None:
    inputs, params = update(op, 16, 0.01, dtype)
    reply = session_for("oneflow").run(op, "forward", inputs, params)
    assert reply.ok, reply.reason
    found = refkernels.explain(op, inputs, reply.outputs, params)
    assert found.cause == "float32_hyperparameters"
    assert found.candidates[0].details["with"] == "zero_decay"
    assert found.confidence == "proven"  # by m and v, which no norm couples, in LAMB too
