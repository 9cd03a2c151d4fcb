"""RMS norm over the last axis, with its gradients, certified.

    rms_norm(x, weight=None, eps=1e-5)                -> Enclosure
    rms_norm_backward(dy, x, weight=None, eps=1e-5)   -> Backward(dx, dweight)

`formulas` are the formulas and the wrong ways, `OPS` the op that they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.norm_ref.cases import cases
from refkernels.norm_ref.formulas import BACKWARD, FAULTS, FORMS
from refkernels.ops import formula_op

__all__ = ["OPS", "Backward", "rms_norm", "rms_norm_backward"]

RMS_NORM = formula_op(
    "rms_norm",
    "x[... n], weight[n]? -> y[... n]",
    coupled="n",
    params={"eps": 1e-5},
    forms=FORMS,
    backward=BACKWARD,
    faults=FAULTS,
    cases=cases,
)
OPS = (RMS_NORM,)


class Backward(NamedTuple):
    """The gradients; dweight is None where there is no weight."""

    dx: Enclosure
    dweight: Enclosure | None


def rms_norm(
    x: Any, weight: Any = None, *, eps: float = 1e-5, certify: Certify = "enclosure"
) -> Enclosure:
    """y_i = x_i / sqrt(mean(x²) + eps) weight_i over the last axis; y has x's shape.

    x           float16, bfloat16, float32 or float64, of one axis or more (NumPy, DLPack,
                `__array__`)
    weight      one number for each of the last axis; ones by default
    eps         the number as it is given, in binary64
    certify     the question (`refkernels.Enclosure`)

    The bound of a float32 kernel is about (n / 2 + 12) 2^-24 |y_i|: `OPS` has it elementwise,
    proven for x rsqrt(v), x / sqrt(v) and x (1 / sqrt(v)), v = mean(x²) + eps, the weight applied
    before or after, x rsqrt(v) kept in x's format or not, sums in any order. It is infinite where
    the sum of x² overflows.

    Raises TypeError for other dtypes, ValueError for shapes that do not fit.
    Source: Zhang and Sennrich (2019), arXiv:1910.07467.
    """
    inputs = {"x": x} | ({} if weight is None else {"weight": weight})
    return RMS_NORM.evaluate("forward", inputs, {"eps": eps}, certify)["y"]


def rms_norm_backward(
    dy: Any, x: Any, weight: Any = None, *, eps: float = 1e-5, certify: Certify = "enclosure"
) -> Backward:
    """dx_i = r (g_i - xhat_i mean(g xhat)), dweight_i = sum over rows of dy_i xhat_i, with
    r = 1 / sqrt(mean(x²) + eps), g = dy weight and xhat = x r.

    dy has x's shape; what else is as for `rms_norm`. The bound allows r, g and xhat kept in x's
    format, and the gradient by the chain rule.
    """
    inputs = {"dy": dy, "x": x} | ({} if weight is None else {"weight": weight})
    found = RMS_NORM.evaluate("backward", inputs, {"eps": eps}, certify)
    return Backward(found["dx"], found.get("dweight"))
