"""Right products: orders, blocks, split K, fused steps, wider sums; and linear layers of them, the
bias last or first."""

import functools
import math

import numpy as np
from _ways import in_format
from sum import TOTALS


def _in_order(a, b, order, fused=False, start=None):
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    total = np.zeros(shape, a.dtype) if start is None else np.broadcast_to(start, shape)
    for k in order:
        left, right = a[..., :, k, None], b[..., k, None, :]
        wide = left.astype(np.float64) if fused else left
        total = (wide * right + total).astype(a.dtype)
    return np.array(total)


def _ordered(order, fused=False):
    return lambda a, b: _in_order(a, b, order(a.shape[-1]), fused)


def _backwards(n):
    return range(n - 1, -1, -1)


def _in_blocks(size, inner):
    """`size`: of a block; or of K, in so many blocks."""

    def product(a, b):
        k = a.shape[-1]
        step = size if size > 4 else max(-(-k // size), 1)
        parts = [
            inner(a[..., i : i + step], b[..., i : i + step, :]) for i in range(0, max(k, 1), step)
        ]
        return functools.reduce(np.add, parts)

    return product


def _of_terms(total):
    """All products, added in a way of `sum`."""
    terms = lambda a, b: np.moveaxis(a[..., :, :, None] * b[..., None, :, :], -2, -1)  # noqa: E731
    return lambda a, b: total(terms(a, b).copy())


def _cut(x, bits):
    """To so many bits, ties away; what is not finite stays."""
    step = 1 << (24 - bits)
    rounded = (x.view(np.uint32) + np.uint32(step >> 1)) & np.uint32(2**32 - step)
    return np.where(np.isfinite(x), rounded.view(np.float32), x)


def _split(bits, parts, most):
    """Products of the parts of each factor, the smallest first; the rows and columns that no parts
    hold, infinite or tiny, as they are."""

    def product(a, b):
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

    return product


_forwards = _ordered(range)
_matmul = lambda a, b: np.matmul(a, b)  # noqa: E731
PRODUCTS = {
    "library": _matmul, "sequential": _forwards, "reversed": _ordered(_backwards),
    "shuffled": _ordered(lambda n: np.random.default_rng(0).permutation(n)),
    "fused": _ordered(range, fused=True), "fused_reversed": _ordered(_backwards, fused=True),
    "einsum": lambda a, b: np.einsum("...ik,...kj->...ij", a, b),
    "pairwise": _of_terms(TOTALS["library"]),
    "blocked": _in_blocks(8, _forwards),
    "wide_blocked": _in_blocks(32, _ordered(range, fused=True)),
    "split_k": _in_blocks(2, np.matmul), "split_k_by_4": _in_blocks(4, _forwards),
    "lanes": _of_terms(TOTALS["lanes"]), "compensated": _of_terms(TOTALS["compensated"]),
    "split_tf32": _split(11, 2, 1), "split_bfloat16": _split(8, 3, 4),
    "float64": in_format(np.float64, _matmul), "float32_sums": in_format(np.float32, _matmul),
}  # fmt: skip
"""By name, every way of multiplying matrices, and stacks of them."""


def _linear(product):
    def linear(x, weight, bias=None):
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        y = product(rows, weight.T).reshape(*x.shape[:-1], weight.shape[0])
        return y if bias is None else y + bias

    return linear


def _onto_bias(order):
    """A product that is accumulated onto the bias."""

    def linear(x, weight, bias=None):
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        y = _in_order(rows, weight.T, order(x.shape[-1]), start=bias)
        return y.reshape(*x.shape[:-1], weight.shape[0])

    return linear


globals().update(
    {f"{name}_matmul": product for name, product in PRODUCTS.items()}
    | {f"{name}_linear": _linear(product) for name, product in PRODUCTS.items()}
    | {
        "bias_first_linear": _onto_bias(range),
        "bias_first_reversed_linear": _onto_bias(_backwards),
        "float64_linear": in_format(np.float64, _linear(_matmul)),
        "float32_sums_linear": in_format(np.float32, _linear(_matmul)),
    }
)  # fmt: skip
