"""Forms that cover every mixture of kernels' other choices, so that one bound holds for all.

    e^d by exp2    d is multiplied by a rounded log2 e, and rounded: e^(d (1 + δ)(1 + δ')).
                   d / 3 * 3 is d after two such roundings.
    S online       The running sum is multiplied by e^(m_old - m_new) whenever a larger x comes:
                   x_j's term at most once for each value above x_j. The exponents' errors add up
                   to that of x_j - m; each factor also has the error of the library's function,
                   here that of e^0, and a rounding.
    1 / S          multiplied by, instead of dividing by S
    y              either that of the forward pass, which `store` keeps, or computed again

Source: Milakov and Gimelshein (2018), "Online normalizer calculation for softmax",
arXiv:1805.02867.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from refkernels.ops import TwoStage
from refkernels.softmax_ref.formulas import Mask, exponential, log_masked, pivot, total_shifted

_NEAR = (Fraction(1, 16), Fraction(1, 4), 1, 4, 16)  # the values above m - 1/16, above m - 1/4, ...


def by_either(xp: Any, d: Any, present: Mask) -> Any:
    """e^d by exp or by exp2."""
    return xp.either(exponential(xp, d, present), exponential(xp, d / 3 * 3, present))


def rescalings(xp: Any, x: Any, m: Any) -> Any:
    """An upper bound on how often an online kernel rescales the term of each x."""
    unit, zero, count = xp.number(1), xp.number(0), xp.number(x.shape[-1])
    for width in reversed(_NEAR):
        near = x > m - xp.number(width)
        count = xp.where(near, xp.sum(xp.where(near, unit, zero)), count)
    return count


def online(xp: Any, x: Any, m: Any, e: Any) -> Any:
    """e with the errors of an online kernel's factors."""
    factor = xp.exp(xp.number(0)) - 1  # 0, with the error of a library's e^0
    slip = factor * 5 / 4  # the rounding of the product, and second order
    return e * (1 + rescalings(xp, x, m) * slip)


def _shift(xp: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    m = pivot(xp, x, present)
    e = by_either(xp, x - m, present)
    return m, xp.either(xp.sum(e), xp.sum(online(xp, x, m, e)))


def _softmax(xp: Any, row: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    m, total = row
    e = by_either(xp, x - m, present)
    return xp.either(e / total, e * (1 / total))


def _log_softmax(xp: Any, row: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    m, total = row
    log = xp.log(total)
    return log_masked(xp, xp.either((x - m) - log, x - (m + log)), total, present)


def logsumexp(xp: Any, x: Any, present: Mask = None, beyond: Mask = None, **_: Any) -> Any:
    if beyond is not None:
        return total_shifted(xp, x, present, beyond)
    m, total = _shift(xp, x, present)
    return m + xp.log(total)


def logsumexp_gradient(xp: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    row = _shift(xp, x, present)
    by_log_softmax = by_either(xp, x - xp.saved(row[0] + xp.log(row[1])), present)
    return dy * xp.store(xp.either(_softmax(xp, row, x, present), by_log_softmax))


softmax = TwoStage(_shift, _softmax)
log_softmax = TwoStage(_shift, _log_softmax)


def _weigh(xp: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    row = _shift(xp, x, present)
    return *row, xp.sum(xp.saved(_softmax(xp, row, x, present)) * dy)


def _softmax_gradient(xp: Any, row: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    y = xp.saved(_softmax(xp, row[:2], x, present))
    return xp.either(y * (dy - row[2]), y * dy - y * row[2])


def _add_up(xp: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    return *_shift(xp, x, present), xp.sum(dy)


def _log_gradient(xp: Any, row: Any, dy: Any, x: Any, present: Mask = None, **_: Any) -> Any:
    of_stored = by_either(xp, xp.saved(_log_softmax(xp, row[:2], x)), present)
    return dy - xp.either(_softmax(xp, row[:2], x, present), of_stored) * row[2]


softmax_gradient = TwoStage(_weigh, _softmax_gradient)
log_softmax_gradient = TwoStage(_add_up, _log_gradient)
