"""The formulas of scaled dot-product attention and of its gradients.

    s = c(scale q kᵀ) - slope |i - j| + mask,   p_ij = e^(s_ij - m_i) / S_i,
    y = p v,   lse = m + log S

    dv = pᵀ dy,   ds = p (dp - D),  dp = dy vᵀ,  D_i = sum_j p_ij dp_ij,
    dq = scale ds k,   dk = scale dsᵀ q

with c(s) = s, or softcap tanh(s / softcap), whose slope 1 - tanh² is then a factor of ds,
over the keys that take part (`layout.present`); m_i is the largest of their scores, S_i the sum of
their e^(s_ij - m_i). Where none takes part, p is 0. D_i is also sum_e dy_ie y_ie.

The certified formula subtracts the score, and dp, of one key near the largest (`top`), on which no
result depends: so where no other key takes part, y is that key's v, and its gradients are 0.

Sources: Vaswani et al. (2017), "Attention is all you need", arXiv:1706.03762; Dao et al. (2022),
"FlashAttention", arXiv:2205.14135.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.attention_ref.layout import distances, present
from refkernels.softmax_ref.formulas import capped, exponential, pivot


def turned(xp: Any, a: Any) -> Any:
    """aᵀ."""
    return xp.rearrange(lambda part: np.swapaxes(part, -1, -2), a)


def factor(xp: Any, q: Any, scale: Any) -> Any:
    return 1 / xp.sqrt(xp.number(q.shape[-1])) if scale is None else scale


def as_is(a: Any) -> Any:
    """a, kept nowhere."""
    return a


def biased(
    xp: Any, s: Any, mask: Any = None, alibi_slopes: Any = None, own: Any = None,
    sunk: bool = False, kept: Any = as_is, **_: Any,
) -> Any:  # fmt: skip
    """The scores with what is added to them. `kept` is applied to each result."""
    if alibi_slopes is not None:
        slopes = xp.reshape(alibi_slopes, (*alibi_slopes.shape, 1))
        s = kept(s - kept(slopes * xp.array(distances(s.shape, own, sunk))))
    return s if mask is None else kept(s + mask)


def scores(
    xp: Any, q: Any, k: Any, scale: Any = None, mask: Any = None, softcap: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    s = capped(xp, xp.matmul(q, turned(xp, k)) * factor(xp, q, scale), softcap)
    return biased(xp, s, mask, **options)


def uncapped(xp: Any, ds: Any, q: Any, k: Any, options: Any) -> Any:
    """The gradient of scale q kᵀ, from that of the scores."""
    softcap = options.get("softcap")
    if softcap is None:
        return ds
    s = xp.matmul(q, turned(xp, k)) * factor(xp, q, options.get("scale"))
    return ds * (1 - xp.square(xp.tanh(s / softcap)))


def total(xp: Any, e: Any, lanes: Any) -> Any:
    """S; 1 where none takes part."""
    if lanes is None:
        return xp.sum(e)
    return xp.where(lanes.any(axis=-1, keepdims=True), xp.sum(e), xp.number(1))


def weights(xp: Any, s: Any, lanes: Any) -> Any:
    """p."""
    e = exponential(xp, s - pivot(xp, s, lanes), lanes)
    return e / total(xp, e, lanes)


def log_total(xp: Any, s: Any, lanes: Any) -> Any:
    """lse, from the scores."""
    m = pivot(xp, s, lanes)
    return without_keys(xp, m + xp.log(xp.sum(exponential(xp, s - m, lanes))))


def weighted(xp: Any, e: Any, v: Any, options: dict[str, Any], kept: Any = as_is) -> Any:
    """e v, e in the format that `weights` names, if any, times a number; else `kept`."""
    format, offset = options.get("weights") or (None, 1)
    if format is None:
        return xp.matmul(kept(e), v)
    return xp.matmul(xp.narrow(e * xp.number(offset), format), v) / xp.number(offset)


def without_keys(xp: Any, row: Any) -> Any:
    """A number for each query, without the axis of keys."""
    return xp.reshape(row, row.shape[:-1])


def plain(xp: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    s = scores(xp, q, k, **options)
    lanes = present(s.shape, **options)
    return xp.matmul(weights(xp, s, lanes), v), log_total(xp, s, lanes)


def deferred(xp: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    """(e v) / S, as in streaming kernels."""
    s = scores(xp, q, k, **options)
    lanes = present(s.shape, **options)
    e = exponential(xp, s - pivot(xp, s, lanes), lanes)
    return weighted(xp, e, v, options) / total(xp, e, lanes), log_total(xp, s, lanes)


def stored(xp: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    """One kernel for each op: every result is stored in the storage format."""
    s = xp.store(xp.store(xp.matmul(q, turned(xp, k))) * factor(xp, q, options.get("scale")))
    s = capped(xp, s, options.get("softcap"), xp.store)
    s = biased(xp, s, kept=xp.store, **options)
    lanes = present(s.shape, **options)
    return xp.matmul(xp.store(weights(xp, s, lanes)), v), log_total(xp, s, lanes)


def _from_top(xp: Any, s: Any, top: Any) -> Any:
    """s minus the top key's score: 0 at that key, and undefined where s is."""
    is_top, highest = (
        np.arange(s.shape[-1]) == top[..., None],
        xp.take_along_axis(s, top[..., None]),
    )
    return xp.where(is_top, highest * 0, s - highest)


def certified(xp: Any, q: Any, k: Any, v: Any, top: Any, **options: Any) -> Any:
    s = scores(xp, q, k, **options)
    lanes = present(s.shape, **options)
    e = exponential(xp, _from_top(xp, s, top), lanes)
    highest = xp.take_along_axis(s, top[..., None])
    lse = without_keys(xp, highest + xp.log(xp.sum(e)))
    return xp.matmul(e, v) / total(xp, e, lanes), lse


# --- backward ---------------------------------------------------------------------------------


def gradients(xp: Any, p: Any, ds: Any, dy: Any, q: Any, k: Any, options: Any) -> Any:
    """dq, dk, dv."""
    scaling, ds = factor(xp, q, options.get("scale")), uncapped(xp, ds, q, k, options)
    dq, dk = xp.matmul(ds, k) * scaling, xp.matmul(turned(xp, ds), q) * scaling
    return dq, dk, xp.matmul(turned(xp, p), dy)


def composed(xp: Any, dy: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    s = scores(xp, q, k, **options)
    p = xp.saved(weights(xp, s, present(s.shape, **options)))
    dp = xp.matmul(dy, turned(xp, v))
    return gradients(xp, p, p * (dp - xp.sum(p * dp)), dy, q, k, options)


def recomputed(xp: Any, dy: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    """As in FlashAttention: p from the log of the sum, D from the stored y."""
    s = scores(xp, q, k, **options)
    lanes = present(s.shape, **options)
    m = pivot(xp, s, lanes)
    e = exponential(xp, s - m, lanes)
    denominator = total(xp, e, lanes)
    y = xp.saved(xp.matmul(e, v) / denominator)
    p = exponential(xp, s - (m + xp.log(denominator)), lanes)
    dp = xp.matmul(dy, turned(xp, v))
    return gradients(xp, p, p * (dp - xp.sum(dy * y)), dy, q, k, options)


def certified_gradients(xp: Any, dy: Any, q: Any, k: Any, v: Any, top: Any, **options: Any) -> Any:
    s = scores(xp, q, k, **options)
    lanes = present(s.shape, **options)
    e = exponential(xp, _from_top(xp, s, top), lanes)
    p = e / total(xp, e, lanes)
    dp = _from_top(xp, xp.matmul(dy, turned(xp, v)), top)
    return gradients(xp, p, p * (dp - xp.sum(p * dp)), dy, q, k, options)
