"""Kernels of 16-bit arrays that round every intermediate result are named, and no other ones."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from refkernels import explain, registry
from refkernels.contexts.composed import Composed
from refkernels.diagnosis import narrow_sums
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.explanation import Explanation
from refkernels.diagnosis.fit import Fit

Array = npt.NDArray[np.generic]
FORMATS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def explained(op: str, inputs: dict[str, Array], got: Array, **params: object) -> Explanation:
    """What is found about a kernel's first output."""
    return explain(op, inputs, {registry.get(op).outputs[0]: got}, params)


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(1.0, 1.0, shape).astype(FORMATS[dtype])


def in_halves(x: Array) -> Array:
    """Cumulative sums as a tree: the last sum of the left half is added to all of the right."""
    half = 1 << (x.shape[-1] - 1).bit_length() >> 1
    if not half:
        return x
    left, right = in_halves(x[..., :half]), in_halves(x[..., half:])
    return np.concatenate([left, left[..., -1:] + right], -1)


def by_steps(x: Array) -> Array:
    """Cumulative sums by Hillis and Steele: to each sum, the one 2^j before it."""
    for step in (1 << j for j in range(x.shape[-1].bit_length())):
        x = np.concatenate([x[..., :step], x[..., step:] + x[..., :-step]], -1)
    return x


def by_pairs(x: Array) -> Array:
    """Cumulative sums by those of pairs, as JAX's associative_scan."""
    y = x.copy()
    if x.shape[-1] > 1:
        y[..., 1::2] = by_pairs(x[..., :-1:2] + x[..., 1::2])
        y[..., 2::2] = y[..., 1:-1:2] + x[..., 2::2]
    return y


@pytest.mark.parametrize(
    ("block", "scan", "first"),
    [(1, in_halves, True), (64, in_halves, True), (32, by_steps, False), (200, by_pairs, True)],
)
@pytest.mark.parametrize("dtype", FORMATS)
def test_running_sums_that_are_stored_one_by_one_are_proven(
    dtype: str, block: int, scan: Callable[[Array], Array], first: bool
) -> None:
    """In sequence, and in blocks by trees: PyTorch's on GPUs, CUB's and JAX's."""
    x, y = drawn((20, 200), dtype), np.zeros((20, 0), FORMATS[dtype])
    for start in range(0, 200, block):
        part = x[:, start : start + block].copy()
        total = y[:, -1:] if start else part.dtype.type(0)
        part[:, :1] += total if first else 0
        y = np.concatenate([y, scan(part) + (0 if first else total)], -1, dtype=x.dtype)
    found = explained("cumsum", {"x": x}, y, axis=-1)
    assert (found.cause, found.confidence) == ("narrow_intermediates", "proven")
    assert found.candidates[0].details["format"] == dtype


@pytest.mark.parametrize("dtype", FORMATS)
def test_an_op_composed_of_ops_that_store_their_results_is_proven(dtype: str) -> None:
    x, dtype_ = drawn((60, 33), dtype), FORMATS[dtype]
    square = (x * x).astype(dtype_)
    mean = (square.astype(np.float32).sum(-1, keepdims=True) / np.float32(33)).astype(dtype_)
    root = np.sqrt((mean.astype(np.float32) + np.float32(1e-5)).astype(dtype_))
    weight = drawn((33,), dtype, seed=1)
    y = ((x / root.astype(dtype_)).astype(dtype_) * weight).astype(dtype_)
    found = explained("rms_norm", {"x": x, "weight": weight}, y, eps=1e-5)
    assert (found.cause, found.confidence) == ("narrow_intermediates", "proven")


def test_a_function_s_gradient_composed_of_such_ops_is_proven() -> None:
    """GELU's, in the form that cancels."""

    def stored(array: Any) -> Any:
        return np.asarray(array, np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)

    x, dy = drawn((600,), "bfloat16").astype(float), drawn((600,), "bfloat16", 1).astype(float)
    erf = np.vectorize(math.erf)(stored(x / np.sqrt(2.0)))
    density = stored(stored(np.exp(-stored(stored(x * x) / 2))) / np.sqrt(2 * np.pi))
    slope = stored(stored(stored(1 + stored(erf)) / 2) + stored(x * density))
    inputs = {"dy": dy.astype(ml_dtypes.bfloat16), "x": x.astype(ml_dtypes.bfloat16)}
    dx = stored(dy * slope).astype(ml_dtypes.bfloat16)
    found = explain("gelu", inputs, {"dx": dx}, direction="backward")
    assert (found.cause, found.confidence) == ("narrow_intermediates", "proven")


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_kernel_that_computes_in_float32_is_not_blamed(dtype: str) -> None:
    x = drawn((60, 33), dtype)
    wide = x.astype(np.float32)
    y = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + np.float32(1e-5))
    found = explained("rms_norm", {"x": x}, y.astype(FORMATS[dtype]), eps=1e-5)
    assert found.cause != "narrow_intermediates"


def attended(kind: Any, seed: int = 1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x, dy = ((rng.standard_normal((12, 64)) * scale).astype(kind) for scale in (3.0, 1.0))
    e = np.exp(x.astype(float) - x.astype(float).max(-1, keepdims=True))
    return x, dy, (e / e.sum(-1, keepdims=True)).astype(np.float32).astype(kind)


def gradient(dy: Any, y: Any, narrow: bool) -> Any:
    """y (dy - Σ y dy), added in pairs of any two terms; in 16 bits rounded at every step."""
    kind = dy.dtype if narrow else np.float32
    dy, y = dy.astype(kind), y.astype(kind)
    terms = np.random.default_rng(0).permutation((y * dy).T)
    while len(terms) > 1:
        terms = terms[::2] + terms[1::2]
    return (y * (dy - terms[0][:, None]).astype(kind)).astype(kind)


@pytest.mark.parametrize("kind", FORMATS)
def test_arithmetic_in_16_bits_is_proven_in_any_order_of_sums(kind: str) -> None:
    x, dy, y = attended(FORMATS[kind])
    found = explain("softmax", {"dy": dy, "x": x}, {"dx": gradient(dy, y, True)}, {}, "backward")
    assert (found.cause, found.confidence) == ("narrow_intermediates", "proven")
    assert found.candidates[0].details["format"] == kind


def test_another_arithmetic_is_not_told_as_one_in_16_bits() -> None:
    tried = 0
    for seed, kind in enumerate(FORMATS.values()):
        x, dy, y = attended(kind, seed)
        right, narrow = gradient(dy, y, False), gradient(dy, y, True)
        for dx in (
            right,
            right * np.float32(2),
            narrow.astype(np.float32) * np.float32(1.01),
            right + narrow.astype(np.float32),
        ):
            problem, outputs = one_kernel(
                "softmax", {"dy": dy, "x": x}, {"dx": dx.astype(kind)}, {}, "backward"
            )
            fits = {"dx": Fit("dx", "exceeds_bound", (), 2.0, 9.0, 1, 0)}
            assert not list(narrow_sums.find(problem, outputs, fits))
            tried += 1
    assert tried == 8


@pytest.mark.parametrize("dtype", FORMATS)
def test_composed_arithmetic_rounds_each_result_once(dtype: str) -> None:
    a, b = drawn((50,), dtype), drawn((50,), dtype, seed=1)
    xp = Composed(dtype)
    total = xp.sum(xp.array(a) * xp.array(b) + xp.number(0.1))
    products = (a.astype(np.float32) * b.astype(np.float32)).astype(a.dtype)
    terms = (products.astype(np.float32) + np.float32(0.1)).astype(a.dtype)
    exact = np.add.accumulate(terms.astype(np.float32), dtype=np.float32)[-1]
    assert np.asarray(total.data).item() == exact.astype(a.dtype)


def test_functions_in_float32_of_a_float64_op_are_proven() -> None:
    rng = np.random.default_rng(0)
    x, target = rng.normal(0, 1, 500), rng.uniform(0.01, 1, 500)
    log = np.log(target.astype(np.float32).astype(np.float64)).astype(np.float32)
    loss = target * (log.astype(np.float64) - x)
    found = explain("kl_div", {"x": x, "target": target}, {"loss": loss}, {"reduction": "none"})
    assert (found.cause, found.confidence) == ("float32_functions", "proven")
    right = target * (np.log(target) - x)
    found = explain("kl_div", {"x": x, "target": target}, {"loss": right}, {"reduction": "none"})
    assert found.cause in (None, "summation_order")
