"""Ops over rows, channels, tables and keys, by their definitions: whole arrays of numbers."""

import json
from typing import Any

import numpy as np
from hand_functions import gelu, gelu_tanh
from hand_numbers import Numbers, each, exp, last_axes, log, number, softplus, sqrt
from mpmath import mp

# --- softmax, reductions ------------------------------------------------------------------------


def softmax(x: Numbers, axis: int = -1) -> Any:
    e = exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def router(
    logits: Numbers, bias: Any = None, k: int = 1, scores: str = "softmax", groups: int = 1,
    groups_kept: Any = None, best: int = 1, renormalise: bool = False, scale: float = 1.0,
) -> Any:  # fmt: skip
    """Token by token."""
    s = softmax(logits) if scores == "softmax" else 1 / (1 + exp(-logits))
    weights, size = s * 0, s.shape[-1] // groups
    for row in np.ndindex(s.shape[:-1]):
        keys = list(s[row] if bias is None else s[row] + bias)
        inside = [sorted(keys[g * size : (g + 1) * size])[-best:] for g in range(groups)]
        kept = sorted(range(groups), key=lambda g, of=inside: -sum(of[g]))[: groups_kept or groups]
        open_ = [i for i in range(len(keys)) if i // size in kept]
        chosen = sorted(open_, key=lambda i, of=keys: -of[i])[:k]
        total = sum(s[row][chosen]) if renormalise else 1
        weights[row][chosen] = number(scale) * s[row][chosen] / total
    return weights


def logsumexp(x: Numbers, axis: Any = -1, keepdims: bool = False) -> Any:
    axis = axes_of(axis)
    top = x.max(axis, keepdims=True)
    total = top + log(exp(x - top).sum(axis, keepdims=True))
    return total if keepdims else total.squeeze(axis)


def logcumsumexp(x: Numbers, axis: int = -1) -> Any:
    rows = np.moveaxis(x, axis, -1)
    y = np.stack([logsumexp(rows[..., : t + 1]) for t in range(rows.shape[-1])], -1)
    return np.moveaxis(y, -1, axis)


def sampling_softmax(
    x: Numbers, temperature: float = 1.0, top_k: Any = None, top_p: float = 1.0, min_p: float = 0.0
) -> Any:
    """Row by row, the largest first."""
    x, y = x / number(temperature), x * 0
    for row in np.ndindex(x.shape[:-1]):
        if not all(value < mp.inf for value in x[row]):
            y[row] = mp.nan
            continue
        order = sorted(range(x.shape[-1]), key=lambda i, of=x[row]: -of[i])
        order = [i for i in order if x[row][i] >= x[row][order[: top_k or len(order)][-1]]]
        p, before = softmax(x[row][order]), mp.mpf(0)
        for i, share in zip(order, p, strict=True):
            if (before < number(top_p) or top_p == 1) and share >= number(min_p) * p[0]:
                y[row][i] = share
            before += share
        y[row] /= y[row].sum()
    return y


def weight_norm(x: Numbers, g: Numbers, axis: Any = -1) -> Any:
    g = np.expand_dims(g, axes_of(axis))
    return g * x / sqrt((x * x).sum(axes_of(axis), keepdims=True))


def spectral_norm(
    x: Numbers, u: Numbers, n_power_iterations: int = 1, eps: float = 1e-12
) -> dict[str, Any]:
    u, v = power_iterations(x, u, n_power_iterations)
    return {"y": x / (u @ x @ v), "sigma": u @ x @ v}


def power_iterations(x: Numbers, u: Numbers, number_of: int = 1) -> tuple[Numbers, Numbers]:
    for _ in range(number_of):
        v = u @ x
        v = v / sqrt((v * v).sum())
        u = x @ v
        u = u / sqrt((u * u).sum())
    return u, v


def spectral_norm_gradient(
    dy: Numbers, x: Numbers, u: Numbers, n_power_iterations: int = 1, eps: float = 1e-12
) -> dict[str, Any]:
    u, v = power_iterations(x, u, n_power_iterations)
    sigma = u @ x @ v
    return {"dx": dy / sigma - (dy * x).sum() / sigma**2 * np.outer(u, v)}


def fft(x: Numbers, inverse: bool = False, norm: str = "backward") -> Any:
    n, sign = x.shape[-2], 1 if inverse else -1
    scale = {"ortho": 1 / mp.sqrt(n), "forward": mp.mpf(1) / (1 if inverse else n)}
    turn = each(lambda jk: mp.expjpi(mp.mpf(2 * sign * int(jk)) / n))
    turns = turn(np.outer(np.arange(n), np.arange(n)))
    y = (turns @ (x[..., 0] + mp.j * x[..., 1])[..., None])[..., 0]
    y = y * scale.get(norm, mp.mpf(1) / (n if inverse else 1))
    return np.stack([each(mp.re)(y), each(mp.im)(y)], -1)


def rfft(x: Numbers, norm: str = "backward") -> Any:
    pairs = np.stack([x, x * 0], -1)
    return fft(pairs, norm=norm)[..., : x.shape[-1] // 2 + 1, :]


def irfft(x: Numbers, n: Any = None, norm: str = "backward") -> Any:
    n = n or max(2 * x.shape[-2] - 2, 1)
    rest = x[..., (n - 1) // 2 : 0 : -1, :] * [1, -1]
    own = [[1, 0 if 2 * k % n == 0 else 1] for k in range(n // 2 + 1)]
    return fft(np.concatenate([x * own, rest], -2), True, norm)[..., 0]


def log_softmax(x: Numbers, axis: int = -1) -> Any:
    return x - logsumexp(x, axis, keepdims=True)


def axes_of(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def length(x: Numbers, axis: Any) -> int:
    return int(x.size // max(np.ones(x.shape).sum(axes_of(axis)).size, 1))


def total(x: Numbers, axis: Any = -1) -> Any:
    return x.sum(axes_of(axis))


def var(x: Numbers, axis: Any = -1, ddof: int = 0) -> Any:
    n = length(x, axis)
    off = x - x.sum(axes_of(axis), keepdims=True) / n
    return (off * off).sum(axes_of(axis)) / (n - ddof)


def cosine_similarity(x: Numbers, other: Numbers, axis: int = -1, eps: float = 1e-8) -> Any:
    lengths = [np.maximum(sqrt((a * a).sum(axis)), number(eps)) for a in (x, other)]
    return (x * other).sum(axis) / (lengths[0] * lengths[1])


def cdist(a: Numbers, b: Numbers, p: int = 2) -> Any:
    d = abs(a[..., :, None, :] - b[..., None, :, :])
    return d.sum(-1) if p == 1 else sqrt((d * d).sum(-1))


REDUCTIONS = {
    "cosine_similarity": cosine_similarity,
    "cdist": cdist,
    "softmax": softmax,
    "router": router,
    "log_softmax": log_softmax,
    "logsumexp": logsumexp,
    "logcumsumexp": logcumsumexp,
    "sampling_softmax": sampling_softmax,
    "weight_norm": weight_norm,
    "spectral_norm": spectral_norm,
    "fft": fft,
    "rfft": rfft,
    "irfft": irfft,
    "sum": total,
    "mean": lambda x, axis=-1: total(x, axis) / length(x, axis),
    "var": var,
    "std": lambda x, axis=-1, ddof=0: sqrt(var(x, axis, ddof)),
    "norm": lambda x, axis=-1: sqrt(total(x * x, axis)),
    "prod": lambda x, axis=-1: x.prod(axes_of(axis)),
    "max": lambda x, axis=-1: x.max(axes_of(axis)),
    "cumsum": lambda x, axis=-1: x.cumsum(axis),
    "argmax": lambda x, axis=-1: x.argmax(axis) + 0 * x.max(axes_of(axis)),
}


# --- norms --------------------------------------------------------------------------------------


def rms_norm(x: Numbers, weight: Any = None, eps: float = 1e-5) -> Any:
    y = x / sqrt((x * x).sum(-1, keepdims=True) / x.shape[-1] + number(eps))
    return y if weight is None else y * weight


def bias_gelu(x: Numbers, bias: Numbers, approximate: str = "none") -> Any:
    return each(gelu if approximate == "none" else gelu_tanh)(x + bias)


def layernorm(
    x: Numbers, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    normalized_shape: Any = None,
) -> dict[str, Any]:  # fmt: skip
    axes = last_axes(normalized_shape or (1,))
    n = length(x, list(axes))
    mean = x.sum(axes, keepdims=True) / n
    rstd = 1 / sqrt(((x - mean) ** 2).sum(axes, keepdims=True) / n + number(eps))
    y = (x - mean) * rstd
    y = y if weight is None else y * weight
    return {
        "y": y if bias is None else y + bias,
        "mean": mean.squeeze(axes),
        "rstd": rstd.squeeze(axes),
    }


def over_channels(array: Any, x: Numbers, default: int) -> Any:
    """One number for each channel, along x's second axis."""
    shape = (1, x.shape[1], *(1,) * (x.ndim - 2))
    return np.full(shape, mp.mpf(default)) if array is None else array.reshape(shape)


def batch_norm(
    x: Numbers, weight: Any = None, bias: Any = None, running_mean: Any = None,
    running_var: Any = None, training: bool = True, momentum: float = 0.1, eps: float = 1e-5,
    biased: bool = False,
) -> dict[str, Any]:  # fmt: skip
    axes = (0, *range(2, x.ndim))
    n, a = x.size // x.shape[1], number(momentum)
    mean, var = over_channels(running_mean, x, 0), over_channels(running_var, x, 1)
    new_mean, new_var = mean, var
    if training:
        old_mean, old_var = mean, var
        mean = x.sum(axes, keepdims=True) / n
        var = ((x - mean) ** 2).sum(axes, keepdims=True) / n
        new_mean = old_mean * (1 - a) + mean * a
        new_var = old_var * (1 - a) + var * a * n / mp.mpf(n if biased else n - 1)
    y = (x - mean) / sqrt(var + number(eps))
    y = y * over_channels(weight, x, 1) + over_channels(bias, x, 0)
    return {"y": y, "new_mean": new_mean.ravel(), "new_var": new_var.ravel()}


def group_norm(
    x: Numbers, weight: Any = None, bias: Any = None, num_groups: int = 1, eps: float = 1e-5
) -> Any:  # fmt: skip
    groups = x.reshape(x.shape[0], num_groups, -1)
    off = groups - groups.sum(-1, keepdims=True) / groups.shape[-1]
    y = off / sqrt((off * off).sum(-1, keepdims=True) / groups.shape[-1] + number(eps))
    return y.reshape(x.shape) * over_channels(weight, x, 1) + over_channels(bias, x, 0)


def instance_norm(x: Numbers, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return group_norm(x, weight, bias, x.shape[1], eps)


NORMS = {
    "rms_norm": rms_norm,
    "add_rms_norm": lambda x, residual, weight=None, eps=1e-5: {
        "y": rms_norm(x + residual, weight, eps),
        "sum": x + residual,
    },
    "bias_gelu": bias_gelu,
    "layernorm": layernorm,
    "batch_norm": batch_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
}


# --- attention, rotary embedding, tables --------------------------------------------------------


def attention(
    q: Numbers, k: Numbers, v: Numbers, mask: Any = None, keep: Any = None, lengths: Any = None,
    sinks: Any = None, alibi_slopes: Any = None, prefix: Any = None, cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None, block_table: Any = None, scale: Any = None, causal: str = "none",
    window: Any = None, softcap: Any = None, causal_block: Any = None, layout: str = "bhsd",
) -> Any:  # fmt: skip
    options = {"scale": scale, "causal": causal, "window": window, "softcap": softcap}
    if layout == "bshd":
        q, k, v = (np.swapaxes(a, -2, -3) for a in (q, k, v))
    if cu_seqlens_q is not None or block_table is not None:  # one sequence after the other
        if block_table is not None:
            keys, values = (
                [
                    np.concatenate(list(a[pages]), -2)[:, :length]
                    for pages, length in zip(block_table, lengths, strict=True)
                ]
                for a in (k, v)
            )
        else:
            q = np.split(q, cu_seqlens_q[1:-1], -2)
            keys, values = (np.split(a, cu_seqlens_k[1:-1], -2) for a in (k, v))
        apart = [attention(*one, **options) for one in zip(q, keys, values, strict=True)]
        axis = -2 if block_table is None else 0
        join = np.concatenate if block_table is None else np.stack
        y = join([one["y"] for one in apart], axis)
        lse = join([one["lse"][..., None] for one in apart], axis)[..., 0]
        return {"y": np.swapaxes(y, -2, -3) if layout == "bshd" else y, "lse": lse}
    group = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
    if group > 1:
        k, v = np.repeat(k, group, -3), np.repeat(v, group, -3)
    scale = 1 / mp.sqrt(q.shape[-1]) if scale is None else number(scale)
    scores = (q @ np.swapaxes(k, -1, -2)) * scale
    if softcap is not None:
        scores = each(mp.tanh)(scores / number(softcap)) * number(softcap)
    m, n = scores.shape[-2:]
    i, j = np.arange(m)[:, None], np.arange(n)
    offset = 0 if causal == "top_left" else n - m
    sees = np.ones(scores.shape, bool)
    if alibi_slopes is not None:
        scores = scores - abs(i + offset - j) * alibi_slopes[..., None, None]
    if mask is not None:
        sees = sees & (mask != -mp.inf)
        scores = scores + np.where(mask == -mp.inf, mp.mpf(0), mask)
    if keep is not None:
        sees = sees & keep
    if lengths is not None:
        lengths = np.broadcast_to(lengths, (*q.shape[:-3], q.shape[-3] // group))
        sees = sees & (j < np.repeat(lengths, group, -1)[..., None, None])
    if causal != "none":
        size = causal_block or 1
        seen = j <= ((i + offset) // size + 1) * size - 1
        sees = sees & (seen if prefix is None else seen | (j < prefix[..., None, None]))
    if window is not None:
        away = j - i - offset
        sees = sees & (away >= -window[0]) & (away <= window[1])
    top = scores.max(-1, keepdims=True)
    e = np.where(sees, exp(scores - top), mp.mpf(0))
    sums = e.sum(-1, keepdims=True)
    if sinks is not None:
        sums = sums + exp(np.broadcast_to(sinks, q.shape[:-2])[..., None, None] - top)
    y = (e @ v) / np.where(sums == 0, mp.mpf(1), sums)
    return {"y": y, "lse": (top + log(np.where(sums == 0, mp.nan, sums)))[..., 0]}


def scaled_attention(
    q: Numbers, k: Numbers, v: Numbers, descale_q: Any = None, descale_k: Any = None,
    descale_v: Any = None, weights: str = "", offset: float = 1.0, **options: Any,
) -> Any:  # fmt: skip
    heads = k.shape[:-2]

    def wide(a: Numbers, scale: Any) -> Any:
        if scale is None:
            return a
        each_head = np.broadcast_to(scale, heads)
        if a.shape[:-2] != heads:
            each_head = np.repeat(each_head, a.shape[-3] // heads[-1], -1)
        return a * each_head[..., None, None]

    return attention(wide(q, descale_q), wide(k, descale_k), wide(v, descale_v), **options)


def linear_attention(
    q: Numbers, k: Numbers, v: Numbers, g: Any = None, gk: Any = None, initial_state: Any = None,
    scale: Any = None,
) -> Any:  # fmt: skip
    """By unrolled sums of what each step adds, with its decay since then."""
    steps, scale = q.shape[-2], 1 / mp.sqrt(q.shape[-1]) if scale is None else number(scale)
    logs = np.full(k.shape, mp.mpf(0)) if gk is None else gk
    total = np.cumsum(logs if g is None else logs + g[..., None], axis=-2)

    def state(at: int) -> Any:
        parts = [
            (exp(total[..., at, :] - total[..., s, :]) * k[..., s, :])[..., None]
            * v[..., s, None, :]
            for s in range(at + 1)
        ]
        start = 0 if initial_state is None else initial_state
        return sum(parts, exp(total[..., at, :])[..., None] * start)

    y = [(q[..., t, :, None] * state(t)).sum(-2) * scale for t in range(steps)]
    return {"y": np.stack(y, -2), "state": state(steps - 1)}


def selective_scan(
    x: Numbers, dt: Numbers, A: Numbers, B: Numbers, C: Numbers, D: Any = None,
    dt_bias: Any = None, initial_state: Any = None, dt_softplus: bool = False,
) -> Any:  # fmt: skip
    """Head by head, by products of every step's decays."""
    dt = dt if dt_bias is None else dt + dt_bias
    dt = softplus(dt) if dt_softplus else dt
    y, states = np.empty_like(x), []
    for h in range(x.shape[-2]):
        group = h // (x.shape[-2] // B.shape[-2])
        state = 0 if initial_state is None else initial_state[..., h, :, :]
        for t in range(x.shape[-3]):
            step = dt[..., t, h, None, None]
            into = x[..., t, h, :, None] * B[..., t, group, None, :]
            state = exp(step * A[h]) * state + step * into
            y[..., t, h, :] = (state * C[..., t, group, None, :]).sum(-1)
        states.append(state)
    return {"y": y if D is None else y + x * D[:, None], "state": np.stack(states, -3)}


def shares(scaling: Any, rates: Numbers, base: float, dim: int) -> Any:
    """What is left of each frequency."""
    factor, length = mp.mpf(scaling["factor"]), scaling.get("original_max_position_embeddings")
    if scaling["rope_type"] == "linear":
        return 1 / factor
    if scaling["rope_type"] == "llama3":
        low, high = (mp.mpf(scaling[f"{end}_freq_factor"]) for end in ("low", "high"))
        kept = [
            min(max((rate * length / (2 * mp.pi) - low) / (high - low), 0), 1) for rate in rates
        ]
    else:
        first, last = (
            dim * mp.log(length / (2 * mp.pi * turns)) / (2 * mp.log(base)) for turns in (32, 1)
        )
        first, last = max(mp.floor(first), 0), min(mp.ceil(last), dim - 1)
        kept = [1 - min(max((i - first) / (last - first), 0), 1) for i in range(dim // 2)]
    return np.array([(1 - share) / factor + share for share in kept])


def magnitude(scaling: Any) -> Any:
    return mp.log(scaling["factor"]) / 10 + 1 if scaling["rope_type"] == "yarn" else mp.mpf(1)


def rotary(
    x: Numbers, position: Any, base: float = 10000.0, layout: str = "half", dim: Any = None,
    scaling: str = "none",
) -> Any:  # fmt: skip
    dim = x.shape[-1] if dim is None else dim
    first = np.arange(dim // 2) if layout == "half" else np.arange(0, dim, 2)
    second = first + (dim // 2 if layout == "half" else 1)
    rates = np.array([mp.power(number(base), mp.mpf(-2 * i) / dim) for i in range(dim // 2)])
    size = mp.mpf(1)
    if scaling != "none":
        parsed = json.loads(scaling)
        rates, size = rates * shares(parsed, rates, base, dim), magnitude(parsed)
    angles = np.broadcast_to(position, x.shape[:-1])[..., None] * rates
    cos, sin = each(mp.cos)(angles) * size, each(mp.sin)(angles) * size
    y = x.copy()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., second] * cos + x[..., first] * sin
    return y


def embedding(weight: Numbers, indices: Any, padding_idx: Any = None) -> Any:
    return weight[indices]


def embedding_gradient(
    dy: Numbers, weight: Numbers, indices: Any, padding_idx: Any = None
) -> dict[str, Any]:  # fmt: skip
    """The row of padding gets no gradient, which is no derivative of the lookup."""
    dweight = weight * 0
    for row, index in zip(dy.reshape(-1, weight.shape[1]), indices.ravel(), strict=True):
        if padding_idx is None or index != padding_idx % len(weight):
            dweight[index] = dweight[index] + row
    return {"dweight": dweight}


LOOKUPS = {
    "attention": attention, "scaled_attention": scaled_attention, "rotary": rotary,
    "embedding": embedding, "linear_attention": linear_attention, "selective_scan": selective_scan,
}  # fmt: skip
