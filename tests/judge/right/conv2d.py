"""Right convolutions: orders of channels and taps, blocks, split channels, fused steps, im2col,
Winograd's minimal filtering, wider sums."""

import functools

import numpy as np
from _ways import in_format
from matmul import PRODUCTS


def _each(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def _sides(padding, lengths, taps, strides, dilations):
    """The zeros before and after each axis."""
    if padding == "valid":
        padding = 0
    if padding == "same":
        sides = []
        for n, k, s, d in zip(lengths, taps, strides, dilations, strict=True):
            zeros = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            sides.append((zeros // 2, zeros - zeros // 2))
        return sides
    if isinstance(padding, int):
        return [(padding, padding)] * 2
    if len(padding) == 2:
        return [(p, p) for p in padding]
    return [tuple(padding[:2]), tuple(padding[2:])]


def _convolved(given, product):
    """Windows (groups, images and places, channels, taps) and weights (groups, out, channels, taps)
    meet in `product`, which gives (groups, images and places, out)."""
    x, weight, bias, stride, padding, dilation, groups = given.values()
    taps, strides, dilations = weight.shape[2:], _each(stride), _each(dilation)
    leading, channels, lengths = x.shape[:-3], x.shape[-3], x.shape[-2:]
    sides = _sides(padding, lengths, taps, strides, dilations)
    padded = np.pad(x.reshape(-1, channels, *lengths), [(0, 0), (0, 0), *sides])
    out = [
        (padded.shape[2 + i] - (taps[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in (0, 1)
    ]
    rows, columns = (
        np.arange(out[i])[:, None] * strides[i] + np.arange(taps[i]) * dilations[i] for i in (0, 1)
    )
    # images, channels, places, taps
    windows = padded[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    windows = windows.reshape(len(padded), groups, channels // groups, out[0] * out[1], -1)
    windows = windows.transpose(1, 0, 3, 2, 4).reshape(groups, -1, channels // groups, _count(taps))
    filters = weight.reshape(groups, -1, channels // groups, _count(taps))
    start = None if bias is None else bias.reshape(groups, 1, -1)
    y = product(windows, filters, start)
    y = y.reshape(groups, len(padded), out[0] * out[1], -1).transpose(1, 0, 3, 2)
    return np.ascontiguousarray(y).reshape(*leading, weight.shape[0], *out)


def _count(taps):
    return taps[0] * taps[1]


def _with(y, bias):
    return y if bias is None else y + bias


def _by_terms(product):
    """A product over channels and taps as one axis, as of im2col."""

    def convolution(x, weight, bias):
        flat = x.shape[-2] * x.shape[-1]
        right = weight.reshape(*weight.shape[:2], flat)
        return _with(product(x.reshape(*x.shape[:2], flat), np.swapaxes(right, -1, -2)), bias)

    return convolution


def _by_tap(x, weight, bias):
    """A product over the channels for each tap, as in implicit GEMMs."""
    parts = [np.matmul(x[..., t], np.swapaxes(weight[..., t], -1, -2)) for t in range(x.shape[-1])]
    return _with(functools.reduce(np.add, parts), bias)


def _by_channel(x, weight, bias):
    parts = [np.matmul(x[:, :, c], np.swapaxes(weight[:, :, c], -1, -2)) for c in range(x.shape[2])]
    start = [] if bias is None else [bias]
    return functools.reduce(np.add, start + parts)


_DATA = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
_TAPS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_BACK = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])


def _filtered(given):
    """F(2 x 2, 3 x 3): tiles of 4 x 4 elements, 16 products for 4 results. Other taps and strides,
    and what is not finite, go through the matrix product."""
    x, weight, bias, stride, padding, dilation, groups = given.values()
    ordinary = weight.shape[2:] == (3, 3) and _each(stride) == _each(dilation) == (1, 1)
    if not (ordinary and np.isfinite(x).all() and np.isfinite(weight).all()):
        return _convolved(given, _by_terms(np.matmul))
    kind, leading, channels = x.dtype, x.shape[:-3], x.shape[-3]
    sides = _sides(padding, x.shape[-2:], (3, 3), (1, 1), (1, 1))
    padded = np.pad(x.reshape(-1, channels, *x.shape[-2:]), [(0, 0), (0, 0), *sides])
    out = padded.shape[2] - 2, padded.shape[3] - 2
    tiles = [-(-n // 2) for n in out]
    grown = [2 * t + 2 - n for t, n in zip(tiles, padded.shape[2:], strict=True)]
    padded = np.pad(padded, [(0, 0), (0, 0), *((0, g) for g in grown)])
    at = [2 * np.arange(t)[:, None] + np.arange(4) for t in tiles]
    cut = padded[:, :, at[0][:, None, :, None], at[1][None, :, None, :]]
    data, taps, back = (m.astype(kind) for m in (_DATA, _TAPS, _BACK))
    cut = np.matmul(np.matmul(data, cut), data.T)  # images, channels, tiles, tiles, 4, 4
    filters = np.matmul(np.matmul(taps, weight), taps.T)
    per = channels // groups
    cut = cut.reshape(len(cut), groups, per, *tiles, 4, 4)
    filters = filters.reshape(groups, -1, per, 4, 4)
    products = np.einsum("ngcijab,gocab->ngoijab", cut, filters)
    y = np.matmul(np.matmul(back, products), back.T)
    y = y.transpose(0, 1, 2, 3, 5, 4, 6).reshape(
        len(y), weight.shape[0], 2 * tiles[0], 2 * tiles[1]
    )
    y = y[:, :, : out[0], : out[1]]
    y = _with(y, None if bias is None else bias[:, None, None])
    return np.ascontiguousarray(y).reshape(*leading, weight.shape[0], *out)


def _kernel(compute, *how):
    def conv2d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
        given = {name: a for name, a in locals().items() if name not in ("compute", "how")}
        return compute(given, *how)

    return conv2d


_KERNELS = {
    "by_tap": _kernel(_convolved, _by_tap), "by_channel": _kernel(_convolved, _by_channel),
    "winograd": _kernel(_filtered),
}  # fmt: skip
_KERNELS |= {
    name: _kernel(_convolved, _by_terms(product))
    for name, product in PRODUCTS.items()
    if name not in ("split_bfloat16", "float64", "float32_sums")
}
_WIDE = {"float64": np.float64, "float32_inside": np.float32}
_KERNELS |= {name: in_format(kind, _KERNELS["library"]) for name, kind in _WIDE.items()}
globals().update({f"{name}_conv2d": kernel for name, kernel in _KERNELS.items()})
