"""Right kernels of the other ops, made from those of this folder: convolutions along one axis,
products with scales, clipped gradients, dropout, rotations, rows of a table."""

import conv2d as planes
import numpy as np
from _ways import in_kind as _k
from _ways import kernels, with_totals
from matmul import PRODUCTS
from sum import TOTALS, _scaled_norm


def _public(module, op):
    return {n: f for n, f in vars(module).items() if n.endswith(f"_{op}") and n[0] != "_"}


# --- convolutions along one axis ----------------------------------------------------------------


def _in_a_plane(conv2d):
    """Along the last axis of images of height 1, padded by hand."""

    def conv1d(x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
        stride, dilation = (n if isinstance(n, int) else n[0] for n in (stride, dilation))
        n, k = x.shape[-1], weight.shape[-1]
        if padding == "same":
            zeros = max((-(-n // stride) - 1) * stride + (k - 1) * dilation + 1 - n, 0)
            padding = [zeros // 2, zeros - zeros // 2]
        sides = [0, 0] if padding == "valid" else padding
        sides = [sides] * 2 if isinstance(sides, int) else list(sides) * (2 // len(sides))
        padded = np.pad(x, [*[(0, 0)] * (x.ndim - 1), tuple(sides)])
        params = {"stride": (1, stride), "dilation": (1, dilation), "groups": groups}
        y = conv2d(padded[..., None, :], weight[..., None, :], bias, padding="valid", **params)
        return y[..., 0, :]

    return conv1d


# --- products with scales -----------------------------------------------------------------------


def _scaled(matmul, first):
    def scaled_matmul(a, b, scale_a, scale_b, bias=None):
        rows = np.broadcast_to(scale_a, a.shape[:-1])[..., None]
        wide = [np.asarray(x, np.float32) for x in (a, b)]
        c = first(matmul(*wide), rows, scale_b)
        return c if bias is None else c + bias

    return scaled_matmul


_SCALES = {
    "rows_first": lambda c, rows, columns: c * rows * columns,
    "columns_first": lambda c, rows, columns: c * columns * rows,
    "scales_first": lambda c, rows, columns: c * (rows * columns),
}


# --- clipped gradients --------------------------------------------------------------------------


def _norm(total, flat, kind):
    return _scaled_norm(total, flat) if kind == 2.0 else _k(flat, np.abs(flat).max(initial=0))


def _factor(n, max_norm, eps, way):
    if way == "max":
        return _k(n, max_norm) / np.maximum(n, _k(n, max_norm))
    return np.minimum(_k(n, max_norm) / (n + _k(n, eps)), _k(n, 1))


def _clip_global(total, grads, tensor, max_norm=1.0, eps=1e-6, way="eps", norm_type=2.0):
    n = _norm(total, grads, norm_type)
    return grads * _factor(n, max_norm, eps, way), n


def _clip_each(total, grads, tensor, max_norm=1.0, eps=1e-6, way="max", norm_type=2.0):
    clipped = grads.copy()
    for k in range(int(tensor.max(initial=-1)) + 1):
        own = tensor == k
        factor = _factor(_norm(total, grads[own], norm_type), max_norm, eps, way)
        clipped[own] = grads[own] * factor
    return clipped


_VALUES = {
    "library": lambda grads, max_value=1.0: np.clip(
        grads, _k(grads, -max_value), _k(grads, max_value)
    ),
    "chosen": lambda grads, max_value=1.0: np.where(
        np.abs(grads) > _k(grads, max_value), np.copysign(_k(grads, max_value), grads), grads
    ),
    "one_side_at_a_time": lambda grads, max_value=1.0: np.minimum(
        np.maximum(grads, _k(grads, -max_value)), _k(grads, max_value)
    ),
}


# --- dropout ------------------------------------------------------------------------------------


def _dropout(scale):
    def dropout(x, mask=None, p=0.5, mode="upscale_in_train"):
        if mask is None:
            return x * _k(x, 1 - p) if mode == "downscale_in_infer" else x * _k(x, 1)
        if mode == "downscale_in_infer" or p == 1:
            return x * (mask.astype(x.dtype) if p < 1 or mode != "upscale_in_train" else _k(x, 0))
        return scale(x, mask, p)

    return dropout


_DROPOUTS = {
    "quotient": _dropout(lambda x, mask, p: x * mask.astype(x.dtype) / _k(x, 1 - p)),
    "product": _dropout(lambda x, mask, p: x * mask.astype(x.dtype) * _k(x, 1 / (1 - p))),
    "scaled_mask": _dropout(lambda x, mask, p: x * np.where(mask, _k(x, 1 / (1 - p)), _k(x, 0))),
}


# --- rotations ----------------------------------------------------------------------------------


def _tables(position, base, dim, kind):
    exponents = np.arange(0, dim, 2) / dim
    angles = position[..., None] * (np.float64(base) ** -exponents)
    return np.cos(angles).astype(kind), np.sin(angles).astype(kind)


def _tables_in_float32(position, base, dim, kind):
    exponents = np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim)
    frequency = np.float32(1) / np.power(np.float32(base), exponents)
    angles = position[..., None].astype(np.float32) * frequency
    return np.cos(angles).astype(kind), np.sin(angles).astype(kind)


def _pairs(x, c, s):
    a, b = x
    return a * c - b * s, b * c + a * s


def _pairs_swapped(x, c, s):
    a, b = x
    return -(s * b) + c * a, s * a + c * b


def _pairs_fused(x, c, s):
    a, b = (part.astype(np.float64) for part in x)
    return (a * c - x[1] * s).astype(c.dtype), (b * c + x[0] * s).astype(c.dtype)


def _pairs_wide(x, c, s):
    a, b = (part.astype(np.float64) for part in x)
    return (a * c - b * s).astype(c.dtype), (b * c + a * s).astype(c.dtype)


def _rotary(tables, rotate):
    def rotary(x, position, base=10000.0, layout="half", dim=None):
        dim = x.shape[-1] if dim is None else dim
        c, s = tables(np.asarray(position), base, dim, x.dtype)
        y, half = x.copy(), dim // 2
        first, second = (
            (slice(0, half), slice(half, dim)) if layout == "half"
            else (slice(0, dim, 2), slice(1, dim, 2))
        )  # fmt: skip
        y[..., first], y[..., second] = rotate((x[..., first], x[..., second]), c, s)
        return y

    return rotary


_ROTATIONS = {
    f"{name}_{order}": _rotary(tables, rotate)
    for name, tables in (
        ("tables", _tables), ("float32_tables", _tables_in_float32),
        ("held_tables", lambda *given: tuple(a.copy() for a in _tables(*given))),
    )
    for order, rotate in (
        ("plain", _pairs), ("swapped", _pairs_swapped), ("fused", _pairs_fused),
        ("wide", _pairs_wide),
    )
}  # fmt: skip


# --- rows of a table ----------------------------------------------------------------------------


def _one_by_one(weight, flat):
    return np.stack([weight[i] for i in flat]) if flat.size else weight[:0]


def _by_column(weight, flat):
    return np.stack([column[flat] for column in weight.T], axis=-1) if weight.size else weight[flat]


def _sorted(weight, flat):
    order = np.argsort(flat, kind="stable")
    return weight[flat[order]][np.argsort(order)]


def _distinct(weight, flat):
    rows, places = np.unique(flat, return_inverse=True)
    return weight[rows][places]


_LOOKUPS = {
    "fancy": lambda weight, flat: weight[flat], "take": lambda w, flat: np.take(w, flat, axis=0),
    "one_by_one": _one_by_one, "by_column": _by_column, "sorted": _sorted, "distinct": _distinct,
}  # fmt: skip


def _embedding(lookup, way):
    def embedding(weight, indices, padding_idx=None):
        flat = indices.reshape(-1)
        return way(weight, flat, lookup).reshape(*indices.shape, weight.shape[1])

    return embedding


def _tiled(weight, flat, lookup):
    parts = [lookup(weight, flat[i : i + 7]) for i in range(0, max(flat.size, 1), 7)]
    return np.concatenate(parts)


def _backwards(weight, flat, lookup):
    return lookup(weight, flat[::-1])[::-1]


globals().update(
    {
        name.replace("conv2d", "conv1d"): _in_a_plane(f)
        for name, f in _public(planes, "conv2d").items()
    }
    | {
        f"{name}_{order}_scaled_matmul": _scaled(f, first)
        for name, f in PRODUCTS.items()
        for order, first in _SCALES.items()
        if name not in ("split_tf32", "split_bfloat16")
    }
    | with_totals({"clip_by_global_norm": _clip_global, "clip_by_norm": _clip_each}, TOTALS)
    | kernels({"clip_by_value": _VALUES, "dropout": _DROPOUTS})
    | {f"{name}_rotary": f for name, f in _ROTATIONS.items()}
    | {
        f"{name}_{order}_embedding": _embedding(lookup, way)
        for name, lookup in _LOOKUPS.items()
        for order, way in (("tiled", _tiled), ("backwards", _backwards))
    }
)
