"""Scans: identities of the definition, other shapes of the same question, what is refused."""

from typing import Any

import numpy as np
import pytest

from refkernels.scan_ref import linear_attention, linear_attention_backward, selective_scan
from refkernels.testing import assert_kernel

RNG = np.random.default_rng(42)
Q, K = (RNG.standard_normal((2, 9, 4)).astype(np.float32) for _ in range(2))
V = RNG.standard_normal((2, 9, 3)).astype(np.float32)
G = -RNG.exponential(size=(2, 9)).astype(np.float32)


def test_two_halves_are_the_whole_where_the_state_is_passed_on() -> None:
    q, k, v = (np.round(4.0 * a) for a in (Q, K, V))  # whole numbers: every sum is exact
    whole = linear_attention(q, k, v, scale=1.0)
    first = linear_attention(q[:, :4], k[:, :4], v[:, :4], scale=1.0)
    state = np.asarray(first.state, np.float32)
    rest = linear_attention(q[:, 4:], k[:, 4:], v[:, 4:], initial_state=state, scale=1.0)
    np.testing.assert_array_equal(np.asarray(rest.y), np.asarray(whole.y)[:, 4:])
    np.testing.assert_array_equal(np.asarray(rest.state), np.asarray(whole.state))


def test_a_selective_scan_is_linear_attention_of_each_head() -> None:
    x, b, c = (
        RNG.standard_normal((7, h, n)).astype(np.float32) for h, n in ((4, 3), (2, 5), (2, 5))
    )
    dt, a = np.float32(2.0) ** RNG.integers(-3, 0, (7, 4)), -np.float32([1.0, 2.0, 4.0, 0.5])
    dt = dt.astype(np.float32)
    whole = selective_scan(x, dt, a, b, c)
    for h in range(4):
        q, k, v = c[:, h // 2], b[:, h // 2], x[:, h] * dt[:, h, None]  # exact: powers of two
        alone = linear_attention(q, k, v, dt[:, h] * a[h], scale=1.0)
        apart = abs(np.asarray(alone.y) - np.asarray(whole.y)[:, h])
        assert np.all(apart <= alone.y.radius + whole.y.radius[:, h])


def test_a_gradient_is_that_of_the_state_carried_back() -> None:
    """dv of linear attention is linear attention from the last step to the first, with q and k
    exchanged."""
    dy = RNG.standard_normal(V.shape).astype(np.float32)
    dv = linear_attention_backward(dy, Q, K, V).dv
    back = linear_attention(K[:, ::-1], Q[:, ::-1], dy[:, ::-1]).y
    apart = abs(np.asarray(dv) - np.asarray(back)[:, ::-1])
    assert np.all(apart <= dv.radius + back.radius[:, ::-1])


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


def test_all_pairs_of_steps_are_right_and_no_decay_is_wrong() -> None:
    """y = scale (Q Kᵀ ∘ e^(c_i - c_j)) V for j <= i, with c the running sum of g."""
    for g in (G, 0 * G):
        c = np.cumsum(g, axis=-1)
        decay = np.tril(np.exp(c[..., :, None] - c[..., None, :]))
        y = np.float32(0.5) * (np.matmul(Q, K.swapaxes(-1, -2)) * decay) @ V
        state = np.matmul((K * np.exp(c[..., -1:] - c)[..., None]).swapaxes(-1, -2), V)
        question = "linear_attention", {"q": Q, "k": K, "v": V, "g": G}, {"y": y, "state": state}
        if g is G:
            assert_kernel(*question)
        else:
            with pytest.raises(AssertionError, match="no digit is right"):
                assert_kernel(*question)
