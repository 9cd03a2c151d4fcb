"""Right batch norms: two passes, Welford, Chan, orders and blocks, folded, wider sums."""

import functools

import numpy as np
from sum import _chan


def _of_channels(array, like, missing):
    """(C,) as it meets (N, C, ...)."""
    values = np.full(like.shape[1], missing, like.dtype) if array is None else array
    return values.reshape(1, -1, *[1] * (like.ndim - 2))


def _rows(x):
    """(C, elements of a channel)."""
    return np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)


def _normed(given, statistics, apply):
    x, weight, bias, running_mean, running_var, training, momentum, eps = given.values()
    kind, n = x.dtype.type, x.size // max(x.shape[1], 1)
    old_mean, old_var = (
        np.full(x.shape[1], value, x.dtype) if array is None else array
        for array, value in ((running_mean, 0), (running_var, 1))
    )
    mean, var, new_mean, new_var = old_mean, old_var, old_mean, old_var
    if training:
        mean, squares = statistics(_rows(x))
        var = squares / kind(n)
        kept, share = kind(1 - momentum), kind(momentum)
        unbiased = squares / kind(n - 1) if n > 1 else np.full_like(squares, np.nan)
        new_mean, new_var = kept * old_mean + share * mean, kept * old_var + share * unbiased
    w, b = _of_channels(weight, x, 1), _of_channels(bias, x, 0)
    y = apply(x, _of_channels(mean, x, 0), _of_channels(var, x, 1), w, b, kind(eps))
    return y, new_mean, new_var


def _two_pass(total):
    def statistics(rows):
        n = rows.dtype.type(rows.shape[-1])
        mean = total(rows) / n
        return mean, total(np.square(rows - mean[:, None]))

    return statistics


def _centred(x, mean, var, weight, bias, eps):
    return (x - mean) / np.sqrt(var + eps) * weight + bias


def _multiplied(x, mean, var, weight, bias, eps):
    return (x - mean) * (x.dtype.type(1) / np.sqrt(var + eps)) * weight + bias


def _scaled(x, mean, var, weight, bias, eps):
    return (x - mean) * (weight / np.sqrt(var + eps)) + bias


def _folded(x, mean, var, weight, bias, eps):
    scale = x.dtype.type(1) / np.sqrt(var + eps) * weight
    return x * scale + (bias - mean * scale)


def _pairwise(rows):
    return rows.sum(-1)


def _last(rows):
    return np.add.accumulate(rows, axis=-1)[..., -1]


def _reversed(rows):
    return _last(rows[..., ::-1])


def _shuffled(rows):
    return _last(rows[..., np.random.default_rng(0).permutation(rows.shape[-1])])


def _lanes(rows):
    return functools.reduce(np.add, [rows[..., i::4].sum(-1) for i in range(4)])


def _blocked(rows):
    parts = [rows[..., i : i + 16].sum(-1) for i in range(0, rows.shape[-1], 16)]
    return functools.reduce(np.add, parts)


def _wide(rows):
    return rows.sum(-1, dtype=np.float64).astype(rows.dtype)


def _welford(rows):
    kind = rows.dtype.type
    mean = squares = np.zeros(rows.shape[0], rows.dtype)
    for i in range(rows.shape[-1]):
        step = rows[:, i] - mean
        mean = mean + step / kind(i + 1)
        squares = squares + step * (rows[:, i] - mean)
    return mean, squares


def _in(given, dtype):
    """The two passes in a wider format, rounded at the end."""
    wide = {n: a.astype(dtype) if isinstance(a, np.ndarray) else a for n, a in given.items()}
    return tuple(a.astype(given["x"].dtype) for a in _normed(wide, _two_pass(_pairwise), _centred))


def _kernel(compute, *how):
    def kernel(
        x, weight=None, bias=None, running_mean=None, running_var=None, training=True, momentum=0.1,
        eps=1e-5,
    ):  # fmt: skip
        given = {name: a for name, a in locals().items() if name not in ("compute", "how")}
        return compute(given, *how)

    return kernel


two_pass_batch_norm = _kernel(_normed, _two_pass(_pairwise), _centred)
sequential_batch_norm = _kernel(_normed, _two_pass(_last), _centred)
reversed_batch_norm = _kernel(_normed, _two_pass(_reversed), _centred)
shuffled_batch_norm = _kernel(_normed, _two_pass(_shuffled), _multiplied)
lanes_batch_norm = _kernel(_normed, _two_pass(_lanes), _scaled)
blocked_batch_norm = _kernel(_normed, _two_pass(_blocked), _multiplied)
multiplied_batch_norm = _kernel(_normed, _two_pass(_pairwise), _multiplied)
scaled_batch_norm = _kernel(_normed, _two_pass(_pairwise), _scaled)
folded_batch_norm = _kernel(_normed, _two_pass(_pairwise), _folded)
welford_batch_norm = _kernel(_normed, _welford, _centred)
welford_folded_batch_norm = _kernel(_normed, _welford, _folded)
chan_batch_norm = _kernel(_normed, _chan, _multiplied)
wide_sums_batch_norm = _kernel(_normed, _two_pass(_wide), _centred)
float64_batch_norm = _kernel(_in, np.float64)
float32_inside_batch_norm = _kernel(_in, np.float32)
