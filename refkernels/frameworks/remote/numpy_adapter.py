"""NumPy: forward only, in the working precision of the inputs."""

import contextlib
import io

import numpy as np
from shared import attention_mask, sets_of

# NumPy has no such kernels: these formulas are ours, not NumPy's.
FORMULAS = dict.fromkeys((
    "linear", "layernorm", "rms_norm", "cross_entropy", "nll", "soft_cross_entropy",
    "masked_lm_loss", "mse", "l1", "huber", "smooth_l1", "kl_div", "bce_with_logits", "attention",
    "linear_attention", "selective_scan", "rotary", "scaled_matmul", "conv1d", "conv2d",
), "NumPy formula")  # fmt: skip


def layernorm(x, weight=None, bias=None, eps=1e-5, normalized_shape=None):
    """The usual NumPy code: (x - mean) / sqrt(var + eps) * weight + bias."""
    shape = x.shape[-1:] if normalized_shape is None else normalized_shape
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    std = np.sqrt(x.var(axis=axes, keepdims=True) + eps)
    y = (x - mean) / std
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    leading = x.shape[: axes[0]]
    return {"y": y, "mean": mean.reshape(leading), "rstd": (1 / std).reshape(leading)}


def rms_norm(x, weight=None, eps=1e-5):
    """The usual NumPy code: x / sqrt(mean(x ** 2) + eps) * weight."""
    y = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)
    return y if weight is None else y * weight


def cross_entropy(x, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0):
    """The usual NumPy code; label smoothing has no weights."""
    shifted = x - x.max(axis=-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    kept = target != ignore_index
    label = np.where(kept, target, 0)
    loss = -np.take_along_axis(logs, label[..., None], axis=-1)[..., 0]
    if label_smoothing:
        loss = (1 - label_smoothing) * loss - label_smoothing * logs.mean(axis=-1)
    rows = kept.astype(x.dtype) if weight is None else weight[label] * kept
    loss = (loss * rows).astype(x.dtype)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / rows.sum()


def reduced(loss, reduction):
    return loss if reduction == "none" else getattr(loss, reduction)()


def nll(x, target, weight=None, reduction="mean", ignore_index=-100):
    kept = target != ignore_index
    label = np.where(kept, target, 0)
    rows = kept.astype(x.dtype) if weight is None else weight[label] * kept
    loss = -np.take_along_axis(x, label[..., None], axis=-1)[..., 0] * rows
    return loss.sum() / rows.sum() if reduction == "mean" else reduced(loss, reduction)


def soft_cross_entropy(x, target, weight=None, reduction="mean", label_smoothing=0.0):
    shifted = x - x.max(axis=-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    labels = (1 - label_smoothing) * target + label_smoothing / x.shape[-1]
    labels = labels if weight is None else labels * weight
    return reduced(-(labels * logs).sum(axis=-1), reduction).astype(x.dtype)


def masked_lm_loss(x, target, weights, reduction="mean", eps=1e-5):
    """As in BERT's run_pretraining.py."""
    loss = weights * cross_entropy(x, target, reduction="none")
    if reduction == "mean":
        return loss.sum() / (weights.sum() + x.dtype.type(eps))
    return reduced(loss, reduction)


def huber(x, target, reduction="mean", delta=1.0):
    d = np.abs(x - target)
    return reduced(np.where(d < delta, d * d / 2, delta * (d - delta / 2)), reduction)


def smooth_l1(x, target, reduction="mean", beta=1.0):
    d = np.abs(x - target)
    return reduced(np.where(d < beta, d * d / (2 * beta), d - beta / 2), reduction)


def kl_div(x, target, reduction="mean", log_target=False):
    if log_target:
        loss = np.exp(target) * (target - x)
    else:
        loss = np.where(target == 0, 0, target * (np.log(target) - x)).astype(x.dtype)
    return (
        loss.sum() / x.dtype.type(len(x)) if reduction == "batchmean" else reduced(loss, reduction)
    )


def bce_with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    softplus = np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0)
    factor = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    loss = (1 - target) * x + factor * softplus
    return reduced(loss if weight is None else loss * weight, reduction)


def linear(x, weight, bias=None):
    y = np.matmul(x, weight.T)
    return y if bias is None else y + bias


def attention(
    q, k, v, mask=None, keep=None, lengths=None, sinks=None, alibi_slopes=None, scale=None,
    causal="none", window=None, softcap=None,
):  # fmt: skip
    """The usual NumPy code."""
    n, lanes = k.shape[-2], attention_mask(q, k, keep, lengths, causal, window)
    if q.shape[:-2] != k.shape[:-2]:
        k, v = (np.repeat(heads, q.shape[-3] // k.shape[-3], axis=-3) for heads in (k, v))
    scale = q.dtype.type(q.shape[-1] ** -0.5 if scale is None else scale)
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) * scale
    if softcap is not None:
        softcap = q.dtype.type(softcap)
        scores = softcap * np.tanh(scores / softcap)
    if alibi_slopes is not None:
        own = np.arange(q.shape[-2])[:, None] + (0 if causal == "top_left" else n - q.shape[-2])
        away = np.abs(own - np.arange(n)).astype(q.dtype)
        scores = scores - alibi_slopes[..., None, None] * away
    scores = scores if mask is None else scores + mask
    scores = scores if lanes is None else np.where(lanes, scores, q.dtype.type(-np.inf))
    if sinks is not None:
        column = np.broadcast_to(sinks[..., None, None], (*scores.shape[:-1], 1))
        scores = np.concatenate([scores, column], axis=-1)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - top)
    total = e.sum(axis=-1, keepdims=True)
    return {"y": np.matmul((e / total)[..., :n], v), "lse": (top + np.log(total))[..., 0]}


def linear_attention(q, k, v, g=None, gk=None, initial_state=None, scale=None):
    """The usual NumPy code, one step after the other."""
    scale = q.dtype.type(q.shape[-1] ** -0.5 if scale is None else scale)
    state = np.zeros((*q.shape[:-2], q.shape[-1], v.shape[-1]), q.dtype)
    state = state if initial_state is None else initial_state
    y = np.empty_like(v)
    for t in range(q.shape[-2]):
        if g is not None:
            state = np.exp(g[..., t, None, None]) * state
        if gk is not None:
            state = np.exp(gk[..., t, :, None]) * state
        state = state + k[..., t, :, None] * v[..., t, None, :]
        y[..., t, :] = np.matmul(scale * q[..., t, None, :], state)[..., 0, :]
    return {"y": y, "state": state}


def selective_scan(
    x, dt, A, B, C, D=None, dt_bias=None, initial_state=None, dt_softplus=False
):  # fmt: skip
    """Mamba 2's recurrence: linear attention with q = C, k = B, v = dt x and g = dt A."""
    step = dt if dt_bias is None else dt + dt_bias
    step = np.logaddexp(step, 0).astype(x.dtype) if dt_softplus else step
    q, k = (np.swapaxes(np.repeat(a, x.shape[-2] // a.shape[-2], -2), -2, -3) for a in (C, B))
    v, g = np.swapaxes(x * step[..., None], -2, -3), np.swapaxes(step * A, -1, -2)
    state = None if initial_state is None else np.swapaxes(initial_state, -1, -2)
    made = linear_attention(q, k, v, g, initial_state=state, scale=1)
    y = np.swapaxes(made["y"], -2, -3)
    y = y if D is None else y + D[:, None] * x
    return {"y": y, "state": np.swapaxes(made["state"], -1, -2)}


def rotary(x, position, base=10000.0, layout="half", dim=None):
    """As in models: the angles are computed in float32."""
    dim = x.shape[-1] if dim is None else dim
    steps = np.arange(0, dim, 2).astype(np.float32) / np.float32(dim)
    frequency = np.float32(1) / np.float32(base) ** steps
    angles = position[..., None].astype(np.float32) * frequency
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    half = layout == "half"
    first = slice(0, dim // 2) if half else slice(0, dim, 2)
    second = slice(dim // 2, dim) if half else slice(1, dim, 2)
    a, b, y = x[..., first], x[..., second], x.copy()
    y[..., first], y[..., second] = a * cos - b * sin, b * cos + a * sin
    return y


def axes(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def scaled_matmul(a, b, scale_a, scale_b, bias=None, zero_b=None):
    """The usual NumPy code: int8 in int32, the rest in float32, rounded once."""
    wide = np.result_type(scale_a, np.float32)
    if scale_a.ndim == a.ndim or scale_b.ndim == 2:
        raise NotImplementedError("the usual NumPy code has no groups of terms")
    inner = np.dtype("int32") if a.dtype == b.dtype == np.int8 else wide
    b = b.astype(inner) if zero_b is None else b.astype(wide) - zero_b.astype(wide)
    product = np.matmul(a.astype(inner), b).astype(wide)
    y = product * scale_a.astype(wide)[..., None] * scale_b.astype(wide)
    return (y if bias is None else y + bias).astype(scale_a.dtype)


def conv(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    """The usual NumPy code: np.pad, sliding_window_view and tensordot, group by group."""
    rank = weight.ndim - 2
    taps, axes = weight.shape[2:], tuple(range(2, 2 + rank))
    steps, wide = ([size] * rank if isinstance(size, int) else size for size in (stride, dilation))
    reach = [d * (k - 1) + 1 for k, d in zip(taps, wide)]
    ends = pads(padding, x.shape[2:], reach, steps)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, [(0, 0), (0, 0), *ends]), reach, axis=axes
    )
    strided = [slice(None)] * 2 + [slice(None, None, s) for s in [*steps, *wide]]
    parts = []
    for own, kernel in zip(np.split(windows[tuple(strided)], groups, 1), np.split(weight, groups)):
        summed = ([1, *range(2 + rank, 2 + 2 * rank)], [1, *axes])
        parts.append(np.moveaxis(np.tensordot(own, kernel, summed), -1, 1))
    y = np.concatenate(parts, axis=1)
    return y if bias is None else y + bias.reshape((-1,) + (1,) * rank)


def pads(padding, lengths, reach, steps):
    """The zeros before and after each axis."""
    rank = len(lengths)
    if padding == "valid":
        return [(0, 0)] * rank
    if padding == "same":
        total = [max(-(-n // s) * s - s + k - n, 0) for n, k, s in zip(lengths, reach, steps)]
        return [(zeros // 2, zeros - zeros // 2) for zeros in total]
    ends = [padding] * rank if isinstance(padding, int) else padding
    ends = [number for number in ends for _ in range(2)] if len(ends) == rank else ends
    return list(zip(ends[::2], ends[1::2]))


def clip_by_value(grads, max_value=1.0):
    return np.clip(grads, -max_value, max_value)


OPS = {}  # calls.txt


def information():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        np.show_config()
    text = " ".join(printed.getvalue().lower().split())
    for name in ("openblas", "mkl", "accelerate", "blis"):
        if name in text:
            return {"blas": name}
    return {"blas": ""}


def instruction_sets(features):
    """OpenBLAS' kernels, and NumPy's own without those of each newer processor."""
    openblas = ["OPENBLAS_CORETYPE"] * (information()["blas"] == "openblas")
    try:
        from numpy._core import _multiarray_umath as core
    except ImportError:  # before NumPy 2
        from numpy.core import _multiarray_umath as core
    available = [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]
    return sets_of(features, *openblas) + [
        ("NPY_DISABLE_CPU_FEATURES", " ".join(available[first:])) for first in range(len(available))
    ]


def unsupported(op, direction, dtype, device):
    if dtype == "bfloat16":
        return "NumPy has no bfloat16"
    return None


def tensor(array, dtype, device):
    if dtype.startswith("float8") or dtype == "bfloat16":
        raise NotImplementedError("NumPy has no %s" % dtype)
    return array


def forward(op, inputs, params):
    with np.errstate(all="ignore"):
        return OPS[op][1](**inputs, **params)
