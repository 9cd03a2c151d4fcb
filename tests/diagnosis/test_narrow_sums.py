"""Kernels that compute in 16 bits are proven in any order of their sums; others are not."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refkernels import explain
from refkernels.diagnosis import narrow_sums
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.fit import Fit

F = np.float32
KINDS: dict[str, Any] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def drawn(kind: Any, seed: int = 1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x, dy = ((rng.standard_normal((12, 64)) * scale).astype(kind) for scale in (3.0, 1.0))
    e = np.exp(x.astype(float) - x.astype(float).max(-1, keepdims=True))
    return x, dy, (e / e.sum(-1, keepdims=True)).astype(F).astype(kind)


def gradient(dy: Any, y: Any, narrow: bool) -> Any:
    """y (dy - Σ y dy), added in pairs of any two terms; in 16 bits rounded at every step."""
    kind = dy.dtype if narrow else F
    dy, y = dy.astype(kind), y.astype(kind)
    terms = np.random.default_rng(0).permutation((y * dy).T)
    while len(terms) > 1:
        terms = terms[::2] + terms[1::2]
    return (y * (dy - terms[0][:, None]).astype(kind)).astype(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_arithmetic_in_16_bits_is_proven_in_any_order_of_sums(kind: str) -> None:
    x, dy, y = drawn(KINDS[kind])
    found = explain("softmax", {"dy": dy, "x": x}, {"dx": gradient(dy, y, True)}, {}, "backward")
    assert (found.cause, found.confidence) == ("narrow_intermediates", "proven")
    assert found.candidates[0].details["format"] == kind


def test_another_arithmetic_is_not_told_as_one_in_16_bits() -> None:
    tried = 0
    for seed, kind in enumerate(KINDS.values()):
        x, dy, y = drawn(kind, seed)
        right, narrow = gradient(dy, y, False), gradient(dy, y, True)
        for dx in (right, right * F(2), narrow.astype(F) * F(1.01), right + narrow.astype(F)):
            problem, outputs = one_kernel(
                "softmax", {"dy": dy, "x": x}, {"dx": dx.astype(kind)}, {}, "backward"
            )
            fits = {"dx": Fit("dx", "exceeds_bound", (), 2.0, 9.0, 1, 0)}
            assert not list(narrow_sums.find(problem, outputs, fits))
            tried += 1
    assert tried == 8
