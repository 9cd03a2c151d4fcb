"""Clipping against mpmath, by the definitions; norms of 0, inf and NaN; what is refused."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.clip_ref import clip_by_global_norm, clip_by_norm, clip_by_value
from refkernels.op import DTYPES

TENSOR = np.repeat([0, 1, 2], [4, 1, 7])


def holds(enclosure: Enclosure, place: tuple[int, ...], z: Any) -> bool:
    hi, lo, radius = (
        mpmath.mpf(float(part[place])) for part in (enclosure.hi, enclosure.lo, enclosure.radius)
    )
    return bool(abs(z - (hi + lo)) <= radius + abs(z) * mpmath.mpf(2) ** -200)


def gradients(dtype: str, size: float = 3.0) -> tuple[Any, list[Any]]:
    grads = size * np.random.default_rng(2).standard_normal(TENSOR.size)
    rounded = grads.astype(np.float16 if dtype == "float16" else np.float32)
    return rounded, [mpmath.mpf(float(one)) for one in rounded]


def norm(numbers: list[Any]) -> Any:
    return mpmath.sqrt(mpmath.fsum(one * one for one in numbers))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", ["eps", "max"])
@pytest.mark.parametrize("norm_type", [2.0, math.inf])
@pytest.mark.parametrize("size", [3.0, 0.01])
def test_the_global_norm_follows_the_definition(
    dtype: str, way: str, norm_type: float, size: float
) -> None:
    with mpmath.workprec(300):
        grads, exact = gradients(dtype, size)
        n = norm(exact) if norm_type == 2.0 else max(map(abs, exact))
        most = mpmath.mpf(0.3)
        c = min(1, most / (n + mpmath.mpf(1e-6))) if way == "eps" else most / max(n, most)
        answer = clip_by_global_norm(grads, TENSOR, max_norm=0.3, way=way, norm_type=norm_type)
        assert holds(answer.norm, (), n)
        assert all(holds(answer.clipped, (i,), c * g) for i, g in enumerate(exact))
        assert (c < 1) == (size > 1)


def test_each_tensor_has_a_norm_of_its_own() -> None:
    with mpmath.workprec(300):
        grads, exact = gradients("float32")
        norms = [norm([g for g, t in zip(exact, TENSOR, strict=True) if t == k]) for k in range(3)]
        most = float(min(norms)) + 0.125
        answer = clip_by_norm(grads, TENSOR, max_norm=most)
        factors = [mpmath.mpf(most) / max(n, mpmath.mpf(most)) for n in norms]
        assert all(holds(answer, (i,), factors[TENSOR[i]] * g) for i, g in enumerate(exact))
        assert 0 < sum(c == 1 for c in factors) < 3


def test_values_are_clamped_and_nan_stays() -> None:
    x = np.array([0.25, -0.0, 2.0, -3.0, np.inf, -np.inf, np.nan])
    clamped = np.asarray(clip_by_value(x, max_value=0.5))
    np.testing.assert_array_equal(clamped, [0.25, 0.0, 0.5, -0.5, 0.5, -0.5, np.nan])


def test_norms_of_zero_infinity_and_nan() -> None:
    """The seed's [3, 0], [0, 4, 0] as well: a norm of M is left alone, but for PyTorch's 1e-6."""
    grads, tensor = np.array([3.0, 0.0, 0.0, 4.0, 0.0]), np.array([0, 0, 1, 1, 1])
    kept = clip_by_global_norm(grads, tensor, max_norm=5.0, way="max")
    np.testing.assert_array_equal(np.asarray(kept.clipped), grads)
    shrunk = np.asarray(clip_by_global_norm(grads, tensor, max_norm=5.0).clipped)
    np.testing.assert_allclose(shrunk, grads / (1 + 2e-7), rtol=1e-15)
    for way in ("eps", "max"):
        zero = clip_by_global_norm(0 * grads, tensor, way=way)
        np.testing.assert_array_equal(np.asarray(zero.clipped), 0 * grads)
        for wild, left in ((np.inf, 0.0), (np.nan, np.nan)):
            given = np.where(np.arange(5) == 1, wild, grads)
            answer = clip_by_global_norm(given, tensor, way=way)
            expected = [left, np.nan, left, left, left]
            np.testing.assert_array_equal(np.asarray(answer.clipped), expected)
            assert np.array_equal(np.asarray(answer.norm), wild, equal_nan=True)
    assert np.asarray(clip_by_norm(np.where(grads == 3.0, np.nan, grads), tensor))[3] == 1.0


def test_wrong_norms_ways_and_lists_are_refused() -> None:
    grads, tensor = np.ones(3), np.array([0, 0, 1])
    for params, says in (
        ({"max_norm": -1.0}, "at least 0"),
        ({"norm_type": 1.0}, "2 or inf"),
        ({"way": "tf"}, "'eps' or 'max'"),
    ):
        with pytest.raises(ValueError, match=says):
            clip_by_global_norm(grads, tensor, **params)
    with pytest.raises(ValueError, match="of the same length"):
        clip_by_norm(grads, tensor[:2])
    with pytest.raises(ValueError, match="below its own length"):
        clip_by_norm(grads, tensor - 1)
