"""Right attentions: softmax before or after the product, online in blocks, split keys, sums in
orders, exp2, wider formats."""

import functools
import math

import numpy as np
from matmul import split_tf32_matmul as _split_tf32


def _problem(q, k, v, mask, keep, lengths, scale, causal):
    """q, k, v with equal heads, the additive mask or None, which keys take part, the scale."""
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        group = q.shape[-3] // k.shape[-3]
        k, v = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)
        if lengths is not None and lengths.shape[-1:] not in ((), (1,)):
            lengths = np.repeat(lengths, group, axis=-1)
    m, n = q.shape[-2], k.shape[-2]
    part = np.ones((m, n), bool)
    if causal != "none":
        part = np.tril(part, n - m if causal == "bottom_right" else 0)
    part = np.broadcast_to(part, (*q.shape[:-2], m, n))
    if keep is not None:
        part = part & keep
    if lengths is not None:
        part = part & (np.arange(n) < lengths[..., None, None])
    if mask is not None:
        part = part & (mask != -np.inf)
        mask = np.where(mask == -np.inf, 0, mask).astype(q.dtype)
    factor = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    return q, k, v, mask, part, q.dtype.type(factor)


def _turned(k):
    return np.swapaxes(k, -1, -2)


def _scores(q, k, mask, scale, product=np.matmul):
    s = product(q, _turned(k)) * scale
    return s if mask is None else s + mask


def _weights(s, part, exp=np.exp):
    """e^(s - m) of the keys that take part, and their sum, 1 if none does."""
    top = np.max(s, axis=-1, keepdims=True, initial=-np.inf, where=part)
    top = np.where(part.any(-1, keepdims=True), top, 0).astype(s.dtype)
    return np.where(part, exp(s - top), 0).astype(s.dtype)


def _total(total, part):
    return np.where(part.any(-1), total, 1).astype(total.dtype)[..., None]


def _plain(given, product=np.matmul, add=lambda e: e.sum(-1), exp=np.exp):
    q, k, v, mask, part, scale = _problem(*given.values())
    e = _weights(_scores(q, k, mask, scale, product), part, exp)
    return product(e / _total(add(e), part), v)


def _deferred(given, product=np.matmul, add=lambda e: e.sum(-1), exp=np.exp):
    q, k, v, mask, part, scale = _problem(*given.values())
    e = _weights(_scores(q, k, mask, scale, product), part, exp)
    return product(e, v) / _total(add(e), part)


def _unguarded(given):
    """0 / 0 for a query of which no key takes part."""
    q, k, v, mask, part, scale = _problem(*given.values())
    e = _weights(_scores(q, k, mask, scale), part)
    return np.matmul(e / e.sum(-1, keepdims=True), v)


def _guarded(given):
    """0 also for a query of which every score is -inf."""
    q, k, v, mask, part, scale = _problem(*given.values())
    s = np.where(part, _scores(q, k, mask, scale), -np.inf).astype(q.dtype)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    e = np.exp(s - np.where(top == -np.inf, 0, top).astype(q.dtype))
    total = e.sum(-1, keepdims=True)
    return np.matmul(e, v) / np.where(total == 0, 1, total).astype(q.dtype)


def _in_order(a, b, order):
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    total = np.zeros(shape, a.dtype)
    for k in order:
        total = total + a[..., :, k, None] * b[..., k, None, :]
    return total


def _sequential(a, b):
    return _in_order(a, b, range(a.shape[-1]))


def _backwards(a, b):
    return _in_order(a, b, range(a.shape[-1] - 1, -1, -1))


def _shuffled(a, b):
    return _in_order(a, b, np.random.default_rng(0).permutation(a.shape[-1]))


def _fused(a, b):
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    total = np.zeros(shape, a.dtype)
    for k in range(a.shape[-1]):
        wide = a[..., :, k, None].astype(np.float64) * b[..., k, None, :]
        total = (wide + total).astype(a.dtype)
    return total


def _split(a, b):
    parts = [np.matmul(a[..., i::3], b[..., i::3, :]) for i in range(3)]
    return functools.reduce(np.add, parts)


def _exp2(x):
    return np.exp2(x * x.dtype.type(math.log2(math.e)))


def _last(e):
    return np.add.accumulate(e, axis=-1)[..., -1] if e.shape[-1] else e.sum(-1)


def _online(given, size):
    """The keys in blocks: the largest score, the sum and the product so far are corrected."""
    q, k, v, mask, part, scale = _problem(*given.values())
    s = _scores(q, k, mask, scale)
    top = np.full(s.shape[:-1], -np.inf, q.dtype)
    total = np.zeros_like(top)
    y = np.zeros((*top.shape, v.shape[-1]), q.dtype)
    for i in range(0, s.shape[-1], size):
        there = part[..., i : i + size]
        block = np.where(there, s[..., i : i + size], -np.inf).astype(q.dtype)
        larger = np.maximum(top, block.max(-1))
        pivot = np.where(larger == -np.inf, 0, larger).astype(q.dtype)
        still = np.exp(top - pivot)
        e = np.where(there, np.exp(block - pivot[..., None]), 0).astype(q.dtype)
        total = total * still + e.sum(-1)
        y = y * still[..., None] + np.matmul(e, v[..., i : i + size, :])
        top = larger
    return y / _total(total, part)


def _merged(given, pieces):
    """Pieces of the keys by several programs, each with its largest score and sum, then merged."""
    q, k, v, mask, part, scale = _problem(*given.values())
    s = np.where(part, _scores(q, k, mask, scale), -np.inf).astype(q.dtype)
    size = max(-(-s.shape[-1] // pieces), 1)
    tops, sums, products = [], [], []
    for i in range(0, s.shape[-1], size):
        there, block = part[..., i : i + size], s[..., i : i + size]
        top = np.max(block, axis=-1)
        e = _weights(block, there)
        tops.append(top)
        sums.append(e.sum(-1))
        products.append(np.matmul(e, v[..., i : i + size, :]))
    if not tops:
        return np.zeros((*s.shape[:-1], v.shape[-1]), q.dtype)
    whole = functools.reduce(np.maximum, tops)
    pivot = np.where(whole == -np.inf, 0, whole).astype(q.dtype)
    factors = [np.exp(top - pivot) for top in tops]
    total = functools.reduce(np.add, [f * piece for f, piece in zip(factors, sums, strict=True)])
    y = functools.reduce(np.add, [f[..., None] * y for f, y in zip(factors, products, strict=True)])
    return y / _total(total, part)


def _in(dtype, given):
    wide = {n: a.astype(dtype) if n in ("q", "k", "v", "mask") and a is not None else a
            for n, a in given.items()}  # fmt: skip
    return _plain(wide).astype(given["q"].dtype)


def plain_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _plain(locals())


def deferred_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _deferred(locals())


def exp2_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _plain(locals(), exp=_exp2)


def nan_where_no_key_attention(
    q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"
):
    return _unguarded(locals())


def zero_where_all_scores_infinite_attention(
    q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"
):
    return _guarded(locals())


def sequential_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _plain(locals(), _sequential, _last)


def reversed_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _plain(locals(), _backwards)


def shuffled_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _deferred(locals(), _shuffled)


def fused_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _deferred(locals(), _fused, _last)


def split_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _plain(locals(), _split)


def online_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _online(locals(), 1)


def flash_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _online(locals(), 16)


def flash_by_4_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _online(locals(), 4)


def merged_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _merged(locals(), 2)


def merged_by_4_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _merged(locals(), 4)


def float64_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _in(np.float64, locals())


def float32_inside_attention(
    q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"
):
    return _in(np.float32, locals())


def split_tf32_attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
    return _plain(locals(), _split_tf32)
