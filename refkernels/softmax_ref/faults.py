"""Wrong and unstable ways to compute softmax and log_softmax, as they occur in kernels."""

from __future__ import annotations

from typing import Any

from refkernels.ops import Fault
from refkernels.softmax_ref.formulas import divided, exponential, log_masked, pivot


def _zero_rows(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    """0 in a row that is -inf throughout, where 0 / 0 is NaN."""
    e = exponential(xp, x - pivot(xp, x, present), present)
    total = xp.sum(e)
    if present is None:
        return e / total
    return e / xp.where(present.any(axis=-1, keepdims=True), total, xp.number(1))


def _clipped(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    """max(x - m, -64), also where x is masked."""
    m, least = pivot(xp, x, present), xp.number(-64)
    d = xp.maximum(x - m, least)
    return d if present is None else xp.where(present, d, least)


def _clipped_softmax(xp: Any, x: Any, **arguments: Any) -> Any:
    e = xp.exp(_clipped(xp, x, **arguments))
    return e / xp.sum(e)


def _clipped_gradient(xp: Any, dy: Any, x: Any, **arguments: Any) -> Any:
    """From the stored answer, as kernels do: what is clipped has a gradient."""
    y = xp.store(_clipped_softmax(xp, x, **arguments))
    return y * (dy - xp.sum(y * dy))


def _clipped_log(xp: Any, x: Any, **arguments: Any) -> Any:
    d = _clipped(xp, x, **arguments)
    return d - xp.log(xp.sum(xp.exp(d)))


def _log_of_softmax(xp: Any, x: Any, **arguments: Any) -> Any:
    return xp.log(divided(xp, x=x, **arguments))


def through_maximum(xp: Any, dy: Any, x: Any, top: Any, present: Any = None, **_: Any) -> Any:
    """x - logsumexp(x) differentiated op by op: what passes through m cancels, but for rounding."""
    e, total = exponential(xp, x - pivot(xp, x, present), present), xp.sum(dy)
    shares = e / xp.sum(e) * total
    return dy - shares + xp.where(top, xp.sum(shares) - total, xp.number(0))


def _narrow(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    e = exponential(xp, x - pivot(xp, x, present), present)
    return xp.store(e) / xp.sum(e)


def _narrow_gradient(xp: Any, dy: Any, x: Any, **arguments: Any) -> Any:
    y = xp.store(_narrow(xp, x, **arguments))
    return y * (dy - xp.sum(y * dy))


def _narrow_sum(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    d = x - pivot(xp, x, present)
    total = xp.store(xp.sum(exponential(xp, d, present)))
    return log_masked(xp, d - xp.store(xp.log(total)), total, present)


def _narrow_sum_gradient(xp: Any, dy: Any, x: Any, present: Any = None, **arguments: Any) -> Any:
    y = xp.store(_narrow_sum(xp, x, present))
    total = xp.sum(exponential(xp, x - pivot(xp, x, present), present))
    one_or_nan = total / total  # NaN in a row without a key, as in the op
    return dy - exponential(xp, y, present) * one_or_nan * xp.sum(dy)


SOFTMAX = (
    Fault("clipped_exponent", _clipped_softmax, _clipped_gradient),
    Fault("masked_rows_zero", _zero_rows),
    Fault("narrow_exponentials", _narrow, _narrow_gradient, unstable=True),
)
LOG_SOFTMAX = (
    Fault("log_of_softmax", _log_of_softmax, unstable=True),
    Fault("clipped_exponent", _clipped_log),
    Fault("low_precision_statistics", _narrow_sum, _narrow_sum_gradient, unstable=True),
)
