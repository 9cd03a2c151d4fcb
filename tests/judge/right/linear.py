"""Right linear layers: the products of `matmul` with the weight's rows, the bias last or first."""

import math

import matmul
import numpy as np


def _applied(product, x, weight, bias):
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    y = product(rows, weight.T).reshape(*x.shape[:-1], weight.shape[0])
    return y if bias is None else y + bias


def _onto_bias(x, weight, bias, order):
    """A product that is accumulated onto the bias."""
    shape = (*x.shape[:-1], weight.shape[0])
    total = np.zeros(shape, x.dtype) if bias is None else np.broadcast_to(bias, shape)
    for k in order:
        total = total + x[..., k, None] * weight[:, k]
    return np.array(total)


def library_linear(x, weight, bias=None):
    return _applied(np.matmul, x, weight, bias)


def sequential_linear(x, weight, bias=None):
    return _applied(matmul.sequential_matmul, x, weight, bias)


def reversed_linear(x, weight, bias=None):
    return _applied(matmul.reversed_matmul, x, weight, bias)


def shuffled_linear(x, weight, bias=None):
    return _applied(matmul.shuffled_matmul, x, weight, bias)


def fused_linear(x, weight, bias=None):
    return _applied(matmul.fused_matmul, x, weight, bias)


def pairwise_linear(x, weight, bias=None):
    return _applied(matmul.pairwise_matmul, x, weight, bias)


def blocked_linear(x, weight, bias=None):
    return _applied(matmul.blocked_matmul, x, weight, bias)


def split_k_linear(x, weight, bias=None):
    return _applied(matmul.split_k_matmul, x, weight, bias)


def split_k_by_4_linear(x, weight, bias=None):
    return _applied(matmul.split_k_by_4_matmul, x, weight, bias)


def lanes_linear(x, weight, bias=None):
    return _applied(matmul.strided_lanes_matmul, x, weight, bias)


def split_tf32_linear(x, weight, bias=None):
    return _applied(matmul.split_tf32_matmul, x, weight, bias)


def compensated_linear(x, weight, bias=None):
    return _applied(matmul.compensated_matmul, x, weight, bias)


def bias_first_linear(x, weight, bias=None):
    return _onto_bias(x, weight, bias, range(x.shape[-1]))


def bias_first_reversed_linear(x, weight, bias=None):
    return _onto_bias(x, weight, bias, range(x.shape[-1] - 1, -1, -1))


def float64_linear(x, weight, bias=None):
    wide = (a if a is None else a.astype(np.float64) for a in (x, weight, bias))
    return _applied(np.matmul, *wide).astype(x.dtype)


def float32_inside_linear(x, weight, bias=None):
    wide = (a if a is None else a.astype(np.float32) for a in (x, weight, bias))
    return _applied(np.matmul, *wide).astype(x.dtype)
