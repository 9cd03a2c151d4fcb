"""Causes that any op may have: quantised weights, an intermediate that overflows, a variance below
zero, a factor; and sums that are too few or too short to tell one."""

from typing import Any

import numpy as np
import pytest
from numpy_kernels import F, normal
from planting import named as explained

from refkernels import registry
from refkernels.diagnosis.variants.quantised import Scheme, quantised

X, W = normal(12, 100), normal(24, 100, seed=1)


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
    got = (x / np.sqrt(squares.mean(-1, keepdims=True) + F(1e-5))).astype(dtype)
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


@pytest.mark.parametrize(
    ("op", "shapes"),
    [("linear", {"x": (3, 0), "weight": (2, 0)}), ("matmul", {"a": (3, 0), "b": (0, 2)})],
)
def test_a_wrong_sum_of_nothing_has_no_cause(op: str, shapes: Any) -> None:
    inputs = {name: np.zeros(shape, F) for name, shape in shapes.items()}
    output = registry.get(op).outputs[0]
    assert explained(op, inputs, {output: np.ones((3, 2), F)})[0] is None


def test_a_factor_of_copies_and_sums_is_found() -> None:
    """Copied rows leave so narrow an interval that its end is outside by rounding."""
    dy, indices = normal(4, 8, 17), np.random.default_rng(0).integers(0, 50, (4, 8))
    weight, dweight = np.zeros((2, 50, 17), F)
    np.add.at(dweight, indices.reshape(-1), dy.reshape(-1, 17))
    inputs = {"dy": dy, "weight": weight, "indices": indices}
    for factor in (1.37, 0.83, 2.71):
        found = explained("embedding", inputs, {"dweight": dweight * F(factor)}, {}, "backward")
        assert found[:2] == ("scale_factor", "proven")


def test_a_narrow_accumulator_of_a_sum_is_named() -> None:
    x = normal(16, 1000).astype(np.float16)
    found = explained("sum", {"x": x}, {"y": np.add.accumulate(x, axis=1)[:, -1]})
    assert found[:2] == ("fp16_accumulation", "matched")


def test_one_sum_names_no_range() -> None:
    x = normal(1, 1000)
    cause, *_ = explained("sum", {"x": x}, {"y": np.delete(x, range(128, 256), 1).sum(axis=1)})
    assert cause != "part_of_sum_left_out"
