"""Kernels for which something false was once proven; nothing of the kind is now."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hunting import HUNT, one_in
from numpy_kernels import gelu, gelu_tanh, normal

import refkernels
from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.diagnosis.explanation import Explanation
from refkernels.diagnosis.patterns import unwritten
from refkernels.diagnosis.problem import Problem
from refkernels.diagnosis.wrong import wrong_elements

F = np.float32
RNG = np.random.default_rng(8)
PARAM, GRAD = RNG.standard_normal((2, 60)).astype(F)
M, V = (0.1 * RNG.standard_normal(60)).astype(F), RNG.uniform(0.5, 1.5, 60).astype(F)


def sure(explanation: Explanation) -> set[str]:
    return {c.cause for c in explanation.candidates if c.confidence in ("proven", "matched")}


def sure_of(*asked: Any) -> set[str]:
    return sure(refkernels.explain(*asked))


@pytest.mark.parametrize("factor", [10.0, 0.01])
def test_a_moment_with_other_weights_is_no_multiple_of_the_gradient(factor: float) -> None:
    m, v = F(0.9) * M + F(0.1 * factor) * GRAD, F(0.999) * V + F(0.001) * GRAD * GRAD
    inputs = {"param": PARAM, "grad": GRAD, "m": M, "v": V}
    for outputs in ({"m": m}, {"m": m, "v": v}):
        asked = inputs, outputs, {"step": 3, "lr": 0.01}
        assert "gradient_multiplied" not in sure_of("adam", *asked)


def of_sgd(buf: np.ndarray, param: np.ndarray, lr: float) -> Explanation:
    inputs, outputs = {"param": PARAM, "grad": GRAD, "buf": M}, {"param": param, "buf": buf}
    return refkernels.explain("sgd", inputs, outputs, {"lr": lr, "momentum": 0.9, "step": 3})


def test_lr_inside_the_momentum_is_no_multiple_of_the_gradient() -> None:
    for lr in (0.01, 0.125):
        buf = F(0.9) * M + F(lr) * GRAD
        assert "gradient_multiplied" not in sure(of_sgd(buf, PARAM - buf, lr))


def test_an_averaged_momentum_is_proven_although_a_tenth_of_the_gradient_is_near() -> None:
    buf = F(0.9) * M + F(0.1) * GRAD
    explanation = of_sgd(buf, PARAM - F(0.01) * buf, 0.01)
    assert (explanation.cause, explanation.confidence) == ("averaged_momentum", "proven")
    assert sure(explanation) == {"averaged_momentum"}


@pytest.mark.parametrize("seed", [2, 5])
def test_what_leaves_more_than_a_variance_by_one_pass_would_is_not_sure(seed: int) -> None:
    """Of float16, at mean / std = 100: an eps outside or a rounded rstd comes near by chance."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((4, 12, 50)) + 100).astype(F).astype(np.float16)
    affine = (a + 0.2 * rng.standard_normal(12) for a in (1, 0))
    weight, bias = (array.astype(F).astype(np.float16) for array in affine)
    group = x.astype(F).reshape(4, 3, 200)
    mean, squares = (np.add.reduce(t, -1, keepdims=True) / F(200) for t in (group, group * group))
    y = ((group - mean) * (F(1) / np.sqrt(squares - mean * mean + F(1e-5)))).reshape(x.shape)
    y = (y * weight.astype(F)[:, None] + bias.astype(F)[:, None]).astype(np.float16)
    asked = {"x": x, "weight": weight, "bias": bias}
    assert sure_of("group_norm", asked, {"y": y}, {"num_groups": 3}) <= {"naive_variance"}


def test_a_variance_by_one_pass_of_two_rows_is_no_rounded_sum() -> None:
    x = (np.random.default_rng(98).standard_normal((2, 256)) + 100).astype(F)  # float16's digits
    squares, total = np.zeros(2, F), np.add.reduce(x.reshape(2, 8, 32), 1)
    for column in x.astype(float).T:
        squares = (column * column + squares).astype(F)
    for half in (16, 8, 4, 2, 1):
        total = total[:, :half] + total[:, half:]
    y = (squares - total[:, 0] * (total[:, 0] / F(256))) / F(256) * F(256) / F(255)
    assert sure_of("var", {"x": x}, y, {"ddof": 1}) <= {"naive_variance"}
    x = x.reshape(16, 32).astype(np.float16)  # of which a right variance is one more number
    assert not sure_of("var", {"x": x}, x.astype(np.float64).var(axis=1).astype(np.float16))


@pytest.mark.parametrize("factor", [2.0, math.sqrt(2.0), math.sqrt(8.0)])
def test_a_norm_times_a_number_is_no_norm_of_other_tensors(factor: float) -> None:
    grads = RNG.standard_normal(140).astype(F)
    norm = F(factor * math.sqrt(float(np.sum(np.square(grads.astype(np.float64))))))
    outputs = {"clipped": grads * F(F(1.0) / (norm + F(1e-6))), "norm": norm}
    inputs = {"grads": grads, "tensor": np.repeat(np.arange(4), 35)}
    assert "norm_of_other_tensors" not in sure_of("clip_by_global_norm", inputs, outputs)


def test_a_flush_is_no_exponential_minus_one() -> None:
    x = -np.exp(np.random.default_rng(2).uniform(math.log(1e-9), math.log(1e-2), 500)).astype(F)
    y = np.where(np.abs(x) < 2e-8, F(0), np.expm1(x.astype(np.float64)).astype(F))
    assert "exponential_minus_one" not in sure_of("elu", {"x": x}, y)


@pytest.mark.parametrize("n", [6, 12, 20, 40])
def test_a_detail_on_which_hypotheses_differ_is_not_reported(n: int) -> None:
    scale, alpha = float(F(1.0507009873554805)), float(F(1.6732632423543772))
    for seed in range(5):
        x = np.random.default_rng(seed).standard_normal(n)
        y = scale * np.where(x > 0, x, alpha * np.expm1(x))
        explanation = refkernels.explain("selu", {"x": x}, {"y": y})
        assert (explanation.cause, explanation.confidence) == ("float32_constants", "proven")
        assert "with" not in explanation.candidates[0].details


def atan_slope_in_float16(beyond: list[float]) -> Explanation:
    """dy / (x² + 1), each operation in float16: x² is infinite from 256 on."""
    x = np.array([*np.linspace(-4, 4, 61), *beyond], np.float16)
    dy = np.where(np.abs(x) > 200, np.float16(np.inf), np.float16(1.5))
    with np.errstate(all="ignore"):
        dx = dy / (x * x + np.float16(1))
    return refkernels.explain("atan", {"dy": dy, "x": x}, {"dx": dx}, direction="backward")


def test_the_largest_number_alone_proves_neither_narrow_inputs_nor_an_overflow() -> None:
    """65504 is 65536 in bfloat16, and infinite only back in float16, where no kernel puts it."""
    explanation = atan_slope_in_float16([65504.0, -65504.0] * 4)
    assert (explanation.verdict, explanation.cause) == ("special_value_mismatch", "early_overflow")
    assert sure(explanation) == set()


def test_an_overflow_is_proven_by_its_place_among_many_arguments() -> None:
    explanation = atan_slope_in_float16([*np.linspace(210, 250, 20), *np.linspace(300, 6e4, 40)])
    assert sure(explanation) == {"early_overflow"}
    assert explanation.candidates[0].details["intermediate"] == "x²"


@pytest.mark.parametrize(("data", "order"), [(10, 101), (59, 221), (71, 330)])
def test_one_number_inside_its_bound_has_no_cause_by_chance(data: int, order: int) -> None:
    """A right mean in an unlucky order: x in float16 would give as much by chance."""
    rng = np.random.default_rng(data)
    x, target = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
    terms = np.abs(x - target)[np.random.default_rng(order).permutation(1000)]
    loss = np.cumsum(terms, dtype=np.float32)[-1] / np.float32(1000)
    explanation = refkernels.explain("l1", {"x": x, "target": target}, {"loss": loss})
    assert (explanation.cause, explanation.verdict) == (None, "rounding")


def test_one_value_throughout_is_no_block_that_was_never_written() -> None:
    """Where the truth of the other rows is that value too, nothing shows that they were written."""
    examined = 0
    for name in registry.ops():
        op = registry.get(name)
        inputs, params = next(iter(op.cases())).build("float32")
        inputs = {key: inputs[key] for key in op.takes("forward") if key in inputs}
        problem = Problem(op, "forward", inputs, {**op.params, **params}, formats.BINARY32)
        output = op.outputs[0]
        exact = np.asarray(problem.truth.reference[output])
        for value in (0.0, math.nan):
            got = np.full(exact.shape, value, F)
            wrong = wrong_elements(problem, output, got)
            if np.count_nonzero(wrong) > 1:
                assert unwritten(problem, output, got, wrong) is None, name
                examined += 1
    assert examined > 60


@pytest.mark.parametrize("rows", [(0,), (4,), (2, 3)])
def test_rows_that_are_zero_for_another_reason_are_not_unwritten(rows: tuple[int, ...]) -> None:
    """One row of zeros, or two side by side, may be masked; all zeros beside a zero row say
    nothing of memory; and a NaN that arithmetic gives was computed."""
    a, b = RNG.standard_normal((6, 8)).astype(F), RNG.standard_normal((8, 7)).astype(F)
    a[3] = 0.0
    assert "unwritten_elements" not in sure_of("matmul", {"a": a, "b": b}, np.zeros((6, 7), F))
    x = RNG.standard_normal((6, 40)).astype(F)
    y = np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)
    y[rows, :] = 0.0
    assert "unwritten_elements" not in sure_of("softmax", {"x": x}, y)
    x = RNG.uniform(1.0, 2.0, 500).astype(F)
    y = np.log(x)
    assert "unwritten_elements" not in sure_of("log", {"x": x}, np.zeros(500, F))
    y[200:260] = np.nan
    assert "unwritten_elements" not in sure_of("log", {"x": x}, y)
    y.view(np.uint32)[200:260] = 0x7FC0BEEF
    assert "unwritten_elements" in sure_of("log", {"x": x}, y)


@pytest.mark.parametrize("op", ["matmul", "linear"])
def test_partial_sums_that_overflow_to_nan_prove_no_narrower_inputs(op: str) -> None:
    """inf - inf is NaN in float32 as it is in any narrower format, and in some orders only."""
    first, second = ("a", "b") if op == "matmul" else ("x", "weight")
    lost = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        a, b = (1e25 * rng.standard_normal((2, 9, 9))).astype(F)
        total = np.zeros((9, 9), F)
        with np.errstate(all="ignore"):
            for k in rng.permutation(9):
                total = total + a[:, k, None] * (b[k] if op == "matmul" else b[:, k])
        assert sure_of(op, {first: a, second: b}, total) == set()
        lost += np.count_nonzero(np.isnan(total))
    assert lost


def fast_sigmoids(x: np.ndarray) -> Iterator[np.ndarray]:
    """1 / (1 + 2^fl(-x log2 e)) with a right quotient, a truncated one, and one that is 0 where the
    divisor exceeds 2^126, as __fdividef's."""
    for power in (np.exp(-x), np.exp2((-x * F(1.44269504)).astype(float)).astype(F)):
        divisor = F(1) + power
        truncated = ((1.0 / divisor.astype(float)).astype(F).view(np.int32) & ~3).view(F)
        yield F(1) / divisor
        yield truncated
        yield np.where(divisor > 2.0**126, F(0), truncated)


@pytest.mark.parametrize("count", [20, 60])
@pytest.mark.parametrize("op", ["sigmoid", "silu"])
def test_a_fast_sigmoid_has_no_other_constant_and_does_not_flush(op: str, count: int) -> None:
    """Where e^-x is infinite, the result is 0 although no subnormal number is flushed."""
    overflows = 0
    for seed in one_in(3, range(3)):
        x = np.random.default_rng(seed).uniform(-100, 100, count).astype(F)
        size = np.exp(np.minimum(x, 0).astype(float)) * (np.abs(x) if op == "silu" else 1)
        with np.errstate(all="ignore"):
            answers = [y * x if op == "silu" else y for y in fast_sigmoids(x)]
        for y in answers:
            explanation = refkernels.explain(op, {"x": x}, {"y": y})
            assert not sure(explanation) & {"constant_differs", "param_differs"}
            zeros = (y == 0) & (size < np.finfo(F).tiny)
            if np.all(x[zeros] < -89):  # no zero that only a flush explains
                assert explanation.cause != "flush_to_zero"
                overflows += explanation.cause == "early_overflow"
    assert overflows > (3 if HUNT > 1 else 0)


@pytest.mark.parametrize("seed", [3, 4, 8, 9, 10])
def test_a_slope_that_vanishes_beside_1_is_no_limit_of_its_argument(seed: int) -> None:
    for n in (20, 60):
        rng = np.random.default_rng(seed)
        x, dy = rng.uniform(-100, 100, n).astype(F), rng.standard_normal(n).astype(F)
        with np.errstate(all="ignore"):
            s = F(1) / (F(1) + np.exp(-x))
        inputs, dx = {"x": x, "dy": dy}, dy * s * (F(1) - s)
        assert sure_of("sigmoid", inputs, dx, {}, "backward") <= {"slope_from_result"}


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_an_accumulator_does_not_explain_a_row_of_nan(dtype: type) -> None:
    a = np.random.default_rng(0).standard_normal((48, 200)).astype(dtype)
    b = np.random.default_rng(1).standard_normal((200, 40)).astype(dtype)
    y = (a.astype(F) @ b.astype(F)).astype(dtype)
    y[-1] = np.nan
    explanation = refkernels.explain("matmul", {"a": a, "b": b}, y)
    fitting = {candidate.cause for candidate in explanation.candidates if candidate.confidence}
    assert explanation.cause == "unwritten_elements"
    assert not fitting & {"fp16_accumulation", "bf16_accumulation"}


@pytest.mark.parametrize("op", ["group_norm", "layernorm"])
def test_an_interval_that_holds_the_requested_eps_is_no_other_eps(op: str) -> None:
    """In one pass nothing is left of the variance, so that any eps explains the errors."""
    x = (100 + np.random.default_rng(0).standard_normal((2, 6, 100))).astype(F)
    groups, params = {"group_norm": ((2, 3, 200), {"num_groups": 3})}.get(op, (x.shape, {}))
    rows = x.reshape(groups)
    mean = rows.mean(-1, keepdims=True)
    variance = (rows * rows).mean(-1, keepdims=True) - mean * mean
    y = ((rows - mean) / np.sqrt(variance + F(1e-5))).reshape(x.shape)
    explanation = refkernels.explain(op, {"x": x}, {"y": y}, {**params, "eps": 1e-5})
    causes = {candidate.cause for candidate in explanation.candidates if candidate.confidence}
    assert causes & {"naive_variance", "eps_differs", "eps_rounded"} == {"naive_variance"}


def test_a_recurrence_that_most_orders_agree_with_is_not_told() -> None:
    """Two passes in some order, of which little is left beside the running variance."""
    rng = np.random.default_rng(12)
    x, (mean, var) = rng.standard_normal((16, 6)).astype(F), rng.standard_normal((2, 16)).astype(F)
    rows = x[:, rng.permutation(6)]
    own = np.add.accumulate(rows, axis=1)[:, -1:] / F(6)
    biased = np.add.accumulate(np.square(rows - own), axis=1)[:, -1:] / F(6)
    outputs = {"new_var": F(0.9) * var + F(0.1) * (biased[:, 0] * F(6) / F(5))}
    inputs = {"x": x[None], "running_mean": mean, "running_var": var}
    assert not sure_of("batch_norm", inputs, outputs)


@pytest.mark.parametrize("seed", [2, 13, 21])
def test_a_gradient_without_an_exponential_clamps_none(seed: int) -> None:
    """Some numbers are next to what a right kernel gives, as in libraries."""
    rng, shape = np.random.default_rng(seed), (6, 4, 2)
    x, target = -rng.uniform(1e-16, 1e-13, shape), rng.uniform(1e-6, 2e-3, shape)
    dloss, moved = np.array(6.046029, F), rng.random(shape) < 0.3
    dx = -target * (np.float64(dloss) / 48)
    towards = np.where(rng.integers(2, size=shape), np.inf, -np.inf)
    inputs = {"dloss": dloss, "x": x, "target": target}
    outputs = {"dx": np.where(moved, np.nextafter(dx, towards), dx)}
    assert refkernels.explain("kl_div", inputs, outputs, {}, "backward").cause is None


def test_a_gradient_of_many_rows_is_explained_without_the_others() -> None:
    """The filter's gradient needs all rows, of which a search for edits of dx reads some."""
    dy, x = (RNG.standard_normal((4, 2, 4, channels, 8)).astype(F) for channels in (2, 1))
    inputs = {"dy": dy, "x": x, "weight": np.ones((2, 1, 1), F)}
    found = refkernels.explain("conv1d", inputs, dy[..., :1, :], {}, "backward")
    assert found.verdict == "exceeds_bound"


def test_differences_that_are_lost_for_another_reason_are_no_integers() -> None:
    """A one-pass variance of float16 numbers whose squares overflow: all of y is 0, as if x were
    rounded to one number; and one outlier, beside which 8 bits leave nothing of the others."""
    x = (1000 + normal(4, 6, 30, seed=5)).astype(np.float16)
    wide = normal(6, 40, seed=6)
    wide[:, 3] = 1e20
    for op, given, params in (("group_norm", x, {"num_groups": 2}), ("rms_norm", wide, {})):
        found = refkernels.explain(op, {"x": given}, np.zeros_like(given), params)
        assert "quantised_activations" not in {c.cause for c in found.candidates if not c.ruled_out}


def test_a_maximum_that_starts_at_0_proves_little_of_negative_numbers() -> None:
    """Many a fault gives an output that is 0 throughout."""
    found = sure_of("max", {"x": -abs(normal(8, 32))}, np.zeros(8, F))
    assert found <= {"unwritten_elements", "floored"}


def test_one_rounding_that_all_rows_share_is_one_number() -> None:
    """A sum of equal weights, off by 42 ulp, divides all elements, which then part by an ulp."""
    weight, off = np.array([0.846447], F), np.random.default_rng(0).integers(41, 44, (192, 1))
    inputs = {"dloss": np.array(-0.6875), "x": normal(192, 1), "target": np.zeros(192, int)}
    dx = (0.6875 / 192 - off * 2.0**-32).astype(F)
    assert not sure_of("nll", {**inputs, "weight": weight}, dx, {}, "backward")


def test_overflows_prove_no_two_edits() -> None:
    """A softmax without its maximum, of exponentials in float16: NaN, and 0 beside infinities."""
    x = (8 * normal(12, 200)).astype(np.float16)
    with np.errstate(all="ignore"):
        e = np.exp(x.astype(F)).astype(np.float16).astype(F)
        y = (e / e.sum(-1, keepdims=True)).astype(np.float16)
    assert sure_of("softmax", {"x": x}, y) <= {"no_shift", "early_overflow"}


def nll(xp: Any, x: Any, target: Any, weight: Any) -> Any:
    d = x - xp.pivot(x)
    return (xp.log(xp.sum(xp.exp(d))) - xp.take_along_axis(d, target)) * weight


@pytest.mark.parametrize("size", [60, 300])
def test_infinities_of_either_sign_prove_no_other_function(size: int) -> None:
    """An own loss without its maximum: what overflows is told, also beyond float64's range."""
    own = refkernels.oracle(nll, "x[... n], target[...]:int, weight[...] -> y[...]", "n")
    inputs = {"x": size * normal(8, 30), "target": np.arange(8), "weight": normal(8, seed=1)}
    with np.errstate(over="ignore"):
        loss = np.log(np.exp(inputs["x"]).sum(-1)) - inputs["x"][np.arange(8), inputs["target"]]
    explanation = refkernels.explain(own.op, inputs, {"y": loss * inputs["weight"]})
    assert (explanation.cause, explanation.confidence) == ("unstable_identity", "consistent")
    assert explanation.candidates[0].details == {"formula": "exp(x)"}


def test_bits_of_two_moments_prove_nothing_that_the_param_refutes() -> None:
    """Adam's moments lack a decay that the step has in a way that no hypothesis has."""
    param, grad, m = normal(3, 48, seed=4)
    inputs = {"param": param, "grad": grad, "m": m, "v": np.square(m[::-1])}
    adam = registry.get("adam")
    outputs = adam.plain("forward", inputs, {**adam.params, "step": 3}, formats.BINARY32)
    outputs["param"] = outputs["param"] - F(1e-3) * np.sin(F(9.0) * grad * param)
    explanation = refkernels.explain("adam", inputs, outputs, {"step": 3, "weight_decay": 0.1})
    assert explanation.cause in ("decay_ignored", "decay_decoupled")
    assert explanation.confidence == "consistent"


@pytest.mark.parametrize("cancels", [False, True])
def test_half_x_erfc_is_not_said_to_cancel(cancels: bool) -> None:
    """1 + erf loses all digits; a rounded argument loses few."""
    x = np.array([-11.973983406269696, -10.5, -9.25])
    phi = (lambda v: 1.0 + math.erf(v)) if cancels else (lambda v: math.erfc(-v))
    y = np.array([0.5 * v * phi(v / math.sqrt(2.0)) for v in x])
    assert (refkernels.explain("gelu", {"x": x}, y).cause == "erf_cancellation") is cancels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_right_gelus_are_not_blamed_for_their_constants(dtype: type) -> None:
    x = np.random.default_rng(5).standard_normal(300).astype(dtype)
    for op, kernel in (("gelu_tanh", gelu_tanh), ("gelu", gelu)):
        explanation = refkernels.explain(op, {"x": x}, {"y": kernel(x)})
        assert explanation.cause not in ("float32_constants", "rounded_constants")
