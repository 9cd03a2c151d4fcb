"""Advice is tested or not given: it is followed here, and helps, or the cause links the page of
those who make the switch."""

import itertools
import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunting import one_in, one_way
from numpy_kernels import gelu_in_steps, normal

import refkernels
from refkernels import registry
from refkernels.diagnosis.edits import names
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.fit import fit_to_truth
from refkernels.reporting.words.causes import CAUSES

Array = npt.NDArray[Any]
F32 = np.float32
ERFC = np.vectorize(math.erfc, otypes=[np.float64])
SWITCH = re.compile(r"torch\.|jax\.|NVIDIA_|\w+ ?= ?\w+|\w+\(\w*'\w+'\)")
# What stands in a fault's place is a form of its op, which tests/ops holds to its bound.
FORMS = names.causes() | {
    fault.cause for op in registry.ops().values() if op.formulas for fault in op.formulas.faults
}
TESTED = {"naive_variance", "folded_normalisation", "padded_variance", "eps_rounded"}


def over_plain(op: str, inputs: dict[str, Array], y: Array) -> float:
    problem, answers = one_kernel(op, inputs, {"y": y})
    fit = fit_to_truth(problem, "y", answers["y"])
    assert fit is not None
    return fit.over_plain


def test_every_switch_that_advice_names_is_documented_or_tested_here() -> None:
    naming = {name for name, cause in CAUSES.items() if SWITCH.search(cause["todo"]["en"])}
    assert len(naming) >= 5
    assert naming - TESTED - FORMS <= {name for name, cause in CAUSES.items() if "sources" in cause}


def test_advice_turns_off_only_what_was_seen_to_help() -> None:
    for cause in CAUSES.values():
        assert "fast math" not in cause["todo"]["en"]
        assert "快速数学" not in cause["todo"]["zh"]


def naive(x: Any) -> Any:
    """LayerNorm by the mean of the squares."""
    mean = x.mean(-1, keepdims=True)
    var = np.maximum(np.square(x).mean(-1, keepdims=True) - mean * mean, 0)
    return (x - mean) / np.sqrt(var + F32(1e-5))


def folded(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(np.square(x - mean).mean(-1, keepdims=True) + F32(1e-5))
    return x * rstd - mean * rstd


@pytest.mark.parametrize("kernel", [naive, folded])
def test_subtracting_a_rough_mean_first_helps_a_variance_or_a_folding_that_cancels(
    kernel: Any,
) -> None:
    x = normal(24, 64) + F32(3000)
    rough = x.mean(axis=1, keepdims=True).round()
    bad, better = (over_plain("layernorm", {"x": x}, kernel(given)) for given in (x, x - rough))
    assert bad > 4.0 * better


def test_a_masked_difference_does_not_count_the_padding() -> None:
    inputs = {"x": normal(24, 100) + 1, "weight": normal(100, seed=1), "bias": normal(100, seed=2)}
    x = np.pad(inputs["x"], ((0, 0), (0, 28)))
    mask = np.arange(128) < 100
    mean = x.sum(axis=1, keepdims=True) / F32(100)
    causes = []
    for centred in (x - mean, np.where(mask, x - mean, F32(0))):
        rstd = 1 / np.sqrt(np.square(centred).sum(axis=1, keepdims=True) / F32(100) + F32(1e-5))
        y = (centred * rstd)[:, :100] * inputs["weight"] + inputs["bias"]
        causes.append(refkernels.explain("layernorm", inputs, {"y": y.astype(F32)}).cause)
    assert causes[0] == "padded_variance"
    assert causes[1] in (None, "summation_order")


def test_arguments_reduced_in_a_wider_format_are_right() -> None:
    x = np.random.default_rng(3).uniform(-3e4, 3e4, 2000).astype(F32)
    wide = np.remainder(x.astype(np.float64), 2 * np.pi).astype(F32)
    bad, better = (np.sin(argument.astype(F32)) for argument in (x % F32(2 * np.pi), wide))
    right = np.sin(x.astype(np.float64))
    assert np.abs(bad - right).max() > 100 * np.abs(better - right).max()


def test_erfc_and_a_sigmoid_in_a_wider_format_do_not_cancel() -> None:
    x = np.random.default_rng(4).uniform(-9, -1, 500).astype(F32)
    wide = x.astype(np.float64)
    gelu = (wide * ERFC(-wide * np.sqrt(0.5)) / 2).astype(F32)
    z = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    gelu_tanh = (wide * np.exp(2 * z) / (1 + np.exp(2 * z))).astype(F32)
    for op, y in (("gelu", gelu), ("gelu_tanh", gelu_tanh)):
        assert refkernels.explain(op, {"x": x}, {"y": y}).verdict in (
            "rounding",
            "correctly_rounded",
        )


FRAMEWORKS = ("torch", "paddle", "oneflow", "mindspore")


@pytest.mark.parametrize(
    ("name", "op"), one_way(itertools.product(FRAMEWORKS, ("gelu", "gelu_tanh")))
)
def test_the_lost_digits_of_gelu_are_the_cancellation_s_on_any_inputs(
    name: str, op: str, session_for: Any
) -> None:
    session = session_for(name)
    cause = {"gelu": "erf_cancellation", "gelu_tanh": "tanh_cancellation"}[op]
    tried = 0
    rng = np.random.default_rng(0)
    drawn = [
        rng.standard_normal(1000),
        rng.normal(0, 3, 1000),
        rng.uniform(-10, -2, 200),
        rng.uniform(-30, 30, 1000),
    ]
    first = FRAMEWORKS.index(name) if op == "gelu" else 3 - FRAMEWORKS.index(name)
    for x in one_in(4, drawn[first:] + drawn[:first]):
        inputs = {"x": x.astype(F32)}
        reply = session.run(op, "forward", inputs, {})
        assert reply.ok, reply.reason
        found = refkernels.explain(op, inputs, reply.outputs)
        written = found.cause == "unstable_identity" and found.confidence == "proven"
        assert found.cause == cause or written  # to the bit: how it writes tanh
        tried += 1
    assert tried >= 1


@pytest.mark.parametrize("seed", one_in(3, range(3)))
@pytest.mark.parametrize("size", [60, 1000])
def test_the_lost_digits_of_an_emulated_gelu_are_the_cancellation_s(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    for x in (rng.standard_normal(size) - 1.5, rng.normal(0, 3, size), rng.uniform(-9, -3, size)):
        inputs = {"x": x.astype(F32)}
        y = gelu_in_steps(inputs["x"])
        assert refkernels.explain("gelu", inputs, {"y": y}).cause == "erf_cancellation"


def test_flush_denormal_is_what_flushes_subnormals(session_for: Any) -> None:
    x = (np.random.default_rng(5).standard_normal(200) * 2.0**-130).astype(F32)
    causes = {}
    for setting in ("1", "0"):
        session = session_for("torch", flush_denormal=setting)
        reply = session.run("silu", "forward", {"x": x}, {})
        assert reply.ok, reply.reason
        causes[setting] = refkernels.explain("silu", {"x": x}, reply.outputs).cause
    assert causes["1"] == "flush_to_zero"
    assert causes["0"] in (None, "summation_order")


def test_an_eps_that_float32_holds_is_not_rounded(session_for: Any) -> None:
    session = session_for("paddle")
    rng = np.random.default_rng(6)
    x = 1.0 + 1e-3 * rng.standard_normal((16, 32))
    causes = []
    for eps in (1e-5, 2.0**-17):
        reply = session.run("layernorm", "forward", {"x": x}, {"eps": eps})
        assert reply.ok, reply.reason
        explanation = refkernels.explain(
            "layernorm", {"x": x}, {"y": reply.outputs["y"]}, {"eps": eps}
        )
        causes.append(explanation.cause)
    assert causes[0] == "eps_rounded"
    assert causes[1] in (None, "summation_order")


def test_the_approximation_of_gelu_is_what_is_asked_for(session_for: Any) -> None:
    session = session_for("torch")
    x = np.random.default_rng(7).uniform(0.0, 3.0, 500).astype(F32)
    outputs = {op: session.run(op, "forward", {"x": x}, {}).outputs for op in ("gelu", "gelu_tanh")}
    assert refkernels.explain("gelu", {"x": x}, outputs["gelu_tanh"]).cause == "tanh_gelu"
    assert refkernels.explain("gelu", {"x": x}, outputs["gelu"]).cause != "tanh_gelu"
