"""The formulas of logsumexp of all elements up to each one.

    y_t = m + log(1 + e^-|d|),   m = max(y_(t-1), x_t), d = y_(t-1) - x_t
    dx_t = sum_(s >= t) dy_s e^(x_t - y_s)

-inf is a mask: y is -inf up to the first other element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.ops.axes import along
from refkernels.softmax_ref.formulas import Bools

MOST = 1024  # elements, each of which is computed after the other in every context


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The x that are not masked. Raises ValueError for too many elements."""
    moved, restore = along(inputs, params["axis"], ("x", "dy"), several=False)
    x = moved["x"]
    if x.shape[-1] > MOST:
        raise ValueError(f"x has {x.shape[-1]} elements on its axis: at most {MOST} are scanned.")
    return Prepared({**moved, "present": ~(x == -np.inf)}, {}, restore)


def _at(a: Any, t: int, xp: Any) -> Any:
    """One place of each row."""
    return xp.take(a, np.array([t]), axis=-1)


def running(xp: Any, x: Any, present: Bools, **_: Any) -> Any:
    """One element after the other."""
    started = np.maximum.accumulate(present, axis=-1)
    finite = xp.where(present, x, xp.number(0))
    y: list[Any] = []
    for t in range(x.shape[-1]):
        new = _at(finite, t, xp)
        if t:
            last, seen = y[-1], present[..., t : t + 1]
            merged = xp.logaddexp(last, new)
            new = xp.where(seen & started[..., t - 1 : t], merged, xp.where(seen, new, last))
        y.append(new)
    return xp.where(started, xp.concatenate(y), x) if y else x


def summed(xp: Any, dy: Any, x: Any, present: Bools) -> Any:
    """The terms of one element after the other."""
    started = np.maximum.accumulate(present, axis=-1)
    y = xp.where(started, xp.saved(running(xp, x, present)), xp.number(0))
    finite = xp.where(present, x, xp.number(0))
    dx: list[Any] = []
    for t in range(x.shape[-1]):
        later = np.arange(t, x.shape[-1])
        seen = present[..., t : t + 1]
        apart = xp.where(seen, _at(finite, t, xp) - xp.take(y, later, axis=-1), xp.number(0))
        total = xp.sum(xp.exp(apart) * xp.take(dy, later, axis=-1))
        dx.append(xp.where(seen, total, xp.number(0)))
    return xp.concatenate(dx) if dx else dy


FORMS = {"running": running}
BACKWARD = {"summed": summed}
