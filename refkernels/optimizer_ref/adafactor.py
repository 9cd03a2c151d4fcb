"""Adafactor's step for a matrix, whose second moments are a row's and a column's.

    b = step^beta2_decay,  row' = (1 - b) row + b mean_j(g²),  col' = (1 - b) col + b mean_i(g²)
    v = row'_i col'_j / max(mean row', eps1),  u = g / √max(v, eps1²)
    a = max(eps2, rms w) min(lr, 1 / √step),  w' = w (1 - lr wd) - a u / max(1, rms u / d)

Source: Shazeer and Stern (2018), arXiv:1804.04235, with the places of eps1 as in
`torch.optim.Adafactor`.
"""

from __future__ import annotations

from typing import Any

from refkernels.op import Op
from refkernels.ops.domains import POSITIVE
from refkernels.optimizer_ref.formulas import Way, blend, decayed, pick
from refkernels.optimizer_ref.matrices import matrix_op

PARAMS = {
    "lr": 0.01, "beta2_decay": -0.8, "eps1": 1e-7, "eps2": 1e-3, "d": 1.0, "weight_decay": 0.0,
    "step": 1,
}  # fmt: skip


def _rms(xp: Any, a: Any) -> Any:
    """(1, 1, 1)."""
    _, m, n = a.shape
    flat = xp.reshape(a, (1, 1, m * n))
    return xp.either(xp.norm(flat) / xp.sqrt(xp.number(m * n)), xp.sqrt(xp.mean(xp.square(flat))))


def adafactor(
    xp: Any, param: Any, grad: Any, row: Any, col: Any, *, lr: Any, beta2_decay: Any, eps1: Any,
    eps2: Any, d: Any, weight_decay: Any, step: int, way: Way = 0,
) -> Any:  # fmt: skip
    m, n = param.shape[-2:]
    w, g = (xp.reshape(a, (1, m, n)) for a in (param, grad))
    row, col = xp.reshape(row, (1, m, 1)), xp.reshape(col, (1, 1, n))
    t = xp.number(step)
    kept = 1 - (xp.number(1) if step == 1 else xp.real_power(t, beta2_decay))
    squares = xp.square(g)
    row = blend(xp, way, row, xp.mean(squares, axis=2), kept)
    col = blend(xp, way, col, xp.mean(squares, axis=1), kept)
    above = xp.maximum(xp.mean(row, axis=1), eps1)
    v = pick(xp, way, lambda: row * col / above, lambda: row / above * col)
    v = xp.maximum(v, xp.square(eps1))
    u = pick(xp, way, lambda: xp.rsqrt(v) * g, lambda: g / xp.sqrt(v))
    rate = xp.maximum(eps2, _rms(xp, w)) * xp.minimum(lr, 1 / xp.sqrt(t))
    limit = xp.maximum(xp.number(1), _rms(xp, u) / d)
    taken = pick(xp, way, lambda: rate / limit * u, lambda: rate * (u / limit))
    shrink = None if weight_decay is None else lr * weight_decay
    return decayed(w, shrink) - taken, xp.reshape(row, (1, m)), xp.reshape(col, (1, n))


OP: Op = matrix_op(
    "adafactor",
    "param[m n], grad[m n], row[m], col[n] -> param[m n], row[m], col[n]",
    adafactor,
    "torch textbook mixture",
    PARAMS,
    dict.fromkeys(("eps1", "eps2", "d"), POSITIVE),
    {"step": 7, "weight_decay": 0.1},
    ({"d": 0.5}, {"eps1": 2.0}, {"step": 40_000}, {"step": 1}),
)
