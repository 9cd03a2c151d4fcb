"""Adafactor's step for a matrix, whose second moments are a row's and a column's.

    b = step^beta2_decay,  row' = (1 - b) row + b mean_j(g²),  col' = (1 - b) col + b mean_i(g²)
    v = row'_i col'_j / max(mean row', eps1),  u = g / √max(v, eps1²)
    a = max(eps2, rms w) min(lr, 1 / √step),  w' = w (1 - lr wd) - a u / max(1, rms u / d)

Source: Shazeer and Stern (2018), arXiv:1804.04235, with the places of eps1 as in
`torch.optim.Adafactor`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.op import Case, Direction, Op
from refkernels.ops import Prepared, formula_op
from refkernels.ops.cases import Arrays, case
from refkernels.ops.domains import POSITIVE
from refkernels.optimizer_ref.formulas import Way, blend, decayed, pick

PARAMS = {
    "lr": 0.01, "beta2_decay": -0.8, "eps1": 1e-7, "eps2": 1e-3, "d": 1.0, "weight_decay": 0.0,
    "step": 1,
}  # fmt: skip


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    shape = inputs["param"].shape
    wanted = {"param": shape, "grad": shape, "row": shape[:1], "col": shape[1:]}
    found = {name: inputs[name].shape for name in wanted}
    if len(shape) != 2 or found != wanted:
        raise ValueError(f"The arrays have shapes {found}: they must be (m, n), (m, n), m and n.")
    as_count(params["step"], "step")
    return Prepared(inputs, {**params, "weight_decay": params["weight_decay"] or None})


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


def _arrays(kind: str, shape: tuple[int, int], rng: np.random.Generator, dtype: str) -> Arrays:
    """param, grad and their squares' means; a quarter of the parameters is 0."""
    size = {"small": 1e-4}.get(kind, 1.0)
    param, grad = size * rng.standard_normal(shape), rng.standard_normal(shape)
    param.flat[::4] = 0.0
    grad *= {"large": 30.0, "zero gradient": 0.0}.get(kind, 1.0)
    squares = np.square(rng.standard_normal(shape)) * (kind != "first")
    if kind == "specials":
        grad[1, 2], param[3, 0] = np.nan, np.inf
    return {"param": param, "grad": grad, "row": squares.mean(1), "col": squares.mean(0)}


def _cases() -> list[Case]:
    """All cases. Appended, never changed."""
    later: Any = {"step": 7, "weight_decay": 0.1}

    def make(regime: str, kind: str = "", shape: tuple[int, int] = (13, 17), **params: Any) -> Case:
        parameters = {"m": shape[0], "n": shape[1]}
        build = partial(_arrays, kind, shape)
        return case("adafactor", regime, parameters, build, params, directions=("forward",))

    return [
        make("first_step", "first"),
        make("later_step", **later),
        make("late_step", shape=(5, 40), **{**later, "step": 40_000}),
        make("clipped", "large", d=1.25, **later),
        make("small_parameters", "small", **later),
        make("eps_visible", eps1=2.0, **later),
        make("zero_gradient", "zero gradient", **later),
        make("specials", "specials", **later),
        make("invariance", **later),
    ]


OP: Op = formula_op(
    "adafactor",
    "param[m n], grad[m n], row[m], col[n] -> param[m n], row[m], col[n]",
    "m n",
    gradients=(),
    params=PARAMS,
    domains=dict.fromkeys(("eps1", "eps2", "d"), POSITIVE),
    prepare=_prepare,
    forms={
        "torch": partial(adafactor, way=0),
        "textbook": partial(adafactor, way=1),
        "mixture": partial(adafactor, way=None),
    },
    truth=partial(adafactor, way=1),
    widest="mixture",
    scalars="binary64",
    cases=_cases,
)
