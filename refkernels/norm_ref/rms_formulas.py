"""The formulas of rms_norm and of its gradients.

    y_i = x_i r w_i,   r = (mean x² + eps)^(-1/2)

    dx_i = r (g_i - xhat_i mean(g xhat)),  dweight_i = sum over rows of dy_i xhat_i,
    g = dy w,  xhat = x r

Source: Zhang and Sennrich (2019), "Root mean square layer normalization", arXiv:1910.07467.
"""

from __future__ import annotations

from typing import Any

from refkernels.ops import TwoStage


def _times(values: Any, weight: Any) -> Any:
    return values if weight is None else values * weight


def _mean_square(xp: Any, x: Any, eps: Any, **_: Any) -> Any:
    return xp.mean(xp.square(x)) + eps


def _by_rsqrt(xp: Any, row: Any, x: Any, weight: Any = None, **_: Any) -> Any:
    return _times(x * xp.rsqrt(row[0]), weight)


def _by_sqrt(xp: Any, row: Any, x: Any, weight: Any = None, **_: Any) -> Any:
    return _times(x / xp.sqrt(row[0]), weight)


def _kept(xp: Any, row: Any, x: Any, weight: Any = None, **_: Any) -> Any:
    """As in Llama with 16 bits."""
    return _times(xp.store(x * xp.rsqrt(row[0])), weight)


def _mixture(xp: Any, row: Any, x: Any, weight: Any = None, **_: Any) -> Any:
    root = xp.sqrt(row[0])
    r = xp.either(xp.rsqrt(row[0]), 1 / root)
    y = _times(xp.store(xp.either(x * r, x / root)), weight)
    return y if weight is None else xp.either(y, x * (r * weight))


FORMS = {
    "rsqrt": TwoStage(_mean_square, _by_rsqrt),
    "sqrt": TwoStage(_mean_square, _by_sqrt),
    "kept": TwoStage(_mean_square, _kept),
    "mixture": TwoStage(_mean_square, _mixture),
}


# --- backward ---------------------------------------------------------------------------------


def _project(xp: Any, dy: Any, x: Any, eps: Any, weight: Any = None) -> Any:
    """r, and mean(g xhat)."""
    r = xp.rsqrt(_mean_square(xp, x, eps))
    return r, xp.mean(_times(dy, weight) * (x * r))


def _subtract(xp: Any, row: Any, dy: Any, x: Any, weight: Any = None, **_: Any) -> Any:
    r, mean = row
    xhat = x * r
    dweight = None if weight is None else xp.sum(dy * xhat, axis=0)
    return r * (_times(dy, weight) - xhat * mean), dweight


def _project_chain(xp: Any, dy: Any, x: Any, eps: Any, weight: Any = None) -> Any:
    """r, and sum(g x) r³ / n, by the chain rule."""
    r = xp.rsqrt(_mean_square(xp, x, eps))
    return r, xp.sum(_times(dy, weight) * x) * xp.power(r, 3) / x.shape[-1]


def _add_chain(xp: Any, row: Any, dy: Any, x: Any, weight: Any = None, **_: Any) -> Any:
    r, slope = row
    dweight = None if weight is None else xp.sum(dy * (x * r), axis=0)
    return _times(dy, weight) * r - x * slope, dweight


def _project_mixture(xp: Any, dy: Any, x: Any, eps: Any, weight: Any = None) -> Any:
    square = _mean_square(xp, x, eps)
    r = xp.saved(xp.either(xp.rsqrt(square), 1 / xp.sqrt(square)))
    g = xp.store(_times(dy, weight))
    return r, xp.mean(g * xp.saved(x * r)), xp.sum(g * x) * xp.power(r, 3) / x.shape[-1]


def _mix(xp: Any, row: Any, dy: Any, x: Any, weight: Any = None, **_: Any) -> Any:
    r, mean, slope = row
    g, xhat = xp.store(_times(dy, weight)), xp.saved(x * r)
    dx = xp.either(xp.either(r * (g - xhat * mean), g * r - r * xhat * mean), g * r - x * slope)
    return dx, None if weight is None else xp.sum(xp.store(dy * xhat), axis=0)


BACKWARD = {
    "projected": TwoStage(_project, _subtract),
    "chain_rule": TwoStage(_project_chain, _add_chain),
    "mixture": TwoStage(_project_mixture, _mix),
}
