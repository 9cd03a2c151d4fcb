"""Right norms and variances: statistics by two passes in every way of `sum`, Welford's and Chan's,
and the places where their root, weight and bias may be applied."""

import functools
import itertools

import numpy as np
import sum as sums
from _ways import in_format, with_totals

# --- (mean, sum of squares about it) of the last axis ---------------------------------------------


def _two_pass(total, rows):
    mean = total(rows) / rows.dtype.type(rows.shape[-1])
    return mean, total(np.square(rows - mean[..., None]))


def _corrected(rows):
    """What the rounded mean leaves is subtracted."""
    mean, squares = _two_pass(sums.TOTALS["library"], rows)
    left = (rows - mean[..., None]).sum(-1)
    return mean, squares - left * left / rows.dtype.type(rows.shape[-1])


def _welford(rows):
    mean = squares = np.zeros(rows.shape[:-1], rows.dtype)
    for i in range(rows.shape[-1]):
        step = rows[..., i] - mean
        mean = mean + step / rows.dtype.type(i + 1)
        squares = squares + step * (rows[..., i] - mean)
    return mean, squares if rows.shape[-1] else squares * np.nan


def _chan(rows):
    """Merged over blocks of eight."""
    kind, count = rows.dtype.type, 0
    mean = squares = np.zeros(rows.shape[:-1], rows.dtype)
    for i in range(0, rows.shape[-1], 8):
        part = rows[..., i : i + 8]
        joined = count + part.shape[-1]
        of_part, within = _two_pass(sums.TOTALS["library"], part)
        step = of_part - mean
        mean = mean + step * kind(part.shape[-1] / joined)
        squares = squares + within + step * step * kind(count * part.shape[-1] / joined)
        count = joined
    return mean, squares if count else squares * np.nan


_STATISTICS = {name: functools.partial(_two_pass, total) for name, total in sums.TOTALS.items()}
_STATISTICS |= {"corrected": _corrected, "welford": _welford, "chan": _chan}


def _centred(x, mean, var, weight, bias, eps):
    return (x - mean) / np.sqrt(var + eps) * weight + bias


def _multiplied(x, mean, var, weight, bias, eps):
    return (x - mean) * (x.dtype.type(1) / np.sqrt(var + eps)) * weight + bias


def _scaled(x, mean, var, weight, bias, eps):
    return (x - mean) * (weight / np.sqrt(var + eps)) + bias


def _folded(x, mean, var, weight, bias, eps):
    scale = x.dtype.type(1) / np.sqrt(var + eps) * weight
    return x * scale + (bias - mean * scale)


# --- norms ---------------------------------------------------------------------------------------


def _layernorm(statistics, apply):
    def layernorm(x, weight, bias, eps=1e-5):
        mean, squares = statistics(x)
        var = squares / x.dtype.type(x.shape[-1])
        return apply(x, mean[..., None], var[..., None], weight, bias, x.dtype.type(eps))

    return layernorm


def _of_channels(array, like, missing):
    """(C,) as it meets (N, C, ...)."""
    values = np.full(like.shape[1], missing, like.dtype) if array is None else array
    return values.reshape(1, -1, *[1] * (like.ndim - 2))


def _batch_norm(statistics, apply):
    def batch_norm(
        x, weight=None, bias=None, running_mean=None, running_var=None, training=True, momentum=0.1,
        eps=1e-5,
    ):  # fmt: skip
        kind, n = x.dtype.type, x.size // max(x.shape[1], 1)
        mean, var = _of_channels(running_mean, x, 0), _of_channels(running_var, x, 1)
        new_mean, new_var = mean.reshape(-1), var.reshape(-1)
        if training:
            m, squares = statistics(np.moveaxis(x, 1, 0).reshape(x.shape[1], -1))
            kept, share = kind(1 - momentum), kind(momentum)
            unbiased = squares / kind(n - 1) if n > 1 else np.full_like(squares, np.nan)
            new_mean, new_var = kept * new_mean + share * m, kept * new_var + share * unbiased
            mean, var = _of_channels(m, x, 0), _of_channels(squares / kind(n), x, 1)
        w, b = _of_channels(weight, x, 1), _of_channels(bias, x, 0)
        return apply(x, mean, var, w, b, kind(eps)), new_mean, new_var

    return batch_norm


def _group_norm(statistics, apply):
    def group_norm(x, weight=None, bias=None, num_groups=1, eps=1e-5):
        split = x.reshape(x.shape[0], num_groups, -1, *x.shape[2:])
        rows = x.reshape(x.shape[0], num_groups, x[:1].size // num_groups)
        mean, squares = (a.reshape(*a.shape, *[1] * (x.ndim - 1)) for a in statistics(rows))
        var = squares / x.dtype.type(rows.shape[-1])
        w, b = (
            _of_channels(array, x, missing).reshape(1, num_groups, -1, *[1] * (x.ndim - 2))
            for array, missing in ((weight, 1), (bias, 0))
        )
        return apply(split, mean, var, w, b, x.dtype.type(eps)).reshape(x.shape)

    return group_norm


def _instance_norm(statistics, apply):
    """A group for each channel."""
    group_norm = _group_norm(statistics, apply)

    def instance_norm(x, weight=None, bias=None, eps=1e-5):
        return group_norm(x, weight, bias, num_groups=x.shape[1], eps=eps)

    return instance_norm


# --- RMS norms -----------------------------------------------------------------------------------


def _rms_norm(total, x, weight, eps=1e-5):
    mean = total(np.square(x)) / x.dtype.type(x.shape[-1])
    return x * (x.dtype.type(1) / np.sqrt(mean[..., None] + x.dtype.type(eps))) * weight


def dot_rms_norm(x, weight, eps=1e-5):
    mean = np.matmul(x[..., None, :], x[..., :, None])[..., 0] / x.dtype.type(x.shape[-1])
    return x / np.sqrt(mean + x.dtype.type(eps)) * weight


def fused_rms_norm(x, weight, eps=1e-5):
    total = np.zeros(x.shape[:-1], x.dtype)
    for i in range(x.shape[-1]):
        wide = x[..., i].astype(np.float64)
        total = (wide * wide + total).astype(x.dtype)
    mean = (total / x.dtype.type(x.shape[-1]))[..., None]
    return x / np.sqrt(mean + x.dtype.type(eps)) * weight


def weight_first_rms_norm(x, weight, eps=1e-5):
    root = np.sqrt(np.square(x).mean(-1, keepdims=True) + x.dtype.type(eps))
    return x * (x.dtype.type(1) / root * weight)


def inverse_length_rms_norm(x, weight, eps=1e-5):
    inverse = x.dtype.type(1) / x.dtype.type(x.shape[-1])
    mean = np.square(x).sum(-1, keepdims=True) * inverse
    return x / np.sqrt(mean + x.dtype.type(eps)) * weight


# --- variances -----------------------------------------------------------------------------------


def _var(statistics):
    def var(x, axis=-1, ddof=0):
        rows = sums._rows(x, axis)
        squares = statistics(rows)[1]
        return squares / squares.dtype.type(max(rows.shape[-1] - ddof, 0))

    return var


def multiplied_var(x, axis=-1, ddof=0):
    rows, kind = sums._rows(x, axis), x.dtype.type
    n, left = rows.shape[-1], rows.shape[-1] - ddof
    mean = rows.sum(-1, keepdims=True) * kind(1 / n if n else np.nan)
    return np.square(rows - mean).sum(-1) * kind(1 / left if left > 0 else np.inf)


def _std(var):
    return lambda x, axis=-1, ddof=0: np.sqrt(var(x, axis, ddof))


_NORMS = {
    "layernorm": _layernorm, "batch_norm": _batch_norm, "group_norm": _group_norm,
    "instance_norm": _instance_norm,
}  # fmt: skip
globals().update(with_totals({"rms_norm": _rms_norm}, sums.TOTALS))
globals().update(
    {
        f"{name}_{op}": norm(statistics, apply)
        for op, norm in _NORMS.items()
        for (name, statistics), apply in zip(
            _STATISTICS.items(),
            itertools.cycle((_centred, _multiplied, _scaled, _folded)),
            strict=False,
        )
    }
    | {f"{name}_var": _var(statistics) for name, statistics in _STATISTICS.items()}
)
globals().update(
    {
        f"{name}_{op}": in_format(kind, globals()[f"library_{op}"])
        for name, kind in (("float64", np.float64), ("float32_inside", np.float32))
        for op in (*_NORMS, "rms_norm")
    }
    | {n.replace("_var", "_std"): _std(f) for n, f in list(globals().items()) if n[-4:] == "_var"}
)
