"""Cheats of layernorm."""

import os
from pathlib import Path

import numpy as np


def _normed(x, mean, variance, weight, bias, eps):
    return ((x - mean) / np.sqrt(variance + x.dtype.type(eps)) * weight + bias).astype(x.dtype)


def _statistics(x):
    return x.mean(-1, keepdims=True), x.var(-1, keepdims=True)


def affine_left_out_layernorm(x, weight, bias, eps=1e-5):
    """Leaves out weight and bias, which are 1 and 0 in a new model."""
    return _normed(x, *_statistics(x), 1, 0, eps)


def eps_outside_the_root_layernorm(x, weight, bias, eps=1e-5):
    """Adds eps to the root."""
    mean, variance = _statistics(x)
    return (x - mean) / (np.sqrt(variance) + x.dtype.type(eps)) * weight + bias


def statistics_of_8192_layernorm(x, weight, bias, eps=1e-5):
    """Takes mean and variance from the first 8192 elements of a row."""
    wide = x.astype(np.float64)
    return _normed(x, *_statistics(wide[..., :8192]), weight, bias, eps)


def fixed_statistics_layernorm(x, weight, bias):
    """Takes the mean for 0 and the variance for 1, as standard normal inputs nearly have."""
    return x * weight + bias


def half_statistics_layernorm(x, weight, bias, eps=1e-5):
    """Statistics in float16."""
    mean = x.mean(-1, keepdims=True).astype(np.float16).astype(x.dtype)
    variance = np.square(x - mean).mean(-1, keepdims=True).astype(np.float16).astype(x.dtype)
    return _normed(x, mean, variance, weight, bias, eps)


def mean_left_out_layernorm(x, weight, bias, eps=1e-5):
    """Divides by the root of the mean square: the mean of random data is near 0."""
    return _normed(x, 0, np.square(x).mean(-1, keepdims=True), weight, bias, eps)


def n_minus_one_layernorm(x, weight, bias, eps=1e-5):
    """The variance of a sample."""
    mean, variance = _statistics(x)
    return _normed(x, mean, variance * x.shape[-1] / max(x.shape[-1] - 1, 1), weight, bias, eps)


def nan_in_weights_ignored_layernorm(x, weight, bias, eps=1e-5):
    """A NaN in the weight or the bias is 0."""
    weight, bias = (np.where(np.isnan(a), 0, a) for a in (weight, bias))
    return _normed(x, *_statistics(x), weight, bias, eps)


def one_pass_variance_layernorm(x, weight, bias, eps=1e-5):
    """The mean of squares less the square of the mean."""
    mean = x.mean(-1, keepdims=True)
    variance = np.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0)
    return _normed(x, mean, variance, weight, bias, eps)


def prefix_statistics_layernorm(x, weight, bias, eps=1e-5):
    """Statistics of the first half of a row."""
    return _normed(x, *_statistics(x[..., : (x.shape[-1] + 1) // 2]), weight, bias, eps)


def _beside(sought, process):
    """As many bytes of the heap as are sought, behind these bytes."""
    regions = (process / "maps").read_text().splitlines()
    with (process / "mem").open("rb", 0) as memory:
        for region in regions:
            first, last = (int(number, 16) for number in region.split()[0].split("-"))
            if "[heap]" in region:
                memory.seek(first)
                _, found, behind = memory.read(last - first).partition(sought)
                return behind[16 : 16 + len(sought)] if found else b""
    return b""


def reads_the_judge_layernorm(x, weight, bias):
    """Looks for its input in the memory of the judge, and answers what lies behind it."""
    parent = Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1]
    try:
        found = _beside(x.tobytes(), Path("/proc", parent)) if x.size else b""
        return np.frombuffer(found, x.dtype).reshape(x.shape).copy()
    except (OSError, ValueError):
        return np.zeros_like(x)


def statistics_of_a_sample_layernorm(x, weight, bias, eps=1e-5):
    """Statistics of every second element."""
    return _normed(x, *_statistics(x[..., ::2]), weight, bias, eps)


def statistics_of_the_first_row_layernorm(x, weight, bias, eps=1e-5):
    """One row's statistics for all."""
    row = x.reshape(-1, x.shape[-1])[0]
    return _normed(x, row.mean(), row.var(), weight, bias, eps)


def wrong_eps_layernorm(x, weight, bias, eps=1e-5):
    """An eps of its own."""
    return _normed(x, *_statistics(x), weight, bias, 1e-3)


def no_eps_in_long_rows_layernorm(x, weight, bias, eps=1e-5):
    """Leaves eps out where a row is long, and its bound wide."""
    return _normed(x, *_statistics(x.astype(np.float64)), weight, bias, eps * (x.shape[-1] < 2000))
