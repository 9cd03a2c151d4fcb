"""Causes that any op may have: a part of a reduction missing, weights quantised, an intermediate
that overflows, a variance that is negative, another norm; each named first from outputs alone."""

from typing import Any

import numpy as np
import pytest
from hunting import one_in

import refkernels
from refkernels import registry
from refkernels.diagnosis.variants.quantised import Scheme, quantised

RNG = np.random.default_rng(14)
X = RNG.standard_normal((12, 100)).astype(np.float32)
W = RNG.standard_normal((24, 100)).astype(np.float32)
F = np.float32


def explained(
    op: str, inputs: Any, outputs: Any, params: Any = None, direction: Any = "forward"
) -> Any:
    explanation = refkernels.explain(op, inputs, outputs, params, direction)
    details = dict(explanation.candidates[0].details) if explanation.cause else {}
    return explanation.cause, explanation.confidence, details


def softmax(x: Any, kept: slice = slice(None)) -> Any:
    e = np.exp(x - x[..., kept].max(-1, keepdims=True))
    return e / e[..., kept].sum(-1, keepdims=True)


def rms_norm(x: Any, squares: Any, n: int) -> Any:
    return x / np.sqrt(squares.sum(-1, keepdims=True) / F(n) + F(1e-5))


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2) * F(q.shape[-1] ** -0.5)) @ v


TAIL = "dropped_tail", {"n": 100, "dropped": 4}


@pytest.mark.parametrize(
    ("op", "inputs", "y", "params", "named"),
    [
        ("softmax", {"x": X}, softmax(X, slice(96)), {}, TAIL),
        ("rms_norm", {"x": X}, rms_norm(X, np.square(X[:, :96]), 100), {"eps": 1e-5}, TAIL),
        ("rms_norm", {"x": X}, rms_norm(X, np.square(X[:, :96]), 96), {"eps": 1e-5}, TAIL),
        (
            "rms_norm",
            {"x": X},
            rms_norm(X, np.square(np.delete(X, range(32, 64), 1)), 100),
            {"eps": 1e-5},
            ("part_of_sum_left_out", {"n": 100, "start": 32, "stop": 64}),
        ),
        ("norm", {"x": X}, np.sqrt(np.square(X[:, :96]).sum(1)), {"axis": -1}, TAIL),
    ],
    ids=["softmax", "rms_norm", "rms_norm counted", "rms_norm block", "norm"],
)
def test_the_part_that_a_formula_leaves_out_is_named(
    op: str, inputs: Any, y: Any, params: Any, named: Any
) -> None:
    cause, confidence, details = explained(op, inputs, {"y": y}, params)
    assert (cause, details) == named
    assert confidence == "proven"


def test_keys_beyond_the_last_whole_block_are_missed() -> None:
    q, k, v = (RNG.standard_normal((6, n, 8)).astype(F) for n in (5, 20, 20))
    got = attention(q, k[:, :16], v[:, :16])
    cause, _, details = explained("attention", {"q": q, "k": k, "v": v}, {"y": got})
    assert (cause, details) == ("dropped_tail", {"n": 20, "dropped": 4})


ROW = Scheme(8, "symmetric", "each row", (1,), 0, np.float32)
WHOLE = Scheme(8, "asymmetric", "the tensor", (0, 1), 0, np.float32)
GROUP = Scheme(4, "full", "each 32 of a row", (), 32, np.float16)
COLUMN = Scheme(3, "symmetric", "each column", (0,), 0, np.float32)


def quantised_question(op: str, scheme: Scheme) -> Any:
    """The inputs, and what a product of quantised weights is."""
    if op == "conv1d":
        weight = W[:6, :96].reshape(6, 12, 8)
        scheme = scheme._replace(axes=tuple(range(3))[3 - len(scheme.axes) - 1 :])
        inputs = {"x": X[:, :96].reshape(1, 12, 96), "weight": weight}
        used = {**inputs, "weight": quantised(weight, scheme)}
        return inputs, registry.get(op).plain("forward", used, {}, "float32")
    if op == "matmul":
        b = W[:, :96].T.copy()
        return {"a": X[:, :96], "b": b}, {"c": X[:, :96] @ quantised(b, scheme)}
    weight = W[:, :96]
    return {"x": X[:, :96], "weight": weight}, {"y": X[:, :96] @ quantised(weight, scheme).T}


@pytest.mark.parametrize(
    ("op", "scheme"),
    [
        *(("linear", scheme) for scheme in (ROW, WHOLE, GROUP, COLUMN)),
        *(("matmul", scheme) for scheme in (COLUMN, WHOLE)),
        *(("conv1d", scheme) for scheme in (ROW, WHOLE)),
    ],
)
def test_quantised_weights_are_named_with_bits_and_scale(op: str, scheme: Scheme) -> None:
    cause, confidence, details = explained(op, *quantised_question(op, scheme))
    assert (cause, confidence) == ("quantised_weights", "proven")
    assert (details["bits"], details["scale"]) == (scheme.bits, scheme.scale)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_the_square_that_overflows_float16_is_named(dtype: Any) -> None:
    x = X.astype(np.float16)
    x[::3] *= np.float16(200)
    with np.errstate(over="ignore"):
        squares = (x * x).astype(F)
    got = rms_norm(x.astype(F), squares, 100).astype(dtype)
    cause, _, details = explained("rms_norm", {"x": x.astype(dtype)}, {"y": got}, {"eps": 1e-5})
    assert cause == "early_overflow"
    assert (details["intermediate"], details["format"]) == ("x²", "float16")
    assert details["overflows"] == 400


def test_a_negative_variance_is_no_more_than_consistent() -> None:
    x = X.copy()
    x[::2] += F(3000)
    mean = x.sum(1) / F(100)
    var = (x * x).sum(1) / F(100) - mean * mean
    var[0] = F(-0.3)  # in some order of the sums
    with np.errstate(invalid="ignore"):
        cause, confidence, details = explained("std", {"x": x}, {"y": np.sqrt(var)}, {"axis": -1})
    assert (cause, confidence) == ("naive_variance", "consistent")
    assert details["negative"] >= 1


def test_the_gradient_of_another_norm_is_named() -> None:
    dy, weight = X[::-1].copy(), W[0]
    r = F(1) / np.sqrt(np.square(X).mean(1, keepdims=True) + F(1e-5))
    t, xhat = dy * weight, X * r
    dx = r * (t - xhat * (t * xhat).mean(1, keepdims=True))
    inputs = {"dy": dy, "x": X, "weight": weight, "bias": W[1]}
    outputs = {"dx": dx, "dweight": (dy * xhat).sum(0), "dbias": dy.sum(0)}
    assert explained("layernorm", inputs, outputs, direction="backward")[0] == "mean_not_subtracted"


@pytest.mark.parametrize(
    ("op", "shapes"),
    [("linear", {"x": (3, 0), "weight": (2, 0)}), ("matmul", {"a": (3, 0), "b": (0, 2)})],
)
def test_a_wrong_sum_of_nothing_has_no_cause(op: str, shapes: Any) -> None:
    inputs = {name: np.zeros(shape, F) for name, shape in shapes.items()}
    output = registry.get(op).outputs[0]
    assert explained(op, inputs, {output: np.ones((3, 2), F)})[0] is None


NEW = {"quantised_weights", "mean_not_subtracted", "weight_plus_one", "part_of_sum_left_out"}
NEW |= {"dropped_tail", "early_overflow", "naive_variance"}
OPS = ("softmax", "rms_norm", "group_norm", "attention", "cross_entropy", "var", "conv1d", "linear")


@pytest.mark.parametrize("op", OPS)
def test_no_right_kernel_is_blamed(op: str) -> None:
    """A small case, sums in pairs, in formats by turns; `benchmarks/diagnosis.py`
    asks this of thousands."""
    record, dtype = registry.get(op), ("float32", "float16", "bfloat16")[OPS.index(op) % 3]
    inputs, params = smallest(record, dtype)
    if record.formulas is None:
        outputs = record.plain("forward", inputs, params, dtype)
    else:
        form = list(record.formulas.of("forward").forms.values())[-1]
        how = "forward", form, inputs, params, dtype
        outputs = record.formulas.computed(*how, order="pairwise")
    assert refkernels.explain(record, inputs, outputs, params).cause not in NEW


def smallest(record: Any, dtype: str) -> Any:
    """The smallest of the op's cases that have 100 elements or more."""
    sized = []
    for case in record.cases()[:12]:
        if dtype in case.dtypes:
            inputs, params = case.build(dtype)
            inputs = {name: inputs[name] for name in record.inputs if name in inputs}
            sized.append((sum(array.size for array in inputs.values()), case.name, inputs, params))
    _, _, inputs, params = min(row for row in sized if row[0] >= 100)
    return inputs, params


def test_a_factor_of_copies_and_sums_is_found() -> None:
    """Copied rows leave so narrow an interval that its end is outside by rounding."""
    rng = np.random.default_rng(0)
    dy = rng.standard_normal((4, 8, 17)).astype(np.float32)
    weight, indices = np.zeros((50, 17), np.float32), rng.integers(0, 50, (4, 8))
    dweight = np.zeros((50, 17), np.float32)
    np.add.at(dweight, indices.reshape(-1), dy.reshape(-1, 17))
    inputs = {"dy": dy, "weight": weight, "indices": indices}
    for factor in (1.37, 0.83, 2.71):
        outputs = {"dweight": dweight * np.float32(factor)}
        explanation = refkernels.explain("embedding", inputs, outputs, {}, "backward")
        assert (explanation.cause, explanation.confidence) == ("scale_factor", "proven")


def test_running_statistics_that_stay_as_they_were_are_named() -> None:
    x = RNG.standard_normal((4, 6, 3)).astype(np.float32)
    weight, bias, mean = (RNG.standard_normal(6).astype(np.float32) for _ in range(3))
    var = RNG.uniform(0.5, 2.0, 6).astype(np.float32)
    centred = x - x.mean(axis=(0, 2), keepdims=True)
    root = np.sqrt(np.square(centred).mean(axis=(0, 2), keepdims=True) + np.float32(1e-5))
    y = centred / root * weight[:, None] + bias[:, None]
    inputs = {"x": x, "weight": weight, "bias": bias, "running_mean": mean, "running_var": var}
    outputs = {"y": y, "new_mean": mean.copy(), "new_var": var.copy()}
    explanation = refkernels.explain("batch_norm", inputs, outputs)
    assert (explanation.cause, explanation.confidence) == ("running_statistics_kept", "proven")


@pytest.mark.parametrize("cause", ["label_wrapped", "invalid_label_ignored"])
def test_labels_of_nll_that_are_no_class_are_named(cause: str) -> None:
    x = RNG.standard_normal((8, 7))
    target = RNG.integers(0, 7, 8)
    target[2] = -1
    loss = -x[np.arange(8), target % 7]
    if cause == "invalid_label_ignored":
        loss[2] = 0.0
    inputs, params = {"x": x, "target": target}, {"reduction": "none"}
    explanation = refkernels.explain("nll", inputs, {"loss": loss}, params)
    assert (explanation.cause, explanation.confidence) == (cause, "proven")


SHAPES = ((16, 16), (64, 100), (200, 33))


@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_s_layernorm_in_float64_has_no_cause(shape: tuple[int, int]) -> None:
    explanations = []
    for seed in one_in(3, range(3)):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(shape) * 10.0 ** int(rng.integers(-3, 2))
        mean = x.mean(1, keepdims=True)
        rstd = 1.0 / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)
        outputs = {"y": (x - mean) * rstd, "mean": mean[:, 0], "rstd": rstd[:, 0]}
        explanations.append(refkernels.explain("layernorm", {"x": x}, outputs, {"eps": 1e-5}))
    assert [explanation.verdict for explanation in explanations] == ["rounding"] * len(explanations)
    assert {explanation.cause for explanation in explanations} <= {None, "summation_order"}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_unbiased_variance_in_float64_is_named(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal(shape)
    mean = x.mean(1, keepdims=True)
    rstd = 1.0 / np.sqrt(x.var(1, ddof=1, keepdims=True) + 1e-5)
    explanation = refkernels.explain("layernorm", {"x": x}, {"y": (x - mean) * rstd}, {"eps": 1e-5})
    assert (explanation.verdict, explanation.cause) == ("exceeds_bound", "unbiased_variance")
    assert explanation.confidence in ("proven", "matched")


ROWS = np.random.default_rng(11).standard_normal((16, 1000)).astype(np.float32)


def without(start: int, stop: int) -> Any:
    kept = ROWS.copy()
    kept[:, start:stop] = 0
    return kept


def cause_of(op: str, inputs: Any, output: str, got: Any) -> tuple[str | None, Any]:
    explanation = refkernels.explain(op, inputs, {output: got})
    return explanation.cause, dict(explanation.candidates[0].details)


@pytest.mark.parametrize(("start", "stop"), [(128, 256), (0, 7), (999 - 64, 999), (500, 501)])
def test_the_range_that_a_sum_lacks_is_found(start: int, stop: int) -> None:
    expected = "part_of_sum_left_out", {"n": 1000, "start": start, "stop": stop}
    kept = without(start, stop)
    assert cause_of("sum", {"x": ROWS}, "y", kept.sum(axis=1)) == expected
    assert cause_of("mean", {"x": ROWS}, "y", kept.sum(axis=1) / np.float32(1000)) == expected


def test_the_range_that_a_matmul_lacks_is_found() -> None:
    b = np.random.default_rng(12).standard_normal((1000, 9)).astype(np.float32)
    expected = "part_of_sum_left_out", {"n": 1000, "start": 100, "stop": 164}
    assert cause_of("matmul", {"a": ROWS, "b": b}, "c", without(100, 164) @ b) == expected


def test_means_of_parts_and_of_padded_rows_are_named() -> None:
    starts = np.arange(0, 1000, 64)
    sizes = np.array([64] * 15 + [40], np.float32)
    means = (np.add.reduceat(ROWS, starts, axis=1) / sizes).mean(axis=1, dtype=np.float32)
    assert cause_of("mean", {"x": ROWS}, "y", means) == ("mean_of_block_means", {"block": 64})
    padded = refkernels.explain("mean", {"x": ROWS}, {"y": ROWS.sum(axis=1) / np.float32(1024)})
    assert padded.cause == "scale_factor"
    assert padded.candidates[0].details["named"] == "x.shape[1] / 1024, to which it is padded"


def test_a_narrow_accumulator_of_a_sum_is_named() -> None:
    x = ROWS.astype(np.float16)
    cause = cause_of("sum", {"x": x}, "y", np.add.accumulate(x, axis=1)[:, -1])[0]
    assert cause in ("fp16_accumulation", "narrow_intermediates")  # a sum has no others


def test_one_sum_names_no_range() -> None:
    got = without(128, 256)[:1].sum(axis=1)
    assert cause_of("sum", {"x": ROWS[:1]}, "y", got)[0] != "part_of_sum_left_out"


@pytest.mark.parametrize(("asked", "other"), [("silu", "hardswish"), ("hardsigmoid", "softsign")])
def test_another_op_of_the_same_inputs_is_named(asked: str, other: str) -> None:
    x = 3.0 * np.random.default_rng(8).standard_normal(300).astype(F)
    op = registry.ops()[other]
    outputs = op.plain("forward", {"x": x}, op.params, "float32")
    cause, confidence, details = explained(asked, {"x": x}, outputs)
    assert (cause, confidence, details["other"]) == ("other_op", "proven", other)
