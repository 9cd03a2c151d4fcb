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


def _cut(x, bits):
    """To so many bits, ties away; what is not finite stays."""
    step = 1 << (24 - bits)
    rounded = (x.view(np.uint32) + np.uint32(step >> 1)) & np.uint32(2**32 - step)
    return np.where(np.isfinite(x), rounded.view(np.float32), x)


def _split(a, b, bits, parts, most):
    """Products of the parts of each factor, the smallest first; the rows and columns that no parts
    hold, infinite or tiny, as they are."""
    pieces = []
    for x in (a, b):
        rest, some = np.ascontiguousarray(x, np.float32), []
        for _ in range(parts):
            some.append(_cut(rest, bits))
            rest = rest - some[-1]
        pieces.append(some)
    products = [
        np.matmul(pieces[0][i], pieces[1][total - i])
        for total in range(most, -1, -1)
        for i in range(total + 1)
        if i < parts and total - i < parts
    ]
    whole = [~np.isfinite(x) | ((np.abs(x) < np.float32(2.0**-100)) & (x != 0)) for x in (a, b)]
    plain = whole[0].any(-1)[..., :, None] | whole[1].any(-2)[..., None, :]
    return np.where(plain, np.matmul(a, b), functools.reduce(np.add, products)).astype(a.dtype)


def split_tf32_matmul(a, b):
    return _split(a, b, 11, 2, 1)


def split_bfloat16_matmul(a, b):
    return _split(a, b, 8, 3, 4)


def compensated_matmul(a, b):
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    total, lost = np.zeros(shape, a.dtype), np.zeros(shape, a.dtype)
    for k in range(a.shape[-1]):
        term = a[..., :, k, None] * b[..., k, None, :] - lost
        larger = total + term
        error = (larger - total) - term
        total, lost = larger, np.where(np.isfinite(error), error, 0).astype(a.dtype)
    return total
