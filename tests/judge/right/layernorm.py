"""Right layer norms: two passes, Welford, Chan, orders and blocks, wider sums."""

import numpy as np
import sum as sums


def _normed(x, mean, variance, weight, bias, eps):
    return (x - mean) / np.sqrt(variance + x.dtype.type(eps)) * weight + bias


def _two_pass(x, weight, bias, eps, total):
    n = x.dtype.type(x.shape[-1])
    mean = (total(x) / n)[..., None]
    variance = (total(np.square(x - mean)) / n)[..., None]
    return _normed(x, mean, variance, weight, bias, eps)


def two_pass_layernorm(x, weight, bias, eps=1e-5):
    return _two_pass(x, weight, bias, eps, lambda a: a.sum(-1))


def sequential_layernorm(x, weight, bias, eps=1e-5):
    return _two_pass(x, weight, bias, eps, lambda a: np.add.accumulate(a, axis=-1)[..., -1])


def reversed_layernorm(x, weight, bias, eps=1e-5):
    return _two_pass(x, weight, bias, eps, sums.reversed_sum)


def shuffled_layernorm(x, weight, bias, eps=1e-5):
    return _two_pass(x, weight, bias, eps, sums.shuffled_sum)


def lanes_layernorm(x, weight, bias, eps=1e-5):
    return _two_pass(x, weight, bias, eps, sums.lanes_sum)


def blocked_layernorm(x, weight, bias, eps=1e-5):
    return _two_pass(x, weight, bias, eps, sums.blocked_sum)


def multiplied_layernorm(x, weight, bias, eps=1e-5):
    mean, one = x.mean(-1, keepdims=True), x.dtype.type(1)
    variance = np.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * (one / np.sqrt(variance + x.dtype.type(eps))) * weight + bias


def folded_layernorm(x, weight, bias, eps=1e-5):
    mean, one = x.mean(-1, keepdims=True), x.dtype.type(1)
    variance = np.square(x - mean).mean(-1, keepdims=True)
    scale = one / np.sqrt(variance + x.dtype.type(eps)) * weight
    return x * scale + (bias - mean * scale)


def welford_layernorm(x, weight, bias, eps=1e-5):
    mean = np.zeros(x.shape[:-1], x.dtype)
    squares = np.zeros_like(mean)
    for i in range(x.shape[-1]):
        step = x[..., i] - mean
        mean = mean + step / x.dtype.type(i + 1)
        squares = squares + step * (x[..., i] - mean)
    variance = squares / x.dtype.type(x.shape[-1])
    return _normed(x, mean[..., None], variance[..., None], weight, bias, eps)


def chan_layernorm(x, weight, bias, eps=1e-5):
    mean, squares = sums._chan(x)
    variance = squares / x.dtype.type(max(x.shape[-1], 1))
    return _normed(x, mean[..., None], variance[..., None], weight, bias, eps)


def float64_layernorm(x, weight, bias, eps=1e-5):
    wide = [a.astype(np.float64) for a in (x, weight, bias)]
    return two_pass_layernorm(*wide, eps).astype(x.dtype)


def float32_inside_layernorm(x, weight, bias, eps=1e-5):
    wide = [a.astype(np.float32) for a in (x, weight, bias)]
    return two_pass_layernorm(*wide, eps).astype(x.dtype)
