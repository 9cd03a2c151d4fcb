"""The formulas of binary cross entropy of logits, of its gradient, and wrong ways to compute it.

    l = w ((1 - t) s(x) + p t s(-x)),   s(x) = max(x, 0) + log(1 + e^-|x|)
      = w ((1 - t) x + (1 + (p - 1) t) s(-x))
    dx = w ((1 - t) σ(x) - p t σ(-x)) g,   σ(x) = 1 / (1 + e^-x)

with the target t, the weight w and p = pos_weight, ones by default.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from refkernels.activation_ref.formulas import sigmoid
from refkernels.loss_ref.pairs import loss
from refkernels.loss_ref.reduction import fault, joined, reduced
from refkernels.ops import Fault


def _times(values: Any, weight: Any) -> Any:
    return values if weight is None else values * weight


def _log1p_exp(xp: Any, x: Any, log1p: bool = True) -> Any:
    """log(1 + e^-|x|)."""
    e = xp.exp(-abs(x))
    return xp.log1p(e) if log1p else xp.log(1 + e)


def _factor(xp: Any, target: Any, p: Any) -> Any:
    return xp.either(1 + (p - 1) * target, p * target + 1 - target)


def _shifted(
    xp: Any, x: Any, target: Any, weight: Any = None, pos_weight: Any = None, log1p: bool = True,
    **_: Any,
) -> Any:  # fmt: skip
    zero, slack, complement = xp.number(0), _log1p_exp(xp, x, log1p), (1 - target) * x
    if pos_weight is not None:
        factor = _factor(xp, target, pos_weight)
        return _times(complement + factor * (slack + xp.maximum(-x, zero)), weight)
    apart = xp.either(xp.maximum(x, zero) - x * target, complement + xp.maximum(-x, zero)) + slack
    return _times(xp.either(apart, complement - (xp.minimum(x, zero) - slack)), weight)


def _apart(
    xp: Any, x: Any, target: Any, weight: Any = None, pos_weight: Any = None, **_: Any
) -> Any:
    zero, slack = xp.number(0), _log1p_exp(xp, x)
    positive = _times(target, pos_weight) * (xp.maximum(-x, zero) + slack)
    return _times((1 - target) * (xp.maximum(x, zero) + slack) + positive, weight)


def _slope(
    xp: Any, g: Any, x: Any, target: Any, weight: Any = None, pos_weight: Any = None, **_: Any
) -> Any:
    slope = sigmoid(xp, x)
    if pos_weight is not None:
        slope = _factor(xp, target, pos_weight) * slope
    slope = slope - _times(target, pos_weight)
    return xp.either(_times(slope, weight) * g, _times(slope * g, weight))


def _complement(
    xp: Any, g: Any, x: Any, target: Any, weight: Any = None, pos_weight: Any = None, **_: Any
) -> Any:
    """(1 - t) - (1 + (p - 1) t) σ(-x): where both cancel, the error is absolute."""
    positive = sigmoid(xp, -x)
    if pos_weight is not None:
        positive = _factor(xp, target, pos_weight) * positive
    slope = (1 - target) - positive
    return xp.either(_times(slope, weight) * g, _times(slope * g, weight))


def _slope_apart(
    xp: Any, g: Any, x: Any, target: Any, weight: Any = None, pos_weight: Any = None, **_: Any
) -> Any:
    positive = _times(target, pos_weight) * sigmoid(xp, -x)
    return _times((1 - target) * sigmoid(xp, x) - positive, weight) * g


def _log_of_sigmoid(
    xp: Any, x: Any, target: Any, weight: Any = None, pos_weight: Any = None, **_: Any
) -> Any:
    p = sigmoid(xp, x)
    positive = _times(target, pos_weight) * xp.log(p)
    return _times(-(positive + (1 - target) * xp.log(1 - p)), weight)


def _without(xp: Any, *g: Any, of: Any, pos_weight: Any = None, **arguments: Any) -> Any:
    return of(xp, *g, **arguments)


def _of_probabilities(xp: Any, x: Any, **arguments: Any) -> Any:
    return _shifted(xp, x=sigmoid(xp, x), **arguments)


def _slope_of_probabilities(xp: Any, g: Any, x: Any, **arguments: Any) -> Any:
    p = sigmoid(xp, x)
    return _slope(xp, g, x=p, **arguments) * p * sigmoid(xp, -x)


def _weighted_negatives(
    xp: Any, x: Any, target: Any, pos_weight: Any = None, **arguments: Any
) -> Any:
    if pos_weight is None:
        return _shifted(xp, x, target, **arguments)
    return _shifted(xp, x=-x, target=1 - target, pos_weight=pos_weight, **arguments)


def _negatives_slope(
    xp: Any, g: Any, x: Any, target: Any, pos_weight: Any = None, **arguments: Any
) -> Any:
    if pos_weight is None:
        return _slope(xp, g, x, target, **arguments)
    return -_slope(xp, g, x=-x, target=1 - target, pos_weight=pos_weight, **arguments)


def _relu_slope(xp: Any, g: Any, x: Any, weight: Any = None, **arguments: Any) -> Any:
    """The slope of relu(x) - t x + log(1 + e^-|x|), with slope 0 of relu and 1 of |x| at 0."""
    slope = _slope(xp, g, x=x, weight=weight, **arguments)
    return xp.where((x < 0) | (x > 0), slope, slope - _times(g, weight))


BCE_WITH_LOGITS = loss(
    {"log1p": _shifted, "log": partial(_shifted, log1p=False), "apart": _apart, "truth": _apart},
    {"difference": _slope, "complement": _complement, "apart": _slope_apart, "truth": _slope_apart},
    fault("pos_weight_left_out", partial(_without, of=_shifted), partial(_without, of=_slope)),
    fault("pos_weight_of_negatives", _weighted_negatives, _negatives_slope),
    fault("sigmoid_twice", _of_probabilities, _slope_of_probabilities),
    fault("relu_slope_at_zero", None, _relu_slope),
    Fault("log_of_sigmoid", reduced(joined(_log_of_sigmoid)), unstable=True),
)
