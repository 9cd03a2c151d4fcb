"""The formulas of losses of single elements, of their gradients, and wrong ways to compute them.

    mse                 d²,  d = x - target                           gradient 2 d
    l1                  |d|                                           sign d, 0 at 0
    huber               d² / 2 for |d| < δ,  δ (|d| - δ / 2)          d, δ sign d
    smooth_l1           d² / (2 β) for |d| < β,  |d| - β / 2          d / β, sign d

Source: Huber (1964), doi:10.1214/aoms/1177703732; Girshick (2015), arXiv:1504.08083 (smooth L1).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.loss_ref import reduction
from refkernels.loss_ref.reduction import check, counts, fault, signature
from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.ops.domains import NOT_NEGATIVE, POSITIVE

PAIR = "x[...], target[...]"
WEIGHTED = PAIR + ", weight[...]?, pos_weight[...]?"


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The question with elements as rows."""
    x, settings = inputs["x"], dict(params)
    for name, array in inputs.items():
        if array is None or name == "dloss" or array.shape == x.shape:
            continue
        if name == "target" or not _stretches(array.shape, x.shape):
            raise ValueError(f"{name} has shape {array.shape} and x {x.shape}: they do not fit.")
    check(settings["reduction"], *(("batchmean",) if "log_target" in settings else ()))
    totals = counts(np.ones(x.shape, bool))
    if settings["reduction"] == "batchmean":
        settings["reduction"], totals["total"] = "mean", len(x) if x.ndim else 1
    takes = WEIGHTED if "pos_weight" in inputs else PAIR
    return Prepared(
        inputs,
        {**settings, **totals},
        signature=signature(takes, "", settings["reduction"], direction),
    )


def _stretches(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array of one shape broadcasts to the other shape."""
    last = to[len(to) - len(shape) :]
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape, last, strict=True))


loss = partial(reduction.loss, totals=("sum_instead_of_mean", "batch_denominator"), prepare=prepare)


def _signed(xp: Any, g: Any, x: Any, target: Any) -> Any:
    """g with the sign of x - target, which no rounding changes."""
    equal = (x - target) * g  # 0, or NaN
    return xp.where(x > target, g, xp.where(x < target, -g, equal))


def _square(xp: Any, x: Any, target: Any, **_: Any) -> Any:
    return xp.square(x - target)


def _twice(xp: Any, g: Any, x: Any, target: Any, **_: Any) -> Any:
    d = x - target
    return xp.either(2 * d * g, d * (2 * g))


def _once(xp: Any, g: Any, x: Any, target: Any, **_: Any) -> Any:
    return (x - target) * g


MSE = loss(
    {"square": _square},
    {"twice": _twice},
    fault("half_square", lambda xp, **arguments: _square(xp, **arguments) / 2, _once),
    fault("absolute_difference", lambda xp, x, target, **_: abs(x - target), None),
)


def _absolute(xp: Any, x: Any, target: Any, **_: Any) -> Any:
    return abs(x - target)


def _sign(xp: Any, g: Any, x: Any, target: Any, **_: Any) -> Any:
    return _signed(xp, g, x, target)


L1 = loss(
    {"absolute": _absolute},
    {"sign": _sign},
    fault("squared_difference", _square, _twice),
    fault("sign_at_zero", None, lambda xp, g, x, target, **_: xp.where(x < target, -g, g)),
)


def _huber(xp: Any, x: Any, target: Any, delta: Any, **_: Any) -> Any:
    d = abs(x - target)
    square = xp.either(xp.square(d) / 2, d * (d / 2))
    beyond = delta * xp.either(d - delta / 2, d - xp.store(delta / 2))
    return xp.where(d < delta, square, beyond)


def _huber_slope(xp: Any, g: Any, x: Any, target: Any, delta: Any, **_: Any) -> Any:
    d = x - target
    return xp.where(abs(d) < delta, d * g, _signed(xp, delta * g, x, target))


def _smooth(xp: Any, x: Any, target: Any, beta: Any, **_: Any) -> Any:
    d = abs(x - target)
    square = xp.either(xp.square(d) / 2 / beta, xp.square(d) / (2 * beta))
    return xp.where(d < beta, square, d - beta / 2)


def _smooth_slope(xp: Any, g: Any, x: Any, target: Any, beta: Any, **_: Any) -> Any:
    d = x - target
    inner = xp.either(d * g / beta, d / beta * g)
    return xp.where(abs(d) < beta, inner, _signed(xp, g, x, target))


HUBER = loss(
    {"pieces": _huber},
    {"pieces": _huber_slope},
    fault("smooth_l1_instead", lambda xp, delta, **arguments: _smooth(xp, beta=delta, **arguments),
          lambda xp, g, delta, **arguments: _smooth_slope(xp, g, beta=delta, **arguments)),
    params={"reduction": "mean", "delta": 1.0}, domains={"delta": POSITIVE},
)  # fmt: skip
SMOOTH_L1 = loss(
    {"pieces": _smooth},
    {"pieces": _smooth_slope},
    fault("huber_instead", lambda xp, beta, **arguments: _huber(xp, delta=beta, **arguments),
          lambda xp, g, beta, **arguments: _huber_slope(xp, g, delta=beta, **arguments)),
    params={"reduction": "mean", "beta": 1.0}, domains={"beta": NOT_NEGATIVE},
)  # fmt: skip
