"""Attention: queries without keys, one key, large logits."""

from typing import Any

import numpy as np
import pytest

from refkernels.attention_ref import attention, attention_backward
from refkernels.attention_ref.cases import attention_cases

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


CUTS = np.array([0, 3, 3, 9]), np.array([0, 5, 7, 12])  # the second sequence has no query
SLOPES = np.float32([0.5, 0.25, 0.125, 0.0625])


def test_packed_sequences_are_answered_as_each_alone() -> None:
    q, k, v = (
        RNG.standard_normal((h, n, 5)).astype(np.float32) for h, n in ((4, 9), (2, 12), (2, 12))
    )
    options = {"causal": "bottom_right", "window": (3, 0), "alibi_slopes": SLOPES}
    of_q, of_k = CUTS
    packed = attention(q, k, v, cu_seqlens_q=of_q, cu_seqlens_k=of_k, **options)
    for s in (0, 2):
        queries, keys = (slice(*ends[s : s + 2]) for ends in CUTS)
        alone = attention(q[:, queries], k[:, keys], v[:, keys], **options)
        assert np.all(
            abs(alone.hi - packed.hi[:, queries]) <= alone.radius + packed.radius[:, queries]
        )
    heads_last = (np.swapaxes(a, 0, 1) for a in (q, k, v))
    other = attention(*heads_last, cu_seqlens_q=of_q, cu_seqlens_k=of_k, layout="bshd", **options)
    np.testing.assert_array_equal(np.swapaxes(other.hi, 0, 1), packed.hi)


@pytest.mark.parametrize("is_packed", [False, True])
def test_paged_keys_are_answered_as_those_of_each_sequence(is_packed: bool) -> None:
    pages = [RNG.standard_normal((7, 2, 4, 5)).astype(np.float32) for _ in "kv"]
    for page in pages:
        page[[2, 4]] = np.nan  # belong to no sequence
    table, lengths, queries = np.array([[5, 1, -1], [0, 6, 3]]), np.array([6, 11]), (2, 3)
    given = [RNG.standard_normal((4, n, 5)).astype(np.float32) for n in queries]
    options = {"causal": "bottom_right", "alibi_slopes": SLOPES, "sinks": np.float32([1, 0, 2, 3])}
    ends = {"block_table": table, "lengths": lengths, **options}
    if is_packed:
        packed = attention(
            np.concatenate(given, 1), *pages, cu_seqlens_q=np.array([0, 2, 5]), **ends
        )
    for s, q in enumerate(given):
        k, v = (np.concatenate(list(a[table[s]]), 1)[:, : lengths[s]] for a in pages)
        alone = attention(q, k, v, **options)
        whole, part = (
            (packed, np.s_[:, 2 * s : 2 + 3 * s])
            if is_packed
            else (attention(np.stack([q, q]), *pages, **ends), np.s_[s])
        )
        apart = abs(alone.hi - whole.hi[part])
        assert np.all(apart <= alone.radius + whole.radius[part])


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
