"""Attention: queries without keys, one key, large logits."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refkernels.arithmetic import formats
from refkernels.attention_ref import attention, attention_backward
from refkernels.attention_ref.cases import attention_cases
from refkernels.scaled_attention_ref import OPS, scaled_attention

RNG = np.random.default_rng(20)
Q, DY = (RNG.standard_normal((2, 4, 3, 5)).astype(np.float32) for _ in range(2))
K, V = (RNG.standard_normal((2, 2, 7, 5)).astype(np.float32) for _ in range(2))
KEEP = RNG.random((2, 4, 3, 7)) < 0.6
KEEP[..., 0] = True


def test_a_query_without_keys_gives_zero_and_has_no_gradient() -> None:
    keep = KEEP.copy()
    keep[1, 2, 1] = False
    y = attention(Q, K, V, keep=keep)
    back = attention_backward(DY, Q, K, V, keep=keep)
    for enclosure in (y, back.dq):
        assert np.all(enclosure.hi[1, 2, 1] == 0.0)
        assert np.all(enclosure.radius[1, 2, 1] == 0.0)
    others = attention_backward(
        np.where(keep.any(-1)[..., None], DY, np.float32(9)), Q, K, V, keep=keep
    )
    np.testing.assert_array_equal(others.dv.hi, back.dv.hi)


def test_one_key_is_copied_and_has_no_gradient_of_scores() -> None:
    y = attention(Q, K[:, :, :1], V[:, :, :1], certify=("rounding", "float32"))
    wanted = np.broadcast_to(np.repeat(V[:, :, :1], 2, axis=1), y.shape)
    np.testing.assert_array_equal(y.round("float32")[0], wanted)
    back = attention_backward(DY, Q, K[:, :, :1], V[:, :, :1])
    assert not np.any(back.dq.hi)
    assert not np.any(back.dq.radius)


def test_a_case_of_large_logits_is_answered_in_every_format() -> None:
    (case,) = [entry for entry in attention_cases() if "logits[size=10000" in entry.name]
    for dtype in case.dtypes:
        inputs, params = case.build(dtype)
        gradients = attention_backward(**inputs, **params, certify=("ulp", dtype, 0.01))
        assert all(np.isfinite(gradient.radius).all() for gradient in gradients)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"cu_seqlens_q": np.array([0, 3])}, "cu_seqlens_k is absent"),
        ({"cu_seqlens_q": np.array([0, 2, 1]), "cu_seqlens_k": np.array([0, 3, 7])}, "must rise"),
        ({"cu_seqlens_q": np.array([0, 3]), "cu_seqlens_k": np.array([0, 3, 7])}, "has 1 sequence"),
        ({"block_table": np.array([[0], [9]]), "lengths": np.array([2, 2])}, "one of the 2"),
        ({"block_table": np.array([[0], [1]])}, "need `lengths`"),
    ],
)  # fmt: skip
def test_sequences_that_do_not_fit_are_refused(inputs: dict[str, Any], message: str) -> None:
    paged = "block_table" in inputs
    q, k, v = (Q, K, V) if paged else (Q[0], K[0], V[0])
    with pytest.raises(ValueError, match=message):
        attention(q, k, v, **inputs)


def _streamed(arrays: dict[str, Any], to: Any) -> Any:
    """Block by block in float32, 256 e^(s - m) kept in `to` and their sum before, as on Hopper."""
    q, k, v = (np.float32(arrays[name]) for name in "qkv")
    of_q, of_k, of_v = (np.float32(arrays[f"descale_{name}"]) for name in "qkv")
    s = q @ np.swapaxes(k, -1, -2) * (np.float32(q.shape[-1] ** -0.5) * of_q * of_k)
    m, total, y = np.full((*q.shape[:-1], 1), -np.inf, np.float32), np.float32(0), np.float32(0)
    for j in range(0, k.shape[-2], 64):
        block = s[..., j : j + 64]
        new = np.maximum(m, block.max(-1, keepdims=True))
        back, p = np.exp(m - new), np.exp(block - new) * np.float32(256)
        kept = p.astype(to).astype(np.float32)
        total, y = total * back + p.sum(-1, keepdims=True), y * back + kept @ v[..., j : j + 64, :]
        m = new
    return (y / total * of_v).astype(ml_dtypes.bfloat16)


def test_weights_may_be_kept_in_float8_and_fewer_digits_err_by_more() -> None:
    (case,) = [case for case in OPS[0].cases() if case.parameters.get("keys") == 200]
    arrays, _ = case.build("float32")
    exact = scaled_attention(**arrays).y
    bound = OPS[0].bound("forward", arrays, {}, formats.get("bfloat16"))["y"]
    error = [
        abs(_streamed(arrays, to) - exact.hi)
        for to in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float32)
    ]
    assert np.all(error[0] <= bound)
    assert np.all(error[2] <= bound)
    assert error[2].max() < error[0].max() < error[1].max()
