"""The formulas of the Kullback-Leibler divergence, of its gradient, and wrong ways to compute it.

    l = t (log t - x), 0 for t = 0;   l = e^t (t - x) where the target is log t      dx = -t g

x is a logarithm of probabilities. "batchmean" is the sum over the length of the first axis.
"""

from __future__ import annotations

from typing import Any

from refkernels.loss_ref.pairs import loss
from refkernels.loss_ref.reduction import fault, wrong_totals


def _joint(xp: Any, x: Any, target: Any, log_target: bool, **_: Any) -> Any:
    if log_target:
        return xp.exp(target) * (target - x)
    return xp.where(_nonzero(target), target * (xp.log(target) - x), target)


def _apart(xp: Any, x: Any, target: Any, log_target: bool, **_: Any) -> Any:
    if log_target:
        return xp.exp(target) * target - xp.exp(target) * x
    return xp.where(_nonzero(target), target * xp.log(target), target) - target * x


def _nonzero(target: Any) -> Any:
    return (target > 0) | (target < 0)


def _slope(xp: Any, g: Any, target: Any, log_target: bool, **_: Any) -> Any:
    return -(xp.exp(target) if log_target else target) * g


def _swapped(xp: Any, x: Any, target: Any, log_target: bool, **_: Any) -> Any:
    return xp.exp(x) * (x - (target if log_target else xp.log(target)))


def _other(xp: Any, log_target: bool, **arguments: Any) -> Any:
    return _joint(xp, log_target=not log_target, **arguments)


def _other_slope(xp: Any, g: Any, log_target: bool, **arguments: Any) -> Any:
    return _slope(xp, g, log_target=not log_target, **arguments)


KL_DIV = loss(
    {"joint": _joint, "apart": _apart},
    {"slope": _slope},
    *wrong_totals(_joint, _slope, "all_rows_denominator"),
    fault("arguments_swapped", _swapped, None),
    fault("target_is_log", _other, _other_slope),
    fault("no_logarithm", lambda xp, x, **arguments: _joint(xp, x=xp.log(x), **arguments), None),
    params={"reduction": "mean", "log_target": False},
)
