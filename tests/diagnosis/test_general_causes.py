"""Causes that any op may have: a part of a reduction missing, weights quantised, an intermediate
that overflows, a variance that is negative, another norm; each named first from outputs alone."""

from typing import Any

import numpy as np
import pytest

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
