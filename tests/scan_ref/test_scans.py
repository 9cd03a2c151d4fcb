"""Scans: identities of the definition, other shapes of the same question, what is refused."""

from typing import Any

import numpy as np
import pytest

from refkernels.scan_ref import linear_attention, selective_scan
from refkernels.testing import assert_kernel

RNG = np.random.default_rng(42)
Q, K = (RNG.standard_normal((2, 9, 4)).astype(np.float32) for _ in range(2))
V = RNG.standard_normal((2, 9, 3)).astype(np.float32)
G = -RNG.exponential(size=(2, 9)).astype(np.float32)


def written(decay_after: bool) -> Any:
    """Linear attention with decays as a user writes it."""
    state, y = np.zeros((2, 4, 3), np.float32), np.empty_like(V)
    for t in range(9):
        decay, added = np.exp(G[:, t, None, None]), K[:, t, :, None] * V[:, t, None, :]
        state = decay * (state + added) if decay_after else decay * state + added
        y[:, t] = np.einsum("rd,rde->re", Q[:, t] / np.float32(2.0), state)
    return {"y": y, "state": state}


def test_a_new_term_that_decays_is_refused() -> None:
    inputs = {"q": Q, "k": K, "v": V, "g": G}
    assert_kernel("linear_attention", inputs, written(False))
    with pytest.raises(AssertionError, match="exceeds_bound"):
        assert_kernel("linear_attention", inputs, written(True))


ONES = np.ones((5, 3, 2), np.float32)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda: linear_attention(Q, K, V[:, :8]), "whose t is 8"),
        (
            lambda: selective_scan(ONES, ONES[..., 0], ONES[0, :, 0], ONES[:, :2], ONES[:, :2]),
            "multiple of g",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(question: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        question()
