"""The certified LayerNorm: its formulas, read after `first_tier`.

Forward, over rows of n elements:
    mean = sum(x) / n,   rstd = (sum((x - mean)^2) / n + eps)^(-1/2),
    y = (x - mean) * rstd * weight + bias.
Backward, with t = dy * weight and xhat = (x - mean) * rstd:
    dx = rstd * (t - mean(t) - xhat * mean(t * xhat)),
    dweight = sum over rows of dy * xhat,   dbias = sum over rows of dy.

Special values follow the extended reals, and NaN stands for "undefined":
- a NaN in a row, or both infinities: mean, rstd and y of the row are NaN; with infinities of one
  sign the mean is that infinity, rstd and y are NaN (the variance is undefined);
- eps = 0 and a variance of 0: rstd is +inf, and everything that multiplies it (y, dx, dweight) is
  NaN; both are unknown in a row of copies of binary64's smallest number, as if it had underflowed;
- an infinite or NaN weight or bias: y is sign(d) * weight + bias, dx of every row is NaN;
- an infinite or NaN dy: dx of its row is NaN; dweight and dbias are the column's extended sum;
- a row whose xhat is undefined makes dx of the row and the whole of dweight NaN.
"""

from typing import Any, NamedTuple

import numpy.typing as npt

from refkernels.arithmetic import tiers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.layernorm_ref.arguments import NormalizedShape, RowProblem, prepare
from refkernels.layernorm_ref.formulas import FORMULAS
from refkernels.op import Direction


class Forward(NamedTuple):
    """y has x's shape; mean and rstd have x's leading shape."""

    y: Enclosure
    mean: Enclosure
    rstd: Enclosure


class Backward(NamedTuple):
    """dx has x's shape; dweight and dbias have the normalised shape."""

    dx: Enclosure
    dweight: Enclosure
    dbias: Enclosure


class ForwardArrays(NamedTuple):
    """Bounds, condition numbers or a plain algorithm's answers, in the form of Forward."""

    y: npt.NDArray[Any]
    mean: npt.NDArray[Any]
    rstd: npt.NDArray[Any]


class BackwardArrays(NamedTuple):
    """Bounds, condition numbers or a plain algorithm's answers, in the form of Backward."""

    dx: npt.NDArray[Any]
    dweight: npt.NDArray[Any]
    dbias: npt.NDArray[Any]


class Statistics(NamedTuple):
    """The rows' mean and rstd, flat, as sharp as the question "enclosure" makes them."""

    mean: Enclosure
    rstd: Enclosure

    def of(self, rows: slice) -> "Statistics":
        """The statistics of some rows."""
        if rows == slice(0, self.mean.size):
            return self
        return Statistics(self.mean[rows], self.rstd[rows])


def statistics_of(problem: RowProblem) -> Statistics:
    """The statistics of a problem's rows."""
    params = {"eps": problem.eps}
    with tiers.counted():  # not counted: they are not part of the answer
        answer = FORMULAS.evaluate("forward", {"x": problem.x}, params)
    return Statistics(answer["mean"], answer["rstd"])


def solve(problem: RowProblem, certify: Certify = "enclosure") -> Any:
    """`forward` of a problem, or `backward` of one with a cotangent."""
    direction: Direction = "forward" if problem.dy is None else "backward"
    inputs = {"x": problem.x, **problem.given}
    if problem.dy is not None:
        inputs["dy"] = problem.dy
    answer = FORMULAS.evaluate(direction, inputs, {"eps": problem.eps}, certify)
    shapes = {
        **dict.fromkeys(("y", "dx"), problem.shape),
        **dict.fromkeys(("mean", "rstd"), problem.leading),
        **dict.fromkeys(("dweight", "dbias"), problem.normalized),
    }
    kind = Forward if problem.dy is None else Backward
    return kind(**{name: part.reshape(shapes[name]) for name, part in answer.items()})


def forward(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    certify: Certify = "enclosure",
) -> Forward:
    """y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, with mean and rstd.

    x (..., *normalized_shape); weight, bias of shape normalized_shape, None for 1 and 0; each
    float16, bfloat16, float32 or float64. normalized_shape None means x's last axis. eps is a
    binary64 number >= 0, taken exactly. The variance is the biased one (divided by n).
    Returns Forward(y, mean, rstd) of Enclosures; mean and rstd have x's leading shape. The exact
    values lie inside for any finite input. Radii for ordinary rows: below 2^-62 of the value for
    float64 x; else one for each row of y, about 2^-47 of its largest element.
    The bound of kernels is `forward_bound`.
    Raises TypeError for other dtypes, ValueError for shapes, eps and questions that do not fit.
    Source: Ba, Kiros and Hinton (2016), arXiv:1607.06450.
    """
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape)
    answer: Forward = solve(problem, certify)
    return answer


def backward(
    dy: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    certify: Certify = "enclosure",
) -> Backward:
    """dx = rstd (g - mean g - xhat mean(g xhat)), dweight = sum of dy xhat, dbias = sum of dy, with
    xhat = (x - mean) rstd and g = dy weight, sums over rows: the gradients of sum(dy * y).

    Arguments as for `forward`; dy has x's shape. No gradient depends on bias, which is accepted
    so that forward and backward can be called alike. Where weight or bias is None, dweight and
    dbias are the gradients at weight = 1, bias = 0. Exact zeros of dx have radius 0 with
    certify=("rounding", format).
    Returns Backward(dx, dweight, dbias) of Enclosures. The bound of kernels is `backward_bound`.
    Otherwise as `forward`.
    """
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape, dy=dy)
    answer: Backward = solve(problem, certify)
    return answer
