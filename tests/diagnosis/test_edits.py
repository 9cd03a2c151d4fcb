"""Faults that no list has, planted by independent NumPy code, and found as edits of the program."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hunting import HUNT

import refkernels
from refkernels import registry
from refkernels.diagnosis.edits import names, recognised, rules
from refkernels.diagnosis.edits.catalogue import Program
from refkernels.diagnosis.edits.names import formula_of
from refkernels.diagnosis.edits.rules import RULES, edits_of
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.edits.solved import KINDS
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.ranking import _shared_details
from refkernels.ops.function_formulas import definition
from refkernels.reporting.words.causes import CAUSES


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def explained(op: Any, inputs: Any, y: Any, params: Any = None, direction: Any = "forward") -> Any:
    outputs = {name: np.asarray(array).astype(np.float32) for name, array in y.items()}
    return refkernels.explain(op, inputs, outputs, params, direction)


def proves(found: Any, cause: str, **details: Any) -> None:
    assert (found.cause, found.confidence) == (cause, "proven")
    assert details.items() <= found.candidates[0].details.items()


def wide(array: Any) -> Any:
    return array.astype(np.float64)


def softmax(x: Any, axis: Any = -1) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def test_softmax_over_all_axes() -> None:
    x = normal(6, 7)
    found = explained("softmax", {"x": x}, {"y": softmax(wide(x), (0, 1))})
    assert (found.cause, found.confidence) == ("other_axis", "proven")


def test_softmax_for_a_function_of_single_numbers() -> None:
    x = normal(6, 7)
    found = explained("sigmoid", {"x": x}, {"y": softmax(wide(x))})
    proves(found, "other_function", axis=-1)


def attention(q: Any, k: Any, v: Any, keep: Any, cap: float = 0.0) -> Any:
    scores = wide(q) @ np.swapaxes(wide(k), -1, -2) / np.sqrt(q.shape[-1])
    scores = cap * np.tanh(scores / cap) if cap else scores
    return softmax(np.where(keep, scores, -np.inf)) @ wide(v)


QUERY, KEY = np.arange(20)[:, None], np.arange(20)
QKV = {"q": normal(2, 20, 8), "k": normal(2, 20, 8, seed=1), "v": normal(2, 20, 8, seed=2)}


@pytest.mark.parametrize("block", [2, 4])
def test_a_causal_mask_by_blocks_of_queries(block: int) -> None:
    keep = (QUERY // block * block + block - 1) >= KEY
    y = attention(**QKV, keep=keep)
    found = explained("attention", QKV, {"y": y}, {"causal": "top_left"})
    proves(found, "mask_by_blocks", block=block)


def test_a_soft_cap_that_nobody_asked_for() -> None:
    y = attention(**QKV, keep=True, cap=2.0)
    found = explained("attention", QKV, {"y": y})
    proves(found, "saturated", value=2.0)


def test_a_mask_that_is_a_number() -> None:
    keep = QUERY >= KEY
    scores = wide(QKV["q"]) @ np.swapaxes(wide(QKV["k"]), -1, -2) / np.sqrt(8)
    y = softmax(np.where(keep, scores, -7.5)) @ wide(QKV["v"])
    found = explained("attention", QKV, {"y": y}, {"causal": "top_left"})
    proves(found, "masked_with_number", value=-7.5)


@pytest.mark.parametrize(("axis", "apart"), [(2, "i // 5"), (0, "i % 5")])
def test_statistics_over_one_of_two_axes(axis: int, apart: str) -> None:
    x = normal(6, 8, 5)
    mean, var = (f(wide(x), axis, keepdims=True) for f in (np.mean, np.var))
    found = explained("batch_norm", {"x": x}, {"y": (wide(x) - mean) / np.sqrt(var + 1e-5)})
    proves(found, "reduced_in_parts", apart=apart)


def test_eps_added_where_a_maximum_is_asked_for() -> None:
    x, other = normal(20, 16), normal(20, 16, seed=1)
    norms = (np.linalg.norm(wide(a), axis=-1) + 0.1 for a in (x, other))
    y = np.sum(wide(x) * other, -1) / np.prod([*norms], axis=0)
    found = explained("cosine_similarity", {"x": x, "other": other}, {"y": y}, {"eps": 0.1})
    assert (found.cause, found.confidence) == ("sum_for_maximum", "proven")


def test_the_larger_of_a_variance_and_eps_is_no_sum() -> None:
    x = normal(16, 96) * np.float32(10.0) ** -np.arange(16, dtype=np.float32)[:, None]
    mean = np.mean(wide(x) ** 2, axis=-1, keepdims=True)
    y = wide(x) / np.sqrt(np.maximum(mean, 1e-5))
    proves(explained("rms_norm", {"x": x}, {"y": y}), "maximum_for_sum")


def test_a_temperature_is_a_factor_of_the_scores() -> None:
    x = normal(8, 60)
    found = explained("softmax", {"x": x}, {"y": softmax(wide(x) / 0.7)})
    assert found.cause == "part_multiplied"
    low, high = found.candidates[0].details["interval"]
    assert low < 1 / 0.7 < high


def test_a_root_left_out_is_not_told_as_a_function_that_is_its_argument_there() -> None:
    a, b = normal(9, 16), normal(7, 16, seed=1)
    squares = np.sum((wide(a)[:, None] - b) ** 2, -1)
    found = explained("cdist", {"a": a, "b": b}, {"y": squares})
    assert (found.cause, found.confidence) == ("function_missing", "proven")


def test_clamped_logits() -> None:
    x = 3.0 * normal(6, 40)
    found = explained("softmax", {"x": x}, {"y": softmax(np.clip(wide(x), -5.0, 5.0))})
    assert found.cause == "clamped"
    assert found.confidence != "consistent"
    assert found.candidates[0].details["value"] == 5.0


def test_one_more_logit_of_zero() -> None:
    x = normal(6, 40)
    more = np.concatenate([wide(x), np.zeros((6, 1))], axis=-1)
    found = explained("softmax", {"x": x}, {"y": softmax(more)[:, :-1]})
    proves(found, "zero_padding", padded=41)


@pytest.mark.parametrize("op", ["log_softmax", "cross_entropy"])
def test_eps_inside_a_logarithm(op: str) -> None:
    x, target = 6.0 * normal(40, 10), np.arange(40) % 10
    y = np.log(softmax(wide(x)) + 1e-7)
    outputs = {"y": y} if op == "log_softmax" else {"loss": -y[np.arange(40), target]}
    inputs = {"x": x} if op == "log_softmax" else {"x": x, "target": target}
    params = {} if op == "log_softmax" else {"reduction": "none"}
    found = explained(op, inputs, outputs, params)
    proves(found, "added_inside_logarithm", value=1e-7)


def test_a_flipped_kernel_is_told_by_the_axis_of_the_weight_as_it_was_given() -> None:
    x, weight = normal(2, 3, 12), normal(4, 3, 3, seed=1)
    parts = (
        np.einsum("ncl,oc->nol", wide(x)[..., i : i + 10], weight[..., 2 - i]) for i in (0, 1, 2)
    )
    found = explained("conv1d", {"x": x, "weight": weight}, {"y": sum(parts)})
    proves(found, "index_reversed", part="weight", axis=2)


def test_the_first_cotangent_for_all_rows() -> None:
    x, dy, target = normal(12, 9), normal(12, seed=3), np.arange(12) % 9
    p = softmax(wide(x))
    p[np.arange(12), target] -= 1.0
    found = explained(
        "cross_entropy",
        {"dloss": dy, "x": x, "target": target},
        {"dx": p * wide(dy)[0]},
        {"reduction": "none"},
        "backward",
    )
    proves(found, "first_for_all", part="dloss")


@pytest.mark.parametrize("eps", [2.0**-7, 2.0**-10, 3e-4])
def test_another_eps_is_an_interval_that_holds_it(eps: float) -> None:
    x = normal(8, 32)
    found = explained(
        "rms_norm",
        {"x": x},
        {"y": wide(x) / np.sqrt(np.mean(wide(x) ** 2, -1, keepdims=True) + eps)},
        {"eps": 1e-6},
    )
    assert found.confidence == "proven"
    best = found.candidates[0]
    low, high = best.details.get("interval", (best.details.get("eps"),) * 2)
    assert low <= eps <= high


@pytest.mark.parametrize("eps", [1e-3, 2e-3, 2.0**-10])
def test_an_eps_outside_the_root_has_any_value(eps: float) -> None:
    x = normal(16, 48)
    centred = wide(x) - wide(x).mean(-1, keepdims=True)
    y = centred / (np.sqrt(np.mean(centred**2, -1, keepdims=True)) + eps)
    found = explained("layernorm", {"x": x}, {"y": y}, {"eps": 1e-5})
    low, high = found.candidates[0].details["with_details"]["interval"]
    assert (found.cause, found.confidence) == ("eps_outside_sqrt", "proven")
    assert low <= eps <= high


@pytest.mark.parametrize("limit", [0.0, -0.5])
@pytest.mark.parametrize("op", ["softmax", "sum"])
def test_the_interval_of_a_limit_holds_it_whatever_float32_rounds(op: str, limit: float) -> None:
    """All elements of a row share the rounding of its sum, so they are off together."""
    for seed in range(2 * HUNT):
        x = normal(16, 64, seed=seed)
        floored = np.maximum(x, np.float32(limit))
        y = softmax(floored) if op == "softmax" else floored.sum(-1)
        best = explained(op, {"x": x}, {"y": y}).candidates[0]
        assert (best.cause, best.confidence) == ("floored", "proven")
        assert best.details["interval"][0] <= limit <= best.details["interval"][1]
        assert best.details["value"] == limit


@pytest.mark.parametrize("n", [13, 40])
def test_padding_in_the_sum_of_squares(n: int) -> None:
    """(0 - mean)² for every lane beyond the end: for the variance, which has no list of its own."""
    x = normal(16, n) + np.float32(1.5)
    padded = 16 if n == 13 else 64
    mean = wide(x).mean(-1, keepdims=True)
    squares = ((wide(x) - mean) ** 2).sum(-1) + (padded - n) * mean[:, 0] ** 2
    found = explained("var", {"x": x}, {"y": squares / n}, {"ddof": 0})
    proves(found, "padding_counted", padded=padded)


def test_a_cumulative_sum_whose_last_block_begins_too_high() -> None:
    x = normal(4, 700)
    sums = np.cumsum(wide(x), -1)
    sums[:, 640:] += wide(x)[:, 640:].sum(-1, keepdims=True)
    found = explained("cumsum", {"x": x}, {"y": sums})
    assert (found.cause, found.confidence) == ("wrong_carry", "proven")


def residual_norm(xp: Any, x: Any, r: Any, weight: Any, eps: Any) -> Any:
    """A user's own op: five lines that no list knows."""
    total = x + r
    return total * xp.rsqrt(xp.mean(xp.square(total)) + eps) * weight


OWN = refkernels.oracle(
    residual_norm,
    "x[... n], r[... n], weight[n] -> y[... n]",
    coupled="n",
    params={"eps": 1e-5},
).op
ARRAYS = {"x": normal(10, 24), "r": normal(10, 24, seed=5), "weight": normal(24, seed=6)}


def own(faulty: str) -> Any:
    x, r, w = (wide(ARRAYS[name]) for name in ("x", "r", "weight"))
    total = x if faulty == "missing residual" else x + r
    squares = total**2
    if faulty == "tail":
        squares = squares[..., :-5]
    mean = squares.sum(-1, keepdims=True) / 24
    scale = {
        "eps outside": 1.0 / (np.sqrt(mean) + 0.1),
        "no root": 1.0 / (mean + 0.1),
    }.get(faulty, 1.0 / np.sqrt(mean + 0.1))
    y = total * scale * (1.0 if faulty == "no weight" else w)
    return x * scale * w if faulty == "residual in the statistic alone" else y


@pytest.mark.parametrize(
    ("faulty", "kinds"),
    [
        ("missing residual", {"term_missing"}),
        ("tail", {"dropped_tail"}),
        ("eps outside", {"eps_outside_sqrt"}),
        ("no weight", {"factor_missing"}),
        ("no root", {"function_missing", "factor_twice"}),
        ("residual in the statistic alone", {"term_missing", "other_input"}),
    ],
)
def test_the_faults_of_an_op_of_one_s_own(faulty: str, kinds: set[str]) -> None:
    found = explained(OWN, ARRAYS, {"y": own(faulty)}, {"eps": 0.1})
    assert found.cause in kinds
    assert found.confidence == "proven"


def test_a_right_kernel_of_one_s_own_is_not_blamed() -> None:
    found = explained(OWN, ARRAYS, {"y": own("")}, {"eps": 0.1})
    assert found.verdict in ("rounding", "correctly_rounded")
    assert found.cause in (None, "summation_order")


def test_what_the_data_cannot_tell_apart_is_not_proven() -> None:
    """All cotangents are 0 in the first row's place: any edit that leaves 0 fits as well."""
    x, dy, target = normal(12, 9), normal(12, seed=3), np.arange(12) % 9
    dy[0] = 0.0
    found = explained(
        "cross_entropy",
        {"dloss": dy, "x": x, "target": target},
        {"dx": np.zeros((12, 9))},
        {"reduction": "none"},
        "backward",
    )
    assert found.confidence != "proven" or found.cause == "unwritten_elements"


def test_every_edit_has_words() -> None:
    kinds = {kind for kind, _, _ in RULES} | set(KINDS)
    assert kinds | names.causes() <= set(CAUSES)


@pytest.mark.parametrize("name", ["softmax", "layernorm", "attention", "gelu", "adamw"])
def test_edits_of_a_program_are_found_again_at_other_shapes(name: str) -> None:
    """Each edit has an identity of its own, and text that names its place."""
    op = registry.get(name)
    case = next(case for case in op.cases() if "forward" in case.directions)
    inputs, params = case.build("float32")
    inputs = {key: array for key, array in inputs.items() if key in op.inputs}
    truth = op.evaluate("forward", inputs, params)
    outputs = {key: np.asarray(value).astype(np.float32) for key, value in truth.items()}
    screen = Screen(*one_kernel(name, inputs, outputs, params))
    assert definition(op).forward.forms
    edits = edits_of(Program(screen.program.graph))
    read = [edit for edit in screen.edits if edit.kind != recognised.KIND]  # by values, not places
    assert len(edits) >= len(read) > 20  # no narrowing to the kernel's own format
    assert all(formula_of(edit.place) for edit in edits)


@pytest.mark.parametrize("eps", [1e-3, 0.03])
def test_two_faults_at_once_are_both_named(eps: float) -> None:
    """The weight left out, and another eps: a port's two mistakes."""
    total = wide(ARRAYS["x"]) + wide(ARRAYS["r"])
    y = total / np.sqrt((total**2).mean(-1, keepdims=True) + eps)
    found = explained(OWN, ARRAYS, {"y": y}, {"eps": 0.1})
    assert {found.cause, found.candidates[0].details["with"]} == {"factor_missing", "eps_differs"}
    assert found.confidence == "proven"
    assert "uses eps" in found.summary
    assert "leaves out the factor or divisor weight" in found.summary


def test_two_pairs_that_are_one_function_are_not_told_apart() -> None:
    """A norm does not depend on a factor: x with eps is 2 x with 4 eps, so that a residual that was
    left out and one that was read twice are the same but for eps."""
    x, w = wide(ARRAYS["x"]), wide(ARRAYS["weight"])
    y = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3) * w
    found = explained(OWN, ARRAYS, {"y": y}, {"eps": 0.1})
    assert found.confidence == "consistent"
    assert "reads x in place of r" in found.summary
    assert "and uses eps = 0.004" in found.summary
    assert "leaves out the term r" in found.summary
    assert "and uses eps = 0.001" in found.summary


def test_second_edits_that_differ_are_told_by_the_first_of_them() -> None:
    members = [{"with": "eps_differs", "with_details": {"eps": eps}} for eps in (1.0, 2.0)]
    assert _shared_details(members[0], members) == members[0]


def test_a_block_of_any_length_is_found() -> None:
    x = normal(32, 50)
    e = np.exp(wide(x) - x.max(-1, keepdims=True))
    y = e / (e.sum(-1) - e[:, 18:24].sum(-1))[:, None]
    found = explained("softmax", {"x": x}, {"y": y})
    assert (found.cause, found.confidence) == ("part_of_sum_left_out", "proven")
    assert found.candidates[0].details == {"n": 50, "start": 18, "stop": 24}


def test_one_narrow_result_in_the_gradient_of_a_function() -> None:
    x, dy = normal(400), normal(400, seed=1)
    narrow = (1 + np.abs(x)).astype(ml_dtypes.bfloat16).astype(np.float64)
    found = explained("softsign", {"dy": dy, "x": x}, {"dx": dy / narrow**2}, None, "backward")
    assert (found.cause, found.confidence) == ("intermediate_rounded", "proven")
    assert found.candidates[0].details == {"intermediate": "1 + |x|", "format": "bfloat16"}


def test_an_output_of_one_number_throughout_has_no_edit() -> None:
    """The first gradient for all would do, and so would a thousand other edits."""
    grads = np.abs(normal(60)) + np.float32(0.2)
    found = explained(
        "clip_by_value", {"grads": grads}, {"clipped": grads * 0 + 0.05}, {"max_value": 0.1}
    )
    assert found.confidence != "proven" or found.cause in ("param_differs", "scale_factor")


def test_a_convolution_s_gradient_without_the_tail_of_a_sum() -> None:
    """Its forms give one output forward, and three backward."""
    x, weight, dy = normal(30, 2, 5), normal(4, 2, 1, seed=1), normal(30, 4, 5, seed=2)
    gradients = {
        "dx": np.einsum("nos,oc->ncs", wide(dy)[:, :3], weight[:3, :, 0]),
        "dweight": np.einsum("nos,ncs->oc", wide(dy), x)[..., None],
    }
    inputs = {"dy": dy, "x": x, "weight": weight}
    found = explained("conv1d", inputs, gradients, None, "backward")
    assert (found.cause, found.confidence) == ("dropped_tail", "proven")


@pytest.mark.parametrize("op", ["softmax", "rms_norm", "selu", "soft_cross_entropy", "adafactor"])
def test_every_edit_is_found_again_in_another_graph_of_its_formula(op: str) -> None:
    case = next(iter(registry.get(op).cases()))
    arrays, params = case.build("float32")
    inputs = {name: arrays[name] for name in registry.get(op).takes("forward") if name in arrays}
    outputs = registry.get(op).plain("forward", inputs, params, "float32")
    ours, theirs = (Screen(one_kernel(op, inputs, outputs, params)[0], outputs) for _ in (1, 2))
    edits = edits_of(ours.program)
    known = {(edit.identity(ours.program), edit.number) for edit in edits}
    assert len(known) == len(edits)
    shared = [edit for edit in edits if edit.number or (edit.identity(ours.program), 1) in known]
    for edit in (*shared, *edits[::19]):
        found = ours.predicted(edit.changes)
        again = theirs.predicted(rules.again(edit, ours.program, theirs.program.graph))
        for name in found or {}:
            assert again is not None
            assert np.array_equal(found[name], again[name], equal_nan=True)
