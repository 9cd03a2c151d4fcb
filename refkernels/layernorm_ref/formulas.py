"""The formulas of LayerNorm: the tiers after the first read them, and cones follow from them.

    m = mean(x),  v = mean((x - m)²),  r = (v + eps)^(-1/2),  xhat = (x - m) r,  y = xhat w + b
    dx = r (g - mean(g) - xhat mean(g xhat)),  g = dy w
    dweight, dbias = sums over rows of dy xhat and of dy

The normalised axes are joined into one, n.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from refkernels.layernorm_ref.arguments import normalized_axes
from refkernels.layernorm_ref.first_tier import first_tier
from refkernels.op import Direction
from refkernels.ops import Fault, Prepared, TwoStage, formulas_of
from refkernels.ops.formula import derived


def _times(values: Any, weight: Any) -> Any:
    return values if weight is None else values * weight


def _plus(values: Any, bias: Any) -> Any:
    return values if bias is None else values + bias


def _moments(xp: Any, x: Any, eps: Any, **_: Any) -> Any:
    """m, and v + eps."""
    mean = xp.mean(x)
    return mean, xp.mean(xp.square(x - mean)) + eps


def _one_pass(xp: Any, x: Any, eps: Any, clamped: bool = False, **_: Any) -> Any:
    mean = xp.mean(x)
    variance = xp.mean(xp.square(x)) - xp.square(mean)
    return mean, (xp.maximum(variance, xp.number(0)) if clamped else variance) + eps


def _welford(xp: Any, x: Any, eps: Any, **_: Any) -> Any:
    mean, squares = xp.welford(x)
    return mean, squares / x.shape[-1] + eps


def _rstd(xp: Any, row: Any) -> Any:
    return xp.rsqrt(row[1])


def _centred(xp: Any, row: Any, x: Any, weight: Any = None, bias: Any = None, **_: Any) -> Any:
    r = _rstd(xp, row)
    return _plus(_times((x - row[0]) * r, weight), bias), row[0], r


def _divided(xp: Any, row: Any, x: Any, weight: Any = None, bias: Any = None, **_: Any) -> Any:
    root = xp.sqrt(row[1])
    return _plus(_times((x - row[0]) / root, weight), bias), row[0], 1 / root


def _folded(xp: Any, row: Any, x: Any, weight: Any = None, bias: Any = None, **_: Any) -> Any:
    """One multiplication and one addition for each element: x (r w) + (b - m (r w))."""
    r = 1 / xp.sqrt(row[1])
    scale = _times(r, weight)
    return x * scale + _plus(-row[0] * scale, bias), row[0], r


def _project(
    xp: Any,
    dy: Any,
    x: Any,
    eps: Any,
    weight: Any = None,
    bias: Any = None,
    moments: Any = _moments,
) -> Any:
    """m, v + eps, mean(g) and mean(g xhat)."""
    row = moments(xp, x, eps)
    g, xhat = _times(dy, weight), (x - row[0]) * _rstd(xp, row)
    return *row, xp.mean(g), xp.mean(g * xhat)


def _subtract(
    xp: Any, row: Any, dy: Any, x: Any, weight: Any = None, bias: Any = None, **_: Any
) -> Any:
    r = _rstd(xp, row)
    xhat = (x - row[0]) * r
    dx = r * (_times(dy, weight) - row[2] - xhat * row[3])
    dweight = None if weight is None else xp.sum(dy * xhat, axis=0)
    return dx, dweight, None if bias is None else xp.sum(dy, axis=0)


def _subtract_distances(
    xp: Any, row: Any, dy: Any, x: Any, weight: Any = None, bias: Any = None, **_: Any
) -> Any:
    """dy g r - a r - d r r c, and sum(dy d r)."""
    r, d = _rstd(xp, row), x - row[0]
    dx = _times(dy, weight) * r - row[2] * r - d * r * r * row[3]
    dweight = None if weight is None else xp.sum(dy * d * r, axis=0)
    return dx, dweight, None if bias is None else xp.sum(dy, axis=0)


def _coefficients(xp: Any, dy: Any, x: Any, eps: Any, weight: Any = None, bias: Any = None) -> Any:
    """m, v + eps, mean(g), and the slope of x in dx."""
    row, g = _moments(xp, x, eps), _times(dy, weight)
    slope = (xp.sum(g) * row[0] - xp.sum(g * x)) * xp.power(_rstd(xp, row), 3) / x.shape[-1]
    return *row, xp.mean(g), slope


def _combine(
    xp: Any, row: Any, dy: Any, x: Any, weight: Any = None, bias: Any = None, **_: Any
) -> Any:
    """As PyTorch on a CPU: dy g r + b x - (b m + a r)."""
    r = _rstd(xp, row)
    dx = _times(dy, weight) * r + row[3] * x - (row[3] * row[0] + row[2] * r)
    return dx, *_subtract(xp, row, dy, x, weight, bias)[1:]


_gradient = partial(derived, outputs=("y",), cotangents={"dy": "y"}, inputs=("x", "weight", "bias"))
FOLDED = TwoStage(_moments, _folded)


def _naive(apply: Any, clamped: bool = True) -> Fault:
    moments = partial(_one_pass, clamped=clamped)
    backward = TwoStage(partial(_project, moments=moments), _subtract)
    return Fault("naive_variance", TwoStage(moments, apply), backward, unstable=True)


FAULTS = (
    Fault("folded_normalisation", FOLDED, unstable=True),
    _naive(_centred, clamped=False),
    *map(_naive, (_centred, _divided, _folded)),
)


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The normalised axes as one; a weight of ones and a bias of zeros where gradients need
    them."""
    x = inputs["x"]
    shape = normalized_axes(x.shape, params.pop("normalized_shape"))
    n, leading = math.prod(shape), x.shape[: x.ndim - len(shape)]
    flat = {
        name: None if array is None else array.reshape((*array.shape[: array.ndim - len(shape)], n))
        for name, array in inputs.items()
    }
    if direction == "backward":
        flat["weight"] = np.ones(n, x.dtype) if flat["weight"] is None else flat["weight"]
        flat["bias"] = np.zeros(n, x.dtype)

    def restore(name: str, array: Any) -> Any:
        if name in ("mean", "rstd"):
            return array
        return array.reshape(shape if name in ("dweight", "dbias") else leading + shape)

    return Prepared(flat, params, restore)


FORMULAS = formulas_of(
    "layernorm",
    "x[... n], weight[n]?, bias[n]? -> y[... n], mean[...], rstd[...]",
    coupled="n",
    params={"eps": 1e-5, "normalized_shape": None},
    forms={
        "centred": TwoStage(_moments, _centred),
        "divided": TwoStage(_moments, _divided),
        "folded": FOLDED,
        "welford": TwoStage(_welford, _centred),
    },
    backward={
        "projected": TwoStage(_project, _subtract),
        "by_dot": TwoStage(_project, _subtract_distances),
        "by_coefficients": TwoStage(_coefficients, _combine),
        "welford": TwoStage(partial(_project, moments=_welford), _subtract_distances),
        "composed": _gradient(TwoStage(_moments, _centred)),
    },
    faults=FAULTS,
    prepare=_prepare,
    tier=first_tier,
)
