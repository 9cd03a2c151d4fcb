"""The formulas of a linear layer with a low-rank update, and wrong ways to compute it."""

from __future__ import annotations

from typing import Any


def turned(xp: Any, a: Any) -> Any:
    """aᵀ of a matrix, as a batch of one."""
    return xp.transpose(xp.reshape(a, (1, *a.shape[-2:])), (0, 2, 1))


def rows_times(xp: Any, x: Any, weight: Any) -> Any:
    """x weightᵀ: (rows, k) and (..., n, k) to (rows, n)."""
    product = xp.matmul(xp.reshape(x, (1, *x.shape)), turned(xp, weight))
    return xp.reshape(product, product.shape[1:])


def columns_times(xp: Any, dy: Any, x: Any) -> Any:
    """dyᵀ x: (rows, n) and (rows, k) to (1, n, k)."""
    return xp.matmul(turned(xp, dy), xp.reshape(x, (1, *x.shape)))


def updated(
    keep: str, xp: Any, x: Any, weight: Any, lora_a: Any, lora_b: Any, scale: Any, bias: Any = None
) -> Any:
    """The update beside the layer. `keep`: the method of xp for what the parts give."""
    kept = getattr(xp, keep)
    base = rows_times(xp, x, weight)
    base = kept(base if bias is None else base + bias)
    update = kept(rows_times(xp, kept(rows_times(xp, x, lora_a)), lora_b))
    early = rows_times(xp, kept(rows_times(xp, kept(x * scale), lora_a)), lora_b)
    return base + xp.either(kept(update * scale), early)


def updated_gradients(
    keep: str, xp: Any, dy: Any, x: Any, weight: Any, lora_a: Any, lora_b: Any, scale: Any,
    bias: Any = None,
) -> Any:  # fmt: skip
    kept = getattr(xp, keep)
    hidden = kept(rows_times(xp, x, lora_a))
    scaled = kept(dy * scale)
    early = kept(rows_times(xp, kept(x * scale), lora_a))
    dlora_b = xp.either(columns_times(xp, scaled, hidden), columns_times(xp, dy, early))
    dhidden = xp.either(
        kept(rows_times(xp, scaled, turned(xp, lora_b))),
        kept(kept(rows_times(xp, dy, turned(xp, lora_b))) * scale),
    )
    dx = kept(rows_times(xp, dy, turned(xp, weight)))
    dx = dx + kept(rows_times(xp, dhidden, turned(xp, lora_a)))
    dbias = None if bias is None else xp.sum(dy, axis=0)
    return dx, columns_times(xp, dy, x), columns_times(xp, dhidden, x), dlora_b, dbias
