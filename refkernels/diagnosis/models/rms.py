"""rms_norm whose last product takes x in float32, although the mean of squares takes all of x.

    y_i = f(x_i) r w_i,   r = (mean x² + eps)^(-1/2)

OneFlow's RMSLayerNorm in float64 does so, with eps in float32 too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.op import Op
from refkernels.ops import formula_op


def narrow_factor(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The variants with the given eps, and with eps in float32."""
    if problem.direction != "forward" or problem.format is not formats.BINARY64:
        return
    x, eps = problem.inputs["x"], float(problem.params["eps"])
    with np.errstate(over="ignore"):
        factor = x.astype(np.float32).astype(np.float64)
    if np.array_equal(factor, x, equal_nan=True):
        return
    for used in dict.fromkeys((eps, float(np.float32(eps)))):
        details = {} if used == eps else {"eps": used}
        answer = problem.ask({"factor": factor}, {"eps": used}, _op())
        yield Variant("float32_factor", details, answer)


@functools.cache
def _op() -> Op:
    return formula_op(
        "rms_norm",
        "x[... n], factor[... n], weight[n]? -> y[... n]",
        coupled="n",
        params={"eps": 1e-5},
        forms={"rsqrt": _formula},
        gradients=(),
        cases=list,
    )


def _formula(xp: Any, x: Any, factor: Any, eps: Any, weight: Any = None) -> Any:
    y = factor * xp.rsqrt(xp.mean(xp.square(x)) + eps)
    return y if weight is None else y * weight
