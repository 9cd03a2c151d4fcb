"""The formulas of softmax and log_softmax, and of their gradients.

    softmax        y_i = e_i / S        e_i = e^(x_i - m),  S = sum e_j,  m = max x
    log_softmax    y_i = x_i - m - log S

    dx_i = y_i (dy_i - sum y_j dy_j)  and  dx_i = dy_i - (e_i / S) sum dy_j

`present` marks the x that -inf does not mask (None: nothing is masked), `top` the largest x of each
row. The certified formulas subtract that element's x and dy, on which no result depends: so dx is 0
where dy is constant, log_softmax of one class is 0, and the logarithm of a probability near 1 keeps
its digits.

Source: Blanchard, Higham and Higham (2021), "Accurately computing the log-sum-exp and softmax
functions", doi:10.1093/imanum/draa038.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.ops import TwoStage

Bools = npt.NDArray[np.bool_]
Mask = Bools | None


def marked(x: npt.NDArray[Any]) -> dict[str, Any]:
    """`present` and `top` of x, along its last axis."""
    top, present = np.zeros(x.shape, bool), None
    if x.size:
        np.put_along_axis(top, x.argmax(axis=-1)[..., None], True, axis=-1)
        if not x.min() > -np.inf:  # -inf or NaN
            present = x != -np.inf
    return {"present": present, "top": top}


def at(xp: Any, x: Any, mask: Bools) -> Any:
    """x at the first place in each row where the mask holds."""
    return xp.take_along_axis(x, mask.argmax(axis=-1)[..., None])


def pivot(xp: Any, x: Any, present: Mask) -> Any:
    return xp.pivot(x if present is None else xp.where(present, x, at(xp, x, present)))


def exponential(xp: Any, d: Any, present: Mask) -> Any:
    """e^d, 0 where masked."""
    e = xp.exp(d)
    return e if present is None else xp.where(present, e, xp.number(0))


def log_masked(xp: Any, y: Any, total: Any, present: Mask) -> Any:
    """The logarithm of 0 where masked, and of 0 / 0 where the whole row is masked."""
    return y if present is None else xp.where(present, y, xp.log(xp.number(0) / total))


def capped(xp: Any, x: Any, softcap: Any, keep: Any = lambda part: part) -> Any:
    """softcap tanh(x / softcap). `keep` is applied to each result."""
    return x if softcap is None else keep(softcap * keep(xp.tanh(keep(x / softcap))))


# --- softmax ----------------------------------------------------------------------------------


def _shift(xp: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    """m and S."""
    m = pivot(xp, x, present)
    return m, xp.sum(exponential(xp, x - m, present))


def _divide(xp: Any, row: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    m, total = row
    return exponential(xp, x - m, present) / total


def _multiply(xp: Any, row: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    m, total = row
    return exponential(xp, x - m, present) * (1 / total)


divided = TwoStage(_shift, _divide)
multiplied = TwoStage(_shift, _multiply)


def _weigh(xp: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    """m, S and sum y dy, with the y that the forward pass stored."""
    row = _shift(xp, x, present)
    return *row, xp.sum(xp.saved(_divide(xp, row, x, present)) * dy)


def _subtract(xp: Any, row: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    return xp.saved(_divide(xp, row[:2], x, present)) * (dy - row[2])


def _expand(xp: Any, row: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    y = xp.saved(_divide(xp, row[:2], x, present))
    return y * dy - y * row[2]


subtracted = TwoStage(_weigh, _subtract)
expanded = TwoStage(_weigh, _expand)


def _centre(xp: Any, dy: Any, x: Any, top: Bools, present: Mask = None) -> Any:
    """m, S, dy of the largest x, and the mean of dy without it."""
    m, total = _shift(xp, x, present)
    first = at(xp, dy, top)
    return m, total, first, xp.sum(exponential(xp, x - m, present) * (dy - first)) / total


def _from_centre(xp: Any, row: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    m, total, first, mean = row
    return _divide(xp, (m, total), x, present) * ((dy - first) - mean)


softmax_gradient = TwoStage(_centre, _from_centre)


# --- log_softmax ------------------------------------------------------------------------------


def _subtract_log(xp: Any, row: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    m, total = row
    return log_masked(xp, (x - m) - xp.log(total), total, present)


def _subtract_logsumexp(xp: Any, row: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    m, total = row
    return log_masked(xp, x - (m + xp.log(total)), total, present)


shifted = TwoStage(_shift, _subtract_log)
logsumexp = TwoStage(_shift, _subtract_logsumexp)


def _without_top(xp: Any, x: Any, top: Bools, present: Mask = None) -> Any:
    """The largest x, and S without its term, which is 1. x - m takes its place: 0 where x is
    finite."""
    m = at(xp, x, top)
    return m, xp.sum(xp.where(top, x - m, exponential(xp, x - m, present)))


def _subtract_log1p(xp: Any, row: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    m, total_less_1 = row
    return log_masked(xp, (x - m) - xp.log1p(total_less_1), total_less_1, present)


log1p = TwoStage(_without_top, _subtract_log1p)


def _add_up(xp: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    """m, S and sum dy."""
    return *_shift(xp, x, present), xp.sum(dy)


def _from_logits(xp: Any, row: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    return dy - _divide(xp, row[:2], x, present) * row[2]


def _from_output(xp: Any, row: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    """dx by the y that the forward pass stored."""
    m, total, cotangents = row
    y = xp.saved((x - m) - xp.log(total))
    return dy - exponential(xp, y, present) * cotangents


from_logits = TwoStage(_add_up, _from_logits)
from_output = TwoStage(_add_up, _from_output)


def _set_apart(xp: Any, dy: Any, x: Any, top: Bools, present: Mask = None) -> Any:
    """m, the largest x's dy, and S and sum dy without its terms."""
    others = xp.sum(xp.where(top, xp.number(0), dy))
    return *_without_top(xp, x, top, present), others, at(xp, dy, top)


def _from_parts(xp: Any, row: Any, dy: Any, x: Any, top: Bools, present: Mask = None) -> Any:
    """For the largest x 1 - 1 / S is (S - 1) / S."""
    m, total_less_1, others, first = row
    total = 1 + total_less_1
    mean = exponential(xp, x - m, present) * (others + first) / total
    return xp.where(top, (dy * total_less_1 - others) / total, dy - mean)


log_softmax_gradient = TwoStage(_set_apart, _from_parts)


# --- logsumexp --------------------------------------------------------------------------------


def total_shifted(xp: Any, x: Any, present: Mask = None, beyond: Mask = None, **_: Any) -> Any:
    """m + log S; in rows with +inf, which `beyond` marks, m is 0 and log inf is left."""
    m = pivot(xp, x if beyond is None else xp.where(beyond, xp.number(0), x), present)
    return m + xp.log(xp.sum(exponential(xp, x - m, present)))


def total_log1p(xp: Any, x: Any, top: Bools, present: Mask = None, **_: Any) -> Any:
    m, total_less_1 = _without_top(xp, x, top, present)
    return m + xp.log1p(total_less_1)


def _share(xp: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    return dy * _divide(xp, _shift(xp, x, present), x, present)


def _share_of_output(xp: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    """e^(x - y), with the y that the forward pass stored."""
    return dy * exponential(xp, x - xp.saved(total_shifted(xp, x, present)), present)


LOGSUMEXP = {"shifted": total_shifted, "log1p": total_log1p}
LOGSUMEXP_BACKWARD = {"divided": _share, "from_output": _share_of_output}
