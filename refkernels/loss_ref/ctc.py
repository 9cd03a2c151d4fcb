"""The formulas of connectionist temporal classification, and of its gradient.

    l = -log Σ Π_t p(class_t),  p = softmax(x_t),  over all paths that give the labels

once repeated classes are joined and blanks are left out. Paths run through the labels with a blank
in front of, between and behind them, S states; a_t(s) is the logarithm of the sum over those that
end in state s at time t, b_t(s) over those that begin there, y log_softmax:

    a_t(s) = log(e^a_(t-1)(s) + e^a_(t-1)(s-1) + e^a_(t-1)(s-2)) + y_t(s)
    l = -log(e^a_T(S) + e^a_T(S-1))
    dx_t(c) = g (p_t(c) - Σ e^(a_t(s) + b_t(s) - y_t(s) + l)),  over the states s of class c

The last of the three terms is left out for blanks and for a label like the one before.

Source: Graves et al. (2006), doi:10.1145/1143844.1143891.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arguments import as_flag
from refkernels.arithmetic.scalars import as_count
from refkernels.loss_ref import reduction
from refkernels.loss_ref.reduction import joined
from refkernels.op import Direction
from refkernels.ops import Fault, Prepared
from refkernels.softmax_ref import formulas, mixtures

TAKES = "x[... t c], target[... s]:int, x_lengths[...]?:int, target_lengths[...]?:int"
MOST = 1024  # steps, each of which is computed after the other in every context
Array = npt.NDArray[Any]


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The classes of all states. Raises ValueError for lengths and labels that do not fit."""
    x, target = inputs["x"], inputs["target"]
    if x.ndim < 2 or 0 in x.shape[-2:] or target.shape[:-1] != x.shape[:-2] or x.shape[-2] > MOST:
        raise ValueError(
            f"x has shape {x.shape} and target {target.shape}: they must be (..., T, C) and "
            f"(..., L), with T from 1 to {MOST}."
        )
    lengths = {
        "x_lengths": _lengths(inputs, "x_lengths", x.shape[:-1], 1),
        "target_lengths": _lengths(inputs, "target_lengths", target.shape, 0),
    }
    blank, own = as_count(params["blank"], "blank", least=0), lengths["target_lengths"]
    inside = np.arange(target.shape[-1]) < own[..., None]
    if blank >= x.shape[-1]:
        raise ValueError(f"blank is {blank}, and x has {x.shape[-1]} classes.")
    for label in target[inside & ((target < 0) | (target >= x.shape[-1]) | (target == blank))]:
        told = "the blank" if label == blank else f"none of x's {x.shape[-1]} classes"
        raise ValueError(f"target has the label {label}, which is {told}.")
    states = np.full((*own.shape, 2 * target.shape[-1] + 1), blank)
    states[..., 1::2] = np.where(inside, target, blank)
    settings = {
        "reduction": params["reduction"],
        "counted": own.size,
        "zero_infinity": as_flag(params["zero_infinity"], "zero_infinity"),
    }
    marks = {"states": states, "total": np.maximum(own, 1) * own.size, **formulas.marked(x)}
    takes = f"{TAKES}, states[... k]:int, total[...]:int, present[... t c]:bool, top[... t c]:bool"
    way = reduction.signature(takes, "t c s k", params["reduction"], direction)
    return Prepared({**inputs, **lengths, **marks}, settings, signature=way)


def _lengths(inputs: dict[str, Any], name: str, shape: tuple[int, ...], least: int) -> Array:
    own = np.full(shape[:-1], shape[-1]) if inputs.get(name) is None else inputs[name]
    if own.shape != shape[:-1] or np.any((own < least) | (own > shape[-1])):
        raise ValueError(
            f"{name} has shape {own.shape}: it must be {shape[:-1]}, numbers from {least} to "
            f"{shape[-1]}."
        )
    return np.asarray(own)


def _one(xp: Any, a: Any, t: int) -> Any:
    return xp.take(a, np.array([t]), axis=1)


def _paths(
    xp: Any, y: Any, states: Array, open_: Array, log1p: bool, skipped: str = "others"
) -> tuple[Any, Array]:
    """a, of shape (rows, T, S), and where there is a path; `open_`: the states that have a y;
    `skipped`: blanks between which labels may be left out: "others", or "all" or "none"."""
    place = np.arange(states.shape[-1])
    skips = (place >= 2) & (place % 2 == 1) & (skipped != "none")
    skips = skips & ((states != np.roll(states, 2, axis=-1)) | (skipped == "all"))
    total, seen = _one(xp, y, 0), (place < 2) & open_[:, :1]
    found, where = [xp.where(seen, total, xp.number(0))], [seen]
    for t in range(1, y.shape[1]):
        total, seen = found[-1], where[-1]
        for back, allowed in ((1, place >= 1), (2, skips[:, None])):
            before = np.maximum(place - back, 0)
            other, came = xp.take(found[-1], before, axis=-1), where[-1][..., before] & allowed
            both = xp.logaddexp(total, other, log1p)
            total = xp.where(seen & came, both, xp.where(came, other, total))
            seen = seen | came
        seen = seen & open_[:, t : t + 1]
        found.append(xp.where(seen, total + _one(xp, y, t), xp.number(0)))
        where.append(seen)
    return xp.concatenate(found, axis=1), np.concatenate(where, axis=1)


def _at_states(xp: Any, y: Any, states: Array, present: Any, target_lengths: Array) -> Any:
    """y of each state's class, and where there is one."""
    index = np.broadcast_to(states[:, None], (*y.shape[:2], states.shape[-1]))
    inside = np.arange(states.shape[-1]) <= 2 * target_lengths[:, None]
    open_ = np.broadcast_to(inside[:, None], index.shape)
    if present is not None:
        open_ = open_ & np.take_along_axis(present, index, axis=-1)
    return xp.take_along_axis(y, index), open_


def _loss(
    xp: Any, found: Any, where: Array, x_lengths: Array, target_lengths: Array, log1p: bool,
    zero_infinity: bool,
) -> Any:  # fmt: skip
    last = np.stack([2 * target_lengths, np.maximum(2 * target_lengths - 1, 0)], axis=-1)
    place = np.arange(len(last))[:, None], x_lengths[:, None] - 1, last
    ends, seen = xp.rearrange(lambda part: part[place], found), where[place]
    first, second = (xp.reshape(xp.take(ends, np.array([k]), 1), (len(last),)) for k in (0, 1))
    both = seen.all(axis=-1) & (target_lengths > 0)
    total = xp.where(seen[:, 0], first, second)
    total = xp.where(both, xp.logaddexp(first, second, log1p), total)
    none = xp.number(0) if zero_infinity else xp.log(xp.number(0))
    return -xp.where(seen.any(axis=-1), total, none)


def rows(
    xp: Any, log: Any, x: Any, states: Array, x_lengths: Array, target_lengths: Array,
    zero_infinity: bool, present: Any = None, top: Any = None, log1p: bool = True,
    skipped: str = "others", last: bool = False, **_: Any,
) -> Any:  # fmt: skip
    if last:
        states = np.where(np.arange(states.shape[-1]) % 2, states, x.shape[-1] - 1)
    y = log(xp, x=x, present=present, top=top)
    y, open_ = _at_states(xp, y, states, present, target_lengths)
    paths = _paths(xp, y, states, open_, log1p, skipped)
    return _loss(xp, *paths, x_lengths, target_lengths, log1p, zero_infinity)


def _turned(part: Any, x_lengths: Array, target_lengths: Array) -> Any:
    """Each row with its own steps, and states, from the last to the first."""
    (n, steps, states), own = part.shape, 2 * target_lengths[:, None]
    t, s = np.arange(steps), np.arange(states)
    t = np.where(t < x_lengths[:, None], x_lengths[:, None] - 1 - t, t)
    s = np.where(s <= own, own - s, s)
    return part[np.arange(n)[:, None, None], t[:, :, None], s[:, None]]


def _of_classes(
    xp: Any, logs: Any, seen: Array, states: Array, classes: int, log1p: bool
) -> tuple[Any, Array]:
    """Logarithms of the sums of e^logs over the states of each class, and where there is one."""
    chosen = states[:, None, :, None] == np.arange(classes)
    total, found = xp.number(0), np.zeros((*seen.shape[:2], classes), bool)
    for k in range(states.shape[-1]):
        own, came = xp.take(logs, np.array([k]), axis=-1), seen[..., k, None] & chosen[:, :, k]
        both = xp.logaddexp(total, own, log1p) if k else own
        total = xp.where(found & came, both, xp.where(came, own, total))
        found = found | came
    return total, found


def slope(
    xp: Any, g: Any, log: Any, x: Any, states: Array, x_lengths: Array, target_lengths: Array,
    zero_infinity: bool, present: Any = None, top: Any = None, log1p: bool = True, **_: Any,
) -> Any:  # fmt: skip
    logs, zero = log(xp, x=x, present=present, top=top), xp.number(0)
    y, open_ = _at_states(xp, logs, states, present, target_lengths)
    turn: Any = partial(_turned, x_lengths=x_lengths, target_lengths=target_lengths)
    own_states = turn(np.broadcast_to(states[:, None], open_.shape))[:, 0]
    first, seen = _paths(xp, y, states, open_, log1p)
    later, seen_later = _paths(xp, xp.rearrange(turn, y), own_states, turn(open_), log1p)
    later, own = xp.rearrange(turn, later), np.arange(x.shape[1]) < x_lengths[:, None]
    seen = seen & turn(seen_later) & own[..., None]
    loss = _loss(xp, first, seen, x_lengths, target_lengths, log1p, zero_infinity)
    total, found = _of_classes(xp, first + later, seen, states, x.shape[-1], log1p)
    loss = xp.reshape(xp.saved(loss), (*loss.shape, 1, 1))
    taken = xp.where(found, xp.exp(total + loss - logs), zero)
    p, g = formulas.exponential(xp, logs, present), xp.reshape(g, (*g.shape, 1, 1))
    dx = g * (p - taken)
    for dy in (dx, -(g * taken)):  # through the gradient of log_softmax
        dx = xp.either(dx, formulas.from_logits(xp, dy=dy, x=x, present=present))
    possible = seen.any(axis=(1, 2))[:, None, None]
    dx = xp.where(possible, dx, zero if zero_infinity else zero / zero)
    return xp.where(own[..., None], dx, zero)


_WRONG: dict[str, dict[str, Any]] = {
    "blank_between_repeats_left_out": {"skipped": "all"},
    "blanks_never_left_out": {"skipped": "none"},
    "blank_is_last_class": {"last": True},
}
CTC_LOSS = reduction.loss(
    {
        "log1p": partial(rows, log=formulas.shifted),
        "mixture": partial(rows, log=mixtures.log_softmax, log1p=False),
        "truth": partial(rows, log=formulas.log1p),
    },
    {
        "log1p": partial(slope, log=formulas.shifted),
        "mixture": partial(slope, log=mixtures.log_softmax, log1p=False),
        "truth": partial(slope, log=formulas.log1p),
    },
    *(
        Fault(cause, reduction.reduced(joined(partial(rows, log=formulas.shifted, **changed))))
        for cause, changed in _WRONG.items()
    ),
    totals=("sum_instead_of_mean", "row_count_denominator"),
    params={"blank": 0, "reduction": "mean", "zero_infinity": False},
    prepare=prepare,
)
