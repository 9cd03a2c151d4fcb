"""Wrong ways to compute attention, as they occur in kernels and in ports.

Most are attention with other arguments: another scale, other keys that take part. Forward and
backward are then the formulas of `formulas`, and the change is written once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from refkernels.attention_ref import formulas
from refkernels.attention_ref.formulas import factor, scores, turned
from refkernels.attention_ref.layout import OF_QUERIES, present
from refkernels.ops import Fault
from refkernels.softmax_ref.formulas import at, exponential, pivot

Change = Callable[..., dict[str, Any]]


def _changed(xp: Any, formula: Any, change: Change, q: Any, **arguments: Any) -> Any:
    return formula(xp, q=q, **{**arguments, **change(xp, q, **arguments)})


def _with_arguments(cause: str, change: Change) -> Fault:
    """The op with the arrays and params that `change` replaces."""
    forward, backward = (
        partial(_of, formula, change) for formula in (formulas.plain, formulas.composed)
    )
    return Fault(cause, forward, backward)


def _of(formula: Any, change: Change, xp: Any, /, **arguments: Any) -> Any:
    return _changed(xp, formula, change, **arguments)


def _without_sinks(
    xp: Any, q: Any, k: Any, sunk: bool = False, keep: Any = None, **_: Any
) -> dict[str, Any]:
    """The key that stands for the sink takes no part."""
    if not sunk:
        return {}
    real = np.arange(k.shape[-2]) < k.shape[-2] - 1
    return {"sunk": False, "keep": real if keep is None else keep & real}


def _without(*names: str) -> Change:
    return lambda xp, q, **arguments: dict.fromkeys(names)


def _tiled(xp: Any, formula: Any, q: Any, group: int, **arguments: Any) -> Any:
    """Head h of q with head h % H of k, for H heads of k."""

    def across(array: Any, back: bool = False) -> Any:
        if array is None:
            return None
        r, h, stacked, *trailing = array.shape
        first, second = (h, group) if back else (group, h)

        def change(part: Any) -> Any:
            heads = part.reshape(r, h * group, stacked // group, *trailing)
            if back:
                swapped = heads.reshape(r, h, group, -1).swapaxes(1, 2)
            else:
                swapped = heads.reshape(r, first, second, -1).swapaxes(1, 2)
            return swapped.reshape(r, h, stacked, *trailing)

        return change(array) if isinstance(array, np.ndarray) else xp.rearrange(change, array)

    by_query = ("dy", "mask", "keep", "unmasked", "alibi_slopes", *OF_QUERIES)
    moved = {name: across(arguments.get(name)) for name in by_query if name in arguments}
    result = formula(xp, q=across(q), group=group, **{**arguments, **moved})
    over = 2 if "dy" not in arguments else 1  # lse too has a row for each query
    return *(across(part, back=True) for part in result[:over]), *result[over:]


# --- another softmax --------------------------------------------------------------------------


def _finite(xp: Any, s: Any, lanes: Any) -> Any:
    """-10000 is added where no key takes part."""
    s = s if lanes is None else xp.where(lanes, s, s - xp.number(10000))
    return formulas.weights(xp, s, None)


def _largest(xp: Any, s: Any, lanes: Any) -> Any:
    """m itself: what is computed depends on it, so the pivot, a number near it, would not do."""
    return xp.max(s if lanes is None else xp.where(lanes, s, at(xp, s, lanes)))


def _clipped(xp: Any, s: Any, lanes: Any) -> Any:
    """s - m is at least -64, and -64 where no key takes part."""
    least = xp.number(-64)
    d = xp.maximum(s - _largest(xp, s, lanes), least)
    e = xp.exp(d if lanes is None else xp.where(lanes, d, least))
    return e / xp.sum(e)


def _zeroed(xp: Any, s: Any, lanes: Any) -> Any:
    s = s if lanes is None else xp.where(lanes, s, xp.number(0))
    return formulas.weights(xp, s, None)


def _counted(xp: Any, s: Any, lanes: Any) -> Any:
    """The sum runs over all keys; keys that take no part are set to 0 afterwards."""
    p = formulas.weights(xp, s, None)
    return p if lanes is None else xp.where(lanes, p, xp.number(0))


def _unguarded(xp: Any, s: Any, lanes: Any) -> Any:
    """0 / 0 where no key takes part."""
    e = exponential(xp, s - pivot(xp, s, lanes), lanes)
    return e / xp.sum(e)


def _guarded(xp: Any, s: Any, lanes: Any) -> Any:
    """0 also where every score is -inf: with a finite m all e are 0, and S is at least 1 anywhere
    else."""
    least = xp.number(-np.finfo(np.float32).max)
    e = exponential(xp, s - xp.maximum(_largest(xp, s, lanes), least), lanes)
    return e / xp.maximum(xp.sum(e), xp.number(1))


def _unshifted(xp: Any, s: Any, lanes: Any) -> Any:
    e = exponential(xp, s, lanes)
    return e / formulas.total(xp, e, lanes)


def _weighted(weights: Any, xp: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    s = scores(xp, q, k, **options)
    lanes = present(s.shape, **options)
    return xp.matmul(weights(xp, s, lanes), v), formulas.log_total(xp, s, lanes)


def _weighted_gradients(
    weights: Any, xp: Any, dy: Any, q: Any, k: Any, v: Any, **options: Any
) -> Any:
    s = scores(xp, q, k, **options)
    lanes = present(s.shape, **options)
    p, dp = weights(xp, s, lanes), xp.matmul(dy, turned(xp, v))
    ds = p * (dp - xp.sum(p * dp))
    return formulas.gradients(xp, p, ds, dy, q, k, options)


def _softmax(cause: str, weights: Any, **options: Any) -> Fault:
    forward, backward = partial(_weighted, weights), partial(_weighted_gradients, weights)
    return Fault(cause, forward, backward, **options)


# --- another gradient -------------------------------------------------------------------------


def _without_scale(xp: Any, dy: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    scaling = factor(xp, q, options.get("scale"))
    dq, dk, dv = formulas.composed(xp, dy, q, k, v, **options)
    return dq / scaling, dk / scaling, dv


FAULTS = (
    _with_arguments("window_ignored", _without("first")),
    _with_arguments("sinks_ignored", _without_sinks),
    Fault(
        "heads_tiled",
        lambda xp, **arguments: _tiled(xp, formulas.plain, **arguments),
        lambda xp, **arguments: _tiled(xp, formulas.composed, **arguments),
    ),
    _softmax("mask_finite", _finite),
    _softmax("clipped_exponent", _clipped),
    _softmax("mask_multiplied", _zeroed),
    _softmax("masked_keys_counted", _counted),
    _softmax("masked_rows_nan", _unguarded),
    _softmax("no_shift", _unshifted, unstable=True),
    Fault("gradient_unscaled", backward=_without_scale, outputs=("dq", "dk")),
)
CONVENTIONS = (
    _softmax("masked_rows_nan", _unguarded),
    _softmax("infinite_rows_zero", _guarded),  # PyTorch's, FlashAttention's
)
