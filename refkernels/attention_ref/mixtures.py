"""Forms that cover every mixture of kernels' choices, so that one bound holds for all of them.

    scores     the scale applied to the product, to q, or its root to both; divided by sqrt(d)
    e^d        by exp or exp2; online, rescaled block by block as in `softmax_ref.mixtures`, the
               sums of e and of e v alike
    p v        (e v) / S, (e v) (1 / S) or (e / S) v, e or e / S kept in the storage format
    softcap    in a step of its own, s / softcap by a division or a multiplication
    backward   p of the forward pass, or again from its log-sum-exp; D from p and dp, or from y

`streaming` keeps the scores in the working format, `materialised` every intermediate result in the
storage format: in 16 bits their bounds differ by orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refkernels.attention_ref import formulas
from refkernels.attention_ref.formulas import as_is, biased, factor, total, turned, without_keys
from refkernels.attention_ref.layout import present
from refkernels.softmax_ref.formulas import exponential, pivot
from refkernels.softmax_ref.mixtures import by_either, online

Keep = Callable[[Any], Any]


def _products(xp: Any, keep: Keep, q: Any, k: Any, options: dict[str, Any]) -> Any:
    scaling, k_transposed = factor(xp, q, options.get("scale")), turned(xp, k)
    product = keep(xp.matmul(q, k_transposed))
    s = xp.either(keep(product * scaling), keep(xp.matmul(keep(q * scaling), k_transposed)))
    if options.get("scale") is None:
        s = xp.either(s, keep(product / xp.sqrt(xp.number(q.shape[-1]))))
    if options["rooted"]:
        root = xp.sqrt(scaling)
        s = xp.either(s, keep(xp.matmul(keep(q * root), keep(k_transposed * root))))
    return s


def _tanh(xp: Any, keep: Keep, s: Any, softcap: Any) -> Any:
    return keep(xp.tanh(keep(xp.either(s / softcap, s * (1 / softcap)))))


def _scores(xp: Any, keep: Keep, q: Any, k: Any, options: dict[str, Any]) -> Any:
    s, softcap = _products(xp, keep, q, k, options), options.get("softcap")
    s = s if softcap is None else keep(softcap * _tanh(xp, keep, s, softcap))
    return biased(xp, s, kept=keep, **options)


def _uncapped(xp: Any, keep: Keep, ds: Any, q: Any, k: Any, options: dict[str, Any]) -> Any:
    """The gradient of scale q kᵀ, from that of the scores."""
    softcap = options.get("softcap")
    if softcap is None:
        return ds
    slope = 1 - xp.square(_tanh(xp, keep, _products(xp, keep, q, k, options), softcap))
    return keep(ds) * keep(slope)


def _weights(xp: Any, keep: Keep, q: Any, k: Any, options: dict[str, Any]) -> Any:
    """s, the keys that take part, m, e and S."""
    s = _scores(xp, keep, q, k, options)
    lanes = present(s.shape, **options)
    m = pivot(xp, s, lanes)
    e = by_either(xp, s - m, lanes)
    slipped = online(xp, s, m, e)
    denominator = xp.either(total(xp, e, lanes), total(xp, slipped, lanes))
    return s, lanes, m, xp.either(e, slipped), denominator


def _output(xp: Any, e: Any, denominator: Any, v: Any, options: dict[str, Any]) -> Any:
    p = xp.store(xp.either(e / denominator, e * (1 / denominator)))
    sums = formulas.weighted(xp, e, v, options, xp.store)
    return xp.either(xp.matmul(p, v), xp.either(sums / denominator, sums * (1 / denominator)))


def _forward(xp: Any, keep: Keep, q: Any, k: Any, v: Any, options: dict[str, Any]) -> Any:
    _, lanes, m, e, denominator = _weights(xp, keep, q, k, options)
    y = _output(xp, e, denominator, v, options)
    if lanes is not None:  # where none takes part, lse is -inf
        denominator = xp.where(lanes.any(axis=-1, keepdims=True), denominator, xp.sum(e))
    return y, without_keys(xp, m + xp.log(denominator))


def _backward(xp: Any, keep: Keep, dy: Any, q: Any, k: Any, v: Any, options: dict[str, Any]) -> Any:
    s, lanes, m, e, denominator = _weights(xp, keep, q, k, options)
    y = xp.saved(_output(xp, e, denominator, v, options))
    again = exponential(xp, s - (m + xp.log(denominator)), lanes)
    p = keep(xp.either(xp.either(e / denominator, e * (1 / denominator)), again))
    dp = keep(xp.matmul(dy, turned(xp, v)))
    mean = xp.either(xp.sum(p * dp), xp.sum(dy * y))
    ds = xp.store(_uncapped(xp, keep, p * (dp - mean), q, k, options))
    scaling, ds_transposed = factor(xp, q, options.get("scale")), turned(xp, ds)
    scaled = xp.store(ds * scaling)
    dq = xp.either(xp.matmul(ds, k) * scaling, xp.matmul(scaled, k))
    dk = xp.either(xp.matmul(ds_transposed, q) * scaling, xp.matmul(turned(xp, scaled), q))
    dk = xp.either(dk, xp.matmul(ds_transposed, keep(q * scaling)))
    if options["rooted"]:
        root = xp.sqrt(scaling)
        dq = xp.either(dq, keep(xp.matmul(ds, keep(k * root))) * root)
        dk = xp.either(dk, keep(xp.matmul(ds_transposed, keep(q * root))) * root)
    return dq, dk, xp.matmul(turned(xp, xp.store(p)), dy)


def streaming(xp: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    return _forward(xp, as_is, q, k, v, options)


def materialised(xp: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    return _forward(xp, xp.store, q, k, v, options)


def streaming_gradients(xp: Any, dy: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    return _backward(xp, as_is, dy, q, k, v, options)


def materialised_gradients(xp: Any, dy: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    return _backward(xp, xp.store, dy, q, k, v, options)
