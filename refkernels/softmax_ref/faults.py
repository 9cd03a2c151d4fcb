"""Wrong and unstable ways to compute softmax and log_softmax, as they occur in kernels."""

from __future__ import annotations

from typing import Any

from refkernels.ops import Fault
from refkernels.softmax_ref.formulas import divided, exponential, log_masked, pivot


def _unshifted(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    e = exponential(xp, x, present)
    return e / xp.sum(e)


def _by_mean(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    e = exponential(xp, x - xp.mean(x), present)
    return e / xp.sum(e)


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


def _padded(xp: Any, x: Any, present: Any) -> tuple[Any, Any]:
    """m and S of the row and its zeros, up to the next power of two."""
    m = xp.maximum(pivot(xp, x, present), xp.number(0))
    zeros = (1 << (x.shape[-1] - 1).bit_length()) - x.shape[-1]
    return m, xp.sum(exponential(xp, x - m, present)) + zeros * xp.exp(-m)


def _padded_softmax(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    m, total = _padded(xp, x, present)
    return exponential(xp, x - m, present) / total


def _padded_log(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    m, total = _padded(xp, x, present)
    return (x - m) - xp.log(total)


def _diagonal(xp: Any, dy: Any, x: Any, **arguments: Any) -> Any:
    y = xp.store(divided(xp, x=x, **arguments))
    return dy * y * (1 - y)


def _log_of_softmax(xp: Any, x: Any, **arguments: Any) -> Any:
    return xp.log(divided(xp, x=x, **arguments))


def _unshifted_log(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    return x - xp.log(xp.sum(exponential(xp, x, present)))


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


def _unshifted_total(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    return xp.log(xp.sum(exponential(xp, x, present)))


def _padded_total(xp: Any, x: Any, present: Any = None, **_: Any) -> Any:
    m, total = _padded(xp, x, present)
    return m + xp.log(total)


LOGSUMEXP = (
    Fault("no_shift", _unshifted_total, unstable=True),
    Fault("zero_padding", _padded_total),
)
SOFTMAX = (
    Fault("no_shift", _unshifted, unstable=True),
    Fault("mean_shift", _by_mean, unstable=True),
    Fault("clipped_exponent", _clipped_softmax, _clipped_gradient),
    Fault("zero_padding", _padded_softmax),
    Fault("masked_rows_zero", _zero_rows),
    Fault("diagonal_jacobian", backward=_diagonal),
    Fault("narrow_exponentials", _narrow, _narrow_gradient, unstable=True),
)
LOG_SOFTMAX = (
    Fault("log_of_softmax", _log_of_softmax, unstable=True),
    Fault("no_shift", _unshifted_log, unstable=True),
    Fault("clipped_exponent", _clipped_log),
    Fault("zero_padding", _padded_log),
    Fault("low_precision_statistics", _narrow_sum, _narrow_sum_gradient, unstable=True),
)
