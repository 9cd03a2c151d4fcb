"""Right attentions: softmax before or after the product, online in blocks, split keys, sums in
orders, exp2, wider formats."""

import functools
import math

import numpy as np
from _ways import in_format
from matmul import PRODUCTS


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


def _kernel(compute, *how):
    def attention(q, k, v, mask=None, keep=None, lengths=None, scale=None, causal="none"):
        given = {name: a for name, a in locals().items() if name not in ("compute", "how")}
        return compute(given, *how)

    return attention


_KERNELS = {
    "exp2": _kernel(functools.partial(_plain, exp=_exp2)),
    "nan_where_no_key": _kernel(_unguarded), "zero_where_all_scores_infinite": _kernel(_guarded),
    "online": _kernel(_online, 1), "flash": _kernel(_online, 16), "flash_by_4": _kernel(_online, 4),
    "merged": _kernel(_merged, 2), "merged_by_4": _kernel(_merged, 4),
}  # fmt: skip
for _number, _name in enumerate(
    ("library", "sequential", "reversed", "shuffled", "fused", "split_k", "split_tf32")
):
    _KERNELS[_name] = _kernel((_plain, _deferred)[_number % 2], PRODUCTS[_name], _last)
_WIDE = {"float64": np.float64, "float32_inside": np.float32}
_KERNELS |= {name: in_format(kind, _KERNELS["library"]) for name, kind in _WIDE.items()}
globals().update({f"{name}_attention": kernel for name, kernel in _KERNELS.items()})
