"""softmax and log_softmax along an axis, logsumexp along any or of all elements so far, the
log-probability of one class, the probabilities from which a token is drawn, and their gradients,
certified.

    softmax(x), log_softmax(x), logsumexp(x), selective_log_softmax(x, target)      -> Enclosure
    logcumsumexp(x), sampling_softmax(x, temperature, top_k, top_p, min_p)          -> Enclosure
    softmax_backward(dy, x), log_softmax_backward(dy, x), ...

`formulas` holds the formulas, `faults` the wrong ways; `OPS` lists the ops. -inf in x is a mask:
there softmax is 0 and log_softmax -inf. Both are NaN in a row that is masked as a whole, or has a
NaN or +inf.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.op import Arrays, Direction, Invariant
from refkernels.ops import Prepared, formula_op
from refkernels.ops.axes import along
from refkernels.ops.domains import POSITIVE, PROBABILITY, Domain
from refkernels.ops.public import enclosure_of, gradients_of, public_names
from refkernels.softmax_ref import cumulative, faults, formulas, mixtures, sampling, selective
from refkernels.softmax_ref.cases import CUMULATIVE, SAMPLING, cases_of, selective_cases


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The axis last; the x that are not masked, and the largest of each row."""
    moved, restore = along(inputs, params["axis"], ("x", "dy"), several=False)
    return Prepared({**moved, **formulas.marked(moved["x"])}, {}, restore)


def _prepare_total(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """Any axes; and the rows that have +inf and no NaN."""
    moved, restore = along(inputs, params["axis"])
    x = moved["x"]
    if not x.shape[-1] and 0 not in x.shape[:-1] and direction == "forward":
        raise ValueError(f"x has shape {inputs['x'].shape}: there is no largest of no elements.")
    top = x.max(axis=-1, keepdims=True) if x.size else np.zeros(0)
    beyond = np.broadcast_to(top == np.inf, x.shape) if np.any(top == np.inf) else None
    return Prepared({**moved, **formulas.marked(x), "beyond": beyond}, {}, restore)


def _outside(
    low: float, high: float, got: npt.NDArray[Any], inputs: Arrays, params: Any
) -> npt.NDArray[np.bool_]:
    y = np.asarray(got, np.float64)
    return (y < low) | (y > high)


SOFTMAX = formula_op(
    "softmax",
    "x[... n] -> y[... n]",
    coupled="n",
    params={"axis": -1},
    prepare=_prepare,
    forms={
        "divided": formulas.divided,
        "multiplied": formulas.multiplied,
        "mixture": mixtures.softmax,
    },
    backward={
        "subtracted": formulas.subtracted,
        "expanded": formulas.expanded,
        "mixture": mixtures.softmax_gradient,
    },
    backward_truth=formulas.softmax_gradient,
    faults=faults.SOFTMAX,
    invariants=(
        Invariant("not_negative", "y >= 0", "forward", "y", partial(_outside, 0.0, np.inf)),
    ),
    cases=partial(cases_of, "softmax"),
)
LOG_SOFTMAX = formula_op(
    "log_softmax",
    "x[... n] -> y[... n]",
    coupled="n",
    params={"axis": -1},
    prepare=_prepare,
    forms={
        "shifted": formulas.shifted,
        "logsumexp": formulas.logsumexp,
        "log1p": formulas.log1p,
        "mixture": mixtures.log_softmax,
    },
    backward={
        "from_logits": formulas.from_logits,
        "from_output": formulas.from_output,
        "mixture": mixtures.log_softmax_gradient,
    },
    truth=formulas.log1p,
    backward_truth=formulas.log_softmax_gradient,
    faults=faults.LOG_SOFTMAX,
    cases=partial(cases_of, "log_softmax"),
)
LOGSUMEXP = formula_op(
    "logsumexp",
    "x[... n] -> y[...]",
    coupled="n",
    params={"axis": -1},
    prepare=_prepare_total,
    forms={**formulas.LOGSUMEXP, "mixture": mixtures.logsumexp},
    backward={**formulas.LOGSUMEXP_BACKWARD, "mixture": mixtures.logsumexp_gradient},
    truth=formulas.total_log1p,
    cases=partial(cases_of, "logsumexp"),
)
SELECTIVE = formula_op(
    "selective_log_softmax",
    "x[... n], target[...]:int -> y[...]",
    coupled="n",
    params={"temperature": 1.0},
    domains={"temperature": POSITIVE},
    prepare=selective.prepare,
    forms=selective.FORMS,
    backward=selective.BACKWARD,
    truth=selective.TRUTH,
    backward_truth=selective.BACKWARD_TRUTH,
    faults=selective.FAULTS,
    cases=selective_cases,
)
LOGCUMSUMEXP = formula_op(
    "logcumsumexp",
    "x[... n] -> y[... n]",
    coupled="n",
    params={"axis": -1},
    prepare=cumulative.prepare,
    forms=cumulative.FORMS,
    backward=cumulative.BACKWARD,
    cases=CUMULATIVE,
)
SAMPLING_SOFTMAX = formula_op(
    "sampling_softmax",
    "x[... n] -> y[... n]",
    coupled="n",
    params={"temperature": 1.0, "top_k": None, "top_p": 1.0, "min_p": 0.0},
    domains={
        "temperature": POSITIVE,
        "top_p": Domain(0.0, 1.0, open_least=True),
        "min_p": PROBABILITY,
    },
    prepare=sampling.prepare,
    forms=sampling.FORMS,
    cases=SAMPLING,
)
OPS = (SOFTMAX, LOG_SOFTMAX, LOGSUMEXP, LOGCUMSUMEXP, SELECTIVE, SAMPLING_SOFTMAX)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


@_enclosure
def softmax() -> None:
    """y_i = e^(x_i - m) / sum_j e^(x_j - m), m = max x, along the axis; y has x's shape.

    x           float16, bfloat16, float32 or float64, of one axis or more (NumPy, DLPack,
                `__array__`); -inf is a mask
    certify     the question (`refkernels.Enclosure`)

    The bound of a float32 kernel is about (2 |x_i - m| + n + 20) 2^-24 y_i, and more where many x
    are near m: `OPS` has it elementwise, proven for e / S and e (1 / S), sums in any order, online
    or not, e by exp or by exp2.

    Raises TypeError for other dtypes, ValueError for an axis that x lacks.
    Source: Blanchard, Higham and Higham (2021), doi:10.1093/imanum/draa038.

    Gradient: dx_i = y_i (dy_i - sum_j y_j dy_j), y = softmax(x): exactly 0 where dy is
    constant. dy has x's shape. The bound allows a y kept in x's format.
    """


@_enclosure
def log_softmax() -> None:
    """y_i = x_i - m - log sum_j e^(x_j - m), m = max x, along the axis; y has x's shape.

    Otherwise as `softmax`. y is sharp however near the probability is to 1. The bound is
    that of (x - m) - log S, of x - (m + log S), which loses what m + log S rounds off, and of
    log1p(S - 1) for log S.
    Source: Blanchard, Higham and Higham (2021), doi:10.1093/imanum/draa038.

    Gradient: dx_i = dy_i - softmax(x)_i sum_j dy_j; exactly 0 for one class. dy has x's shape;
    otherwise as `softmax`. The bound allows a y = log_softmax(x) kept in x's format, from which
    e^y is taken.
    """


@_enclosure
def logsumexp() -> None:
    """y = m + log sum_j e^(x_j - m), m = max x, along the axes; y lacks them.

    axis        an integer, several of them, or None for all

    Otherwise as `softmax`, but a row that is masked as a whole is -inf, and one with +inf
    is +inf. The bound is that of m + log S, S by any online pass, and of m + log1p(S - 1).
    Source: Blanchard, Higham and Higham (2021), doi:10.1093/imanum/draa038.

    Gradient: dx_i = dy softmax(x)_i. dy has y's shape. The bound allows e^(x - y) with y kept
    in x's format.
    """


@_enclosure
def selective_log_softmax() -> None:
    """y = log_softmax(x / temperature)_target along the last axis: the log-probabilities of chosen
    tokens.

    x       (..., n); target (...), whole numbers, the classes

    The bound is that of `log_softmax` for x / temperature kept in x's format or not. Raises
    ValueError for a class that x lacks and for a temperature that is not above 0. Otherwise as
    `softmax`. Source: Schulman et al. (2017), arXiv:1707.06347, section 3.

    Gradient: dx_j = dy ([j = target] - softmax(x / temperature)_j) / temperature. dy has y's
    shape.
    """


@_enclosure
def logcumsumexp() -> None:
    """y_t = log sum_(s <= t) e^(x_s) along the axis; y has x's shape.

    axis        an integer

    The bound is proven for y_t = m + log1p(e^-|d|), m = max(y_(t-1), x_t), d = y_(t-1) - x_t, one
    element after the other. y is -inf up to the first element that is not masked. Raises ValueError
    for more than 1024 elements on the axis. Otherwise as `softmax`. Source: PyTorch documentation,
    `torch.logcumsumexp`.

    Gradient: dx_t = sum_(s >= t) dy_s e^(x_t - y_s). dy has x's shape. The bound allows a y kept in
    x's format.
    """


@_enclosure
def sampling_softmax() -> None:
    """y_i = p_i / (sum of the p that are kept), else 0; p = softmax(x / temperature) of the top_k
    largest x along the last axis: the probabilities from which a language model draws a token.

    temperature   above 0
    top_k         None: of all; all that equal the k-th largest are among them
    top_p         p_i is kept where larger ones, of equal ones the first, add up to less
    min_p         p_i is kept where it is at least this times the largest

    The bound is proven for p over its sum and for the softmax of the x that are kept, with p kept
    in x's format or not. Where rounding may decide whether p_i is kept it contains 0 and y_i.
    Raises ValueError for top_p outside (0, 1], min_p outside [0, 1] and top_k below 1. Otherwise as
    `softmax`.
    Sources: Holtzman et al. (2020), arXiv:1904.09751; Nguyen et al. (2024), arXiv:2407.01082.

    Gradient: dx_i = y_i (dy_i - sum_j y_j dy_j) / temperature: which are kept has no derivative.
    """


__getattr__ = gradients_of(OPS, globals())
