"""Special values that are lost or invented are named, with the inputs that account for them."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import planting
import pytest
from hunting import one_in
from numpy_kernels import attention, normal

import refkernels
from refkernels import registry
from refkernels.diagnosis.explanation import Explanation
from refkernels.diagnosis.specials import CAUSES

Array = npt.NDArray[Any]
RNG = np.random.default_rng(11)


PLANTED: list[planting.Planted] = []
of = partial(planting.Asked, PLANTED)
DY = RNG.standard_normal(300)


def named(explanation: Explanation) -> tuple[str | None, str | None]:
    return explanation.cause, explanation.confidence


def with_one(value: float, size: int = 300) -> Array:
    x = RNG.standard_normal(size)
    x[7] = value
    return x


fault = of("elu", {"x": with_one(np.nan), "dy": DY}, float)  # by comparison
fault("nan_lost", lambda x, dy: dy * np.where(x < 0, np.exp(np.minimum(x, 0)), 1), first=[[7]])
rows = RNG.standard_normal((40, 6))
rows[3, 2] = np.nan
fault = of("max", {"x": rows}, float, axis=-1)
fault("nan_lost", lambda x: np.fmax.reduce(x, axis=-1))
fault = of("mish", {"x": with_one(-np.inf)}, float)  # one argument of 300
fault.consistent("nan_of_infinity", lambda x: x * np.tanh(np.logaddexp(0.0, x)))
a, b = normal(2, 300)
a[::40] = np.inf
fault = of("hypot", {"a": a, "b": b})
fault("nan_of_infinity", lambda a, b: np.where(np.isinf(a), a - a, np.hypot(a, b)))
given = {"x": with_one(np.inf), "target": np.zeros(300)}
fault = of("bce_with_logits", given, float, reduction="none")
fault("limit_at_infinity", lambda x, target: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))
zeros = {"a": with_one(0.0), "b": with_one(0.0), "dy": DY}
fault = of("atan2", zeros, float)
square = lambda a, b: np.where(a * a + b * b > 0, a * a + b * b, 1.0)  # noqa: E731
fault("zero_where_undefined", lambda a, b, dy: (dy * b / square(a, b), -dy * a / square(a, b)))
tiny = np.float32(1e-40) * RNG.uniform(0.1, 1.0, 50).astype(np.float32)
fault = of("log", {"x": np.concatenate([tiny, RNG.uniform(0.1, 9.0, 200).astype(np.float32)])})
least, ln_2 = np.finfo(np.float32).tiny, np.log(np.float32(2.0))
fault("flush_to_zero", lambda x: ln_2 * np.log2(np.where(x < least, 0 * x, x)), inputs="x")


def added_with_flushes(a: Array, b: Array) -> Array:
    c, least = np.zeros((7, 5)), np.finfo(np.float64).tiny
    for k in range(6):
        term = a[:, k : k + 1] * b[k]
        c = c + np.where(np.abs(term) < least, 0.0, term)
        c = np.where(np.abs(c) < least, 0.0, c)
    return c


rng, root = np.random.default_rng(0), np.sqrt(np.finfo(np.float64).tiny)
factors = {"a": root * rng.standard_normal((7, 6)), "b": root * rng.standard_normal((6, 5))}
of("matmul", factors, float)("flush_to_zero", added_with_flushes)


def nan_for_no_reason(q: Array, k: Array, v: Array, mask: Array) -> Array:
    y = attention(q, k, v, mask)
    y.reshape(-1)[[5, 60, 100, 151]] = np.nan
    return y


mask = np.where(RNG.random((12, 12)) < 0.5, 0.0, -np.inf).astype(np.float32)
mask[:, 0] = 0.0  # every other row has infinities, any of which might explain a NaN
masked = {name: normal(2, 12, 8, seed=seed) for seed, name in enumerate("qkv")} | {"mask": mask}
of("attention", masked).unsure("nan_of_infinity", nan_for_no_reason)


@planting.each(PLANTED)
def test_a_special_value_that_is_lost_or_invented_is_named(planted: planting.Planted) -> None:
    planted.check()


@pytest.mark.parametrize(("value", "wrong"), [(np.nan, 0.25), (np.inf, 0.25), (-np.inf, np.nan)])
def test_a_wrong_number_elsewhere_refutes_it(value: float, wrong: float) -> None:
    """A claim accounts for every wrong element; a NaN of ordinary numbers is none of infinities."""
    x = with_one(value)
    y = np.arctan(x)
    y[[9, 100]] = wrong
    explanation = refkernels.explain("atan", {"x": x}, {"y": y})
    assert not {candidate.cause for candidate in explanation.candidates} & set(CAUSES)


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


@pytest.mark.parametrize("op", one_in(2, ["adamw", "lamb"]))
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
    inputs, params = update("lion", 16, 0.01)
    m, right = (stepped("lion", inputs, params, zero_decay)["m"] for zero_decay in (True, False))
    last = np.flatnonzero(np.isinf(inputs["param"]))[-1]
    m[last] = right[last]
    assert refkernels.explain("lion", inputs, {"m": m}, params).cause != "zero_decay"


@pytest.mark.parametrize(("op", "dtype"), one_in(2, [("adamw", "float32"), ("lamb", "float64")]))
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
