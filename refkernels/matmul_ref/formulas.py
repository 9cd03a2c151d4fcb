"""Products as formulas: what the certified tiers are held against.

    c[b, i, j] = sum over k of a[b, i, k] b[b, k, j]
    y[i, o] = sum over k of x[i, k] weight[o, k] + bias[o]

A batch that only one operand of a product has is no row of these formulas: `matmul_ref` has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.op import Direction
from refkernels.ops import Prepared, formulas_of


def _matmul(xp: Any, a: Any, b: Any) -> Any:
    return xp.matmul(a, b)


def _linear(xp: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    rows, features = x.shape[0], weight.shape[1]
    product = xp.matmul(xp.reshape(x, (1, *x.shape)), xp.transpose(weight, (0, 2, 1)))
    y = xp.reshape(product, (rows, features))
    return y if bias is None else y + bias


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """A bias of zeros where its gradient is wanted: the linear layer gives it always."""
    if direction == "forward":
        return Prepared(inputs, params)
    weight = inputs["weight"]
    return Prepared({**inputs, "bias": np.zeros(weight.shape[0], weight.dtype)}, params)


MATMUL = formulas_of("matmul", "a[... i k], b[... k j] -> c[... i j]", forms={"sum": _matmul})
LINEAR = formulas_of(
    "linear",
    "x[... k], weight[o k], bias[o]? -> y[... o]",
    forms={"sum": _linear},
    prepare=_prepare,
)
