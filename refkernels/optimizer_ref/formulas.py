"""The formulas of the optimizers' steps.

    g' = g + wd w                                          where decay is coupled (L2)
    sgd        b' = mu b + (1 - damp) g', b' = g' in step 1;       u = g' + mu b' (Nesterov) or b'
    adam       m' = b1 m + (1 - b1) g',  v' = b2 v + (1 - b2) g'²,
               u = (m' / c1) / (sqrt(v') / sqrt(c2) + eps),  c_i = 1 - b_i^step
    adamw      the same with g for g', and w (1 - lr wd) for w
    lamb       r as adamw's u with sqrt(v' / c2);  u = |w| / |r + wd w| (r + wd w)
    adagrad    a' = a + g'²;                       u = g' / (sqrt(a') + eps) / (1 + (step - 1) ld)
    rmsprop    a' = rho a + (1 - rho) g'²;         u = mu b + g' / (sqrt(a' - mean'²) + eps)
    lion       u = sign(b1 m + (1 - b1) g), m' = b2 m + (1 - b2) g;  decay as adamw's

and w' = w - lr u. `way` 0 has the order of operations of torch's kernel, other numbers have other
orders, and `way` None is any mixture of them. A weight decay of 0 is None here: kernels skip it.

Sources: Kingma and Ba (2015), arXiv:1412.6980; Reddi, Kale and Kumar (2018), arXiv:1904.09237;
Loshchilov and Hutter (2019), arXiv:1711.05101; You et al. (2020), arXiv:1904.00962; Duchi, Hazan
and Singer (2011); Tieleman and Hinton (2012), "Neural networks for machine learning", lecture 6.5;
Graves (2013), arXiv:1308.0850; Chen et al. (2023), arXiv:2302.06675.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Way = int | None


def pick(xp: Any, way: Way, *ways: Callable[[], Any]) -> Any:
    """A value by one of the ways, or, with `way` None, by any of them. Where there are fewer ways
    than `way`, the last is taken."""
    if way is None:
        return functools.reduce(xp.either, (compute() for compute in ways))
    return ways[min(way, len(ways) - 1)]()


def coupled(grad: Any, param: Any, weight_decay: Any) -> Any:
    """g + wd w."""
    return grad if weight_decay is None else grad + weight_decay * param


def blend(xp: Any, way: Way, old: Any, new: Any, beta: Any) -> Any:
    """beta old + (1 - beta) new."""
    return pick(
        xp, way, lambda: old + (1 - beta) * (new - old), lambda: beta * old + (1 - beta) * new
    )


def blend_squares(xp: Any, way: Way, old: Any, new: Any, beta: Any) -> Any:
    """beta old + (1 - beta) new²."""
    return pick(
        xp, way,
        lambda: beta * old + (1 - beta) * new * new,
        lambda: beta * old + (1 - beta) * xp.square(new),
        lambda: old + (1 - beta) * (xp.square(new) - old),
    )  # fmt: skip


def decayed(param: Any, shrink: Any) -> Any:
    """w (1 - lr wd)."""
    return param if shrink is None else param * (1 - shrink)


# --- sgd ---------------------------------------------------------------------------------------


def sgd(
    xp: Any, param: Any, grad: Any, buf: Any = None, *, lr: Any, momentum: Any, weight_decay: Any,
    nesterov: bool, dampening: Any = 0, step: int = 2, way: Way = 0, **_: Any,
) -> Any:  # fmt: skip
    g = coupled(grad, param, weight_decay)
    if buf is None:
        return param - lr * g, None
    new = g if step == 1 else momentum * buf + (1 - dampening) * g
    if not nesterov:
        return param - lr * new, new
    ahead = lambda: param - lr * (g + momentum * new)  # noqa: E731
    return pick(xp, way, ahead, lambda: param - lr * g - lr * momentum * new), new


# --- adam and its kin --------------------------------------------------------------------------


def corrections(xp: Any, beta1: Any, beta2: Any, step: int) -> Any:
    """c1, and the root of c2."""
    return 1 - xp.power(beta1, step), xp.sqrt(1 - xp.power(beta2, step))


def _scalars(
    xp: Any, corrected: Any, beta1: Any, beta2: Any, step: int, held: dict[str, Any]
) -> dict[str, Any]:
    """c1, root and, if a kernel holds it, the rate lr / c1."""
    if corrected is corrections and "root" in held:
        return {name: held[name] for name in ("c1", "root", "rate")}
    c1, root = corrected(xp, beta1, beta2, step)
    return {"c1": c1, "root": root, "rate": None}


def adam_update(
    xp: Any, m: Any, v: Any, *, lr: Any, c1: Any, root: Any, eps: Any, way: Way, rate: Any = None,
    **_: Any,
) -> Any:  # fmt: skip
    """lr u."""
    rate = lr / c1 if rate is None else rate
    return pick(
        xp, way,
        lambda: rate * m / (xp.sqrt(v) / root + eps),
        lambda: rate * root * (m / (xp.sqrt(v) + eps * root)),
        lambda: lr * ((m / c1) / (xp.sqrt(v / xp.square(root)) + eps)),
        lambda: rate * (m / (xp.sqrt(v) / root + eps)),
    )  # fmt: skip


def adam(
    xp: Any, param: Any, grad: Any, m: Any, v: Any, vmax: Any = None, *, lr: Any, beta1: Any,
    beta2: Any, eps: Any, weight_decay: Any, step: int, way: Way = 0, update: Any = adam_update,
    regularise: Any = coupled, decay: Any = None, corrected: Any = corrections,
    shrink: Any = None, **held: Any,
) -> Any:  # fmt: skip
    """Adam's step. `decay` None: coupled. `held`: numbers that kernels may compute from
    hyper-parameters alone."""
    g = grad if decay else regularise(grad, param, weight_decay)
    new_m, new_v = blend(xp, way, m, g, beta1), blend_squares(xp, way, v, g, beta2)
    largest = None if vmax is None else xp.maximum(vmax, new_v)
    scalars = _scalars(xp, corrected, beta1, beta2, step, held) | {"lr": lr, "eps": eps, "way": way}
    used = new_v if largest is None else largest
    taken = update(xp, new_m, used, **scalars)
    if decay and weight_decay is not None:
        moved = decay(xp, param, taken, wd=weight_decay, shrink=shrink, **scalars)
    else:
        moved = param - taken
    return moved, new_m, new_v, largest


def decay_before(
    xp: Any, param: Any, taken: Any, *, lr: Any, wd: Any, way: Way, shrink: Any = None, **_: Any
) -> Any:
    """The step `taken` from w (1 - lr wd), or with lr wd w subtracted separately."""
    shrink = lr * wd if shrink is None else shrink
    return pick(
        xp, way,
        lambda: param * (1 - shrink) - taken,
        lambda: param - taken - shrink * param,
        lambda: param - lr * (wd * param) - taken,
    )  # fmt: skip


adamw = functools.partial(adam, decay=decay_before)


def _norms(xp: Any, param: Any, update: Any) -> Any:
    return xp.norm(param), xp.norm(update)


def trust(xp: Any, norm: Any, update: Any, ratio: Any = None) -> Any:
    """|w| / |u|, and 1 where either is 0."""
    defined = (norm > 0) & (update > 0)
    return xp.where(defined, ratio or norm / update, xp.number(1))


def lamb_direction(
    xp: Any, m: Any, v: Any, *, c1: Any, root: Any, eps: Any, way: Way, **_: Any
) -> Any:
    """r."""
    return pick(
        xp, way,
        lambda: (m / c1) / (xp.sqrt(v / xp.square(root)) + eps),
        lambda: (m / c1) / (xp.sqrt(v) / root + eps),
    )  # fmt: skip


def lamb(
    xp: Any, param: Any, grad: Any, m: Any, v: Any, *, lr: Any, beta1: Any, beta2: Any, eps: Any,
    weight_decay: Any, step: int, way: Way = 0, direction: Any = lamb_direction,
    ratio: Any = None, corrected: Any = corrections, **held: Any,
) -> Any:  # fmt: skip
    """LAMB's step. `ratio` of w, r and u: the trust ratio of another LAMB."""
    new_m, new_v = blend(xp, way, m, grad, beta1), blend_squares(xp, way, v, grad, beta2)
    scalars = _scalars(xp, corrected, beta1, beta2, step, held)
    r = direction(xp, new_m, new_v, eps=eps, way=way, **scalars)
    u = coupled(r, param, weight_decay)
    scale = ratio(xp, param, r, u) if ratio else trust(xp, *_norms(xp, param, u))
    moved = pick(xp, way, lambda: param - lr * scale * u, lambda: param - lr * (scale * u))
    return moved, new_m, new_v


# --- adagrad, rmsprop, lion --------------------------------------------------------------------


def outside(xp: Any, square: Any, eps: Any, **_: Any) -> Any:
    """sqrt(a) + eps."""
    return xp.sqrt(square) + eps


def adagrad(
    xp: Any, param: Any, grad: Any, accum: Any, *, lr: Any, lr_decay: Any, eps: Any,
    weight_decay: Any, step: int, way: Way = 0, root: Any = outside, **_: Any,
) -> Any:  # fmt: skip
    g = coupled(grad, param, weight_decay)
    new = accum + xp.square(g)
    rate, below = lr / (1 + (step - 1) * lr_decay), root(xp, new, eps)
    return pick(xp, way, lambda: param - rate * g / below, lambda: param - rate * (g / below)), new


def rmsprop(
    xp: Any, param: Any, grad: Any, accum: Any, mean: Any = None, buf: Any = None, *, lr: Any,
    rho: Any, eps: Any, momentum: Any, weight_decay: Any, way: Way = 0, root: Any = outside,
    tail: Any = None, **_: Any,
) -> Any:  # fmt: skip
    g = coupled(grad, param, weight_decay)
    new = blend_squares(xp, way, accum, g, rho)
    centre = None if mean is None else blend(xp, way, mean, g, rho)
    below = root(xp, new if centre is None else new - xp.square(centre), eps, tail=tail)
    if buf is not None:
        moved = momentum * buf + g / below
        return param - lr * moved, new, centre, moved
    step = pick(xp, way, lambda: param - lr * g / below, lambda: param - lr * (g / below))
    return step, new, centre, None


def lion(
    xp: Any, param: Any, grad: Any, m: Any, *, lr: Any, beta1: Any, beta2: Any, weight_decay: Any,
    way: Way = 0, shrink: Any = None, **_: Any,
) -> Any:  # fmt: skip
    mixed = blend(xp, way, m, grad, beta1)
    zero = xp.number(0)
    sign = xp.where(mixed > 0, xp.number(1), xp.where(mixed < 0, xp.number(-1), zero * mixed))
    if weight_decay is not None and shrink is None:
        shrink = lr * weight_decay
    return decayed(param, shrink) - lr * sign, blend(xp, way, m, grad, beta2)
