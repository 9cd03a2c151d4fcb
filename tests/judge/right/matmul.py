"""Right products: orders, blocks, split K, fused steps, wider sums."""

import functools

import numpy as np


def _terms(a, b):
    return a[..., :, :, None] * b[..., None, :, :]


def _in_order(a, b, order, fused=False):
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    total = np.zeros(shape, a.dtype)
    for k in order:
        left, right = a[..., :, k, None], b[..., k, None, :]
        if fused:
            total = (left.astype(np.float64) * right + total).astype(a.dtype)
        else:
            total = total + left * right
    return total


def _in_blocks(a, b, size, inner):
    k = a.shape[-1]
    parts = [
        inner(a[..., i : i + size], b[..., i : i + size, :]) for i in range(0, max(k, 1), size)
    ]
    return functools.reduce(np.add, parts)


def sequential_matmul(a, b):
    return _in_order(a, b, range(a.shape[-1]))


def reversed_matmul(a, b):
    return _in_order(a, b, range(a.shape[-1] - 1, -1, -1))


def shuffled_matmul(a, b):
    return _in_order(a, b, np.random.default_rng(0).permutation(a.shape[-1]))


def fused_matmul(a, b):
    return _in_order(a, b, range(a.shape[-1]), fused=True)


def fused_reversed_matmul(a, b):
    return _in_order(a, b, range(a.shape[-1] - 1, -1, -1), fused=True)


def library_matmul(a, b):
    return np.matmul(a, b)


def einsum_matmul(a, b):
    return np.einsum("...ik,...kj->...ij", a, b)


def pairwise_matmul(a, b):
    return np.add.reduce(np.moveaxis(_terms(a, b), -2, -1).copy(), axis=-1)


def blocked_matmul(a, b):
    return _in_blocks(a, b, 8, sequential_matmul)


def wide_blocked_matmul(a, b):
    return _in_blocks(a, b, 32, fused_matmul)


def split_k_matmul(a, b):
    return _in_blocks(a, b, max(-(-a.shape[-1] // 2), 1), np.matmul)


def split_k_by_4_matmul(a, b):
    return _in_blocks(a, b, max(-(-a.shape[-1] // 4), 1), sequential_matmul)


def strided_lanes_matmul(a, b):
    return functools.reduce(
        np.add, [sequential_matmul(a[..., i::4], b[..., i::4, :]) for i in range(4)]
    )


def float64_matmul(a, b):
    with np.errstate(over="ignore"):
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def float32_sums_matmul(a, b):
    return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
