"""Kernels of 16-bit arrays that round every intermediate result are named, and no other ones."""

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import planting
import pytest
from numpy_kernels import ERF, F, rms_norm

from refkernels.contexts.composed import Composed
from refkernels.diagnosis import recovered
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.fit import Fit

Array = npt.NDArray[np.generic]
FORMATS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


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


def running(x: Array, block: int, scan: Any, first: bool) -> Array:
    """Sums of blocks by a scan; the sum before a block is added to its first term, or to all."""
    y = x[:, :0]
    for start in range(0, x.shape[1], block):
        part = x[:, start : start + block].copy()
        total = y[:, -1:] if start else part.dtype.type(0)
        part[:, :1] += total if first else 0
        y = np.concatenate([y, scan(part) + (0 if first else total)], -1, dtype=x.dtype)
    return y


def composed_norm(x: Array, weight: Array) -> Any:
    """Of ops that store their results."""
    kind = x.dtype
    square = x * x
    mean = (square.astype(F).sum(-1, keepdims=True) / F(33)).astype(kind)
    root = np.sqrt((mean.astype(F) + F(1e-5)).astype(kind))
    return (x / root.astype(kind)).astype(kind) * weight


def composed_slope(x: Array, dy: Array) -> Any:
    """GELU's, in the form that cancels, of ops that store their results."""

    def stored(array: Any) -> Any:
        return np.asarray(array, F).astype(ml_dtypes.bfloat16).astype(np.float64)

    erf = ERF(stored(x / np.sqrt(2.0)))
    density = stored(stored(np.exp(-stored(stored(x * x) / 2))) / np.sqrt(2 * np.pi))
    return dy * stored(stored(stored(1 + stored(erf)) / 2) + stored(x * density))


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


PLANTED: list[planting.Planted] = []
of = partial(planting.Asked, PLANTED)
CAUSE = "narrow_intermediates"
SCANS = ((1, in_halves, True), (64, in_halves, True), (32, by_steps, False), (200, by_pairs, True))
for dtype, kind in FORMATS.items():
    fault = of("cumsum", {"x": drawn((20, 200), dtype)}, kind, axis=-1)
    for block, scan, first in SCANS:  # in sequence, and by trees: PyTorch's, CUB's and JAX's
        fault(CAUSE, partial(running, block=block, scan=scan, first=first), format=dtype)
    given = {"x": drawn((60, 33), dtype), "weight": drawn((33,), dtype, seed=1)}
    of("rms_norm", given, kind, eps=1e-5)(CAUSE, composed_norm)
    of("rms_norm", given, F, eps=1e-5).never(CAUSE, rms_norm)
    x, dy, y = attended(kind)
    fault = of("softmax", {"dy": dy, "x": x}, kind)
    fault(CAUSE, lambda dy, x, y=y: gradient(dy, y, True), format=dtype)
given = {"x": drawn((600,), "bfloat16"), "dy": drawn((600,), "bfloat16", 1)}
of("gelu", given, float)(CAUSE, composed_slope)


@planting.each(PLANTED)
def test_arithmetic_in_16_bits_is_proven(planted: planting.Planted) -> None:
    planted.check()


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
            assert not list(recovered.of_narrow_sums(problem, outputs, fits))
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
