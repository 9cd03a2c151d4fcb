"""rms_norm whose last product takes x in float32, although the mean of squares takes all of x.

    y_i = f(x_i) r w_i,   r = (mean x² + eps)^(-1/2),   f rounds to float32
    dx_i = f(g_i r) - x_i r³ mean(g f(x)),   dweight_i = sum over rows of dy_i f(x_i) r,   g = dy w

OneFlow's RMSLayerNorm in float64 does so, with eps in float32 too: it casts x before it multiplies,
and the gradient of a cast is a cast (`RMSLayerNormalizationFunctor`, math_functor.cpp).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.variants.formulas import answer
from refkernels.op import Op
from refkernels.ops import formula_op

_CONSTANT = "constant_statistics"


def narrow_factor(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The variants with the given eps, and with eps in float32."""
    if problem.format is not formats.BINARY64:
        return
    x, eps = problem.inputs["x"], float(problem.params["eps"])
    factor = _in_float32(x)
    if problem.direction == "forward" and np.array_equal(factor, x, equal_nan=True):
        return
    for used in dict.fromkeys((eps, float(np.float32(eps)))):
        arrays = {"factor": factor}
        if problem.direction == "backward":
            asked = replace(problem, params={**problem.params, "eps": used})
            arrays["through"] = _in_float32(_through_factor(asked))
        details = {} if used == eps else {"eps": used}
        yield Variant("float32_factor", details, problem.ask(arrays, {"eps": used}, _op()))


def _through_factor(problem: Problem) -> Array:
    """dx with constant statistics."""
    (formula,) = (fault.backward for fault in problem.faults if fault.cause == _CONSTANT)
    return answer(problem, formula).reference["dx"].hi


def _in_float32(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(np.float64)


@functools.cache
def _op() -> Op:
    """`through`: what passes through the factor to dx, rounded."""
    return formula_op(
        "rms_norm",
        "x[... n], factor[... n], through[... n]?, weight[n]? -> y[... n]",
        coupled="n",
        params={"eps": 1e-5},
        forms={"rsqrt": _formula},
        backward={"chain_rule": _gradients},
        gradients=("x", "weight"),
        cases=list,
    )


def _root(xp: Any, x: Any, eps: Any) -> Any:
    return xp.rsqrt(xp.mean(xp.square(x)) + eps)


def _times(values: Any, weight: Any) -> Any:
    return values if weight is None else values * weight


def _formula(
    xp: Any, x: Any, factor: Any, eps: Any, through: Any = None, weight: Any = None
) -> Any:
    return _times(factor * _root(xp, x, eps), weight)


def _gradients(
    xp: Any, dy: Any, x: Any, factor: Any, through: Any, eps: Any, weight: Any = None
) -> Any:
    r = _root(xp, x, eps)
    slope = xp.sum(_times(dy, weight) * factor) * xp.power(r, 3) / x.shape[-1]
    dweight = None if weight is None else xp.sum(dy * (factor * r), axis=0)
    return through - x * slope, dweight
