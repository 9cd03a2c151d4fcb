"""softmax and log_softmax: masks, exact zeros, digits that cancel, other kernels."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

from refkernels import softmax_ref
from refkernels.arithmetic import formats
from refkernels.op import DTYPES

OPS = {op.name: op for op in softmax_ref.OPS if op.name != "logsumexp"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_minus_infinity_masks_has_no_probability(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = formats.round_to(rng.standard_normal((5, 6)), dtype)
    masked = rng.random(x.shape) < 0.5
    masked[:, 0] = False
    x[masked] = -np.inf
    dy = formats.round_to(rng.standard_normal(x.shape), dtype)
    y, log = softmax_ref.softmax(x), softmax_ref.log_softmax(x)
    assert masked.sum() > 5
    assert np.all(y.hi[masked] == 0.0)
    assert np.all(np.isneginf(log.hi[masked]))
    assert np.all(softmax_ref.softmax_backward(dy, x).hi[masked] == 0.0)
    gradient = softmax_ref.log_softmax_backward(dy, x)
    np.testing.assert_array_equal(gradient.hi[masked], dy[masked].astype(np.float64))
    for answer in (y, log):
        assert np.all(answer.radius[masked] == 0.0)
    rounded = y.round(dtype)[0]
    for row in range(5):
        kept = softmax_ref.softmax(x[row][~masked[row]]).round(dtype)[0]
        np.testing.assert_array_equal(rounded[row][~masked[row]], kept)


def test_a_row_without_a_number_is_nan() -> None:
    rows = np.array([[-np.inf, -np.inf], [np.nan, 1.0], [np.inf, 1.0], [np.inf, -np.inf]])
    for answer in (
        softmax_ref.softmax(rows),
        softmax_ref.log_softmax(rows),
        softmax_ref.softmax_backward(np.ones_like(rows), rows),
        softmax_ref.log_softmax_backward(np.ones_like(rows), rows),
    ):
        assert np.isnan(answer.hi).all()


def test_exact_zeros_are_exact() -> None:
    rng = np.random.default_rng(2)
    x = (10.0 * rng.standard_normal((6, 9))).astype(np.float32)
    constant = np.repeat(np.array([[1.0], [0.1], [-7.0], [0.0], [3e8], [1e-40]], np.float32), 9, 1)
    column = x[:, :1]
    for zero in (
        softmax_ref.softmax_backward(constant, x),
        softmax_ref.softmax_backward(constant[:, :1], column),
        softmax_ref.log_softmax(column),
        softmax_ref.log_softmax_backward(constant[:, :1], column),
    ):
        assert np.all(zero.hi == 0.0)
        assert np.all(zero.radius == 0.0)


def test_a_confident_class_keeps_its_digits() -> None:
    """log y = -2 e^-80 (1 - ...): 1 - y is below the precision of float64."""
    x = np.array([0.0, 80.0, 0.0])
    y = softmax_ref.log_softmax(x, certify=("rounding", "float64"))
    with mpmath.workdps(60):
        assert float(y.round("float64")[0][1]) == float(-mpmath.log1p(2 * mpmath.exp(-80)))


def online(x: Any, exp: Any) -> Any:
    """Milakov and Gimelshein's algorithm 3, element by element, in x's format."""
    m, total = x[:, 0], np.ones(len(x), x.dtype)
    for column in x.T[1:]:
        larger = np.maximum(m, column)
        total = (total * exp(m - larger) + exp(column - larger)).astype(x.dtype)
        m = larger
    return (exp(x - m[:, None]) / total[:, None]).astype(x.dtype)


def powers(x: Any) -> Any:
    """e^x by exp2, as GPUs have it: two roundings before the function's own."""
    log2e = x.dtype.type(1.4426950408889634)
    return np.exp2((x * log2e).astype(x.dtype).astype(np.float64)).astype(x.dtype)


def biased(x: Any) -> Any:
    """3 ulp too large, but for e^0 = 1: as bad a library as the bound allows, and rounded."""
    ulps = np.where(x == 0.0, 0.0, 3.0 * 2.0 ** (1 - np.finfo(x.dtype).nmant - 1))
    return (np.exp(x.astype(np.float64)) * (1.0 + ulps)).astype(x.dtype)


@pytest.mark.parametrize("exp", [np.exp, powers, biased])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_online_kernel_keeps_to_the_bound(exp: Any, dtype: Any) -> None:
    """Rows that make it rescale at every step, by little and by much, and ordinary ones."""
    rng = np.random.default_rng(3)
    steps = np.arange(300.0)
    rows = np.stack([s * steps for s in (1e-5, 1e-3, 1e-2, 0.1, 1.0)] + [rng.normal(size=300)])
    x = (rows + rng.choice([0.0, 100.0], (6, 1))).astype(dtype)
    name = np.dtype(dtype).name
    exact = softmax_ref.softmax(x, certify=("ulp", "float64", 2.0**-10))
    bound = OPS["softmax"].bound("forward", {"x": x}, {}, formats.get(name))["y"]
    off = np.abs((online(x, exp).astype(np.float64) - exact.hi) - exact.lo)
    assert np.all(off <= bound + exact.radius)
    assert np.all(np.isfinite(bound))
    assert np.max(off / np.where(bound > 0.0, bound, 1.0)) > 0.01


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float32", "float64"])
def test_nan_is_data_and_warns_of_nothing(dtype):
    x = np.array([[np.nan, 1.0], [2.0, -np.inf], [-np.nan, -np.inf]]).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = softmax_ref.softmax(x)
    np.testing.assert_array_equal(np.asarray(y), [[np.nan] * 2, [1.0, 0.0], [np.nan] * 2])


def test_logsumexp_is_what_mpmath_says_and_knows_its_special_rows() -> None:
    x = np.array([[1.5, -2.0, 30.0], [-np.inf, 0.25, -np.inf]], np.float32)
    answer = softmax_ref.logsumexp(x, certify=("ulp", "float64", 2.0**-20))
    with mpmath.workdps(40):
        exact = mpmath.log(mpmath.exp(1.5) + mpmath.exp(-2) + mpmath.exp(30))
        off = abs(mpmath.mpf(float(answer.hi[0])) + float(answer.lo[0]) - exact)
    assert off <= float(answer.radius[0])
    assert float(np.asarray(answer)[1]) == 0.25
    rows = np.array([[-np.inf] * 2, [np.inf, 1.0], [np.nan, 1.0]], np.float32)
    np.testing.assert_array_equal(softmax_ref.logsumexp(rows), [-np.inf, np.inf, np.nan])
    assert softmax_ref.logsumexp(x, axis=None).shape == ()
    dx = np.asarray(softmax_ref.logsumexp_backward(np.ones(2, np.float32), x))
    np.testing.assert_array_equal(dx[1], [0.0, 1.0, 0.0])
