"""The formulas of the log-probability of one class in each row, and wrong ways to compute it.

    y = log_softmax(x / T)_t            dx_j = dy ([j = t] - softmax(x / T)_j) / T

What stands between the parts may be kept in the arrays' format or not.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.op import Direction
from refkernels.ops import Fault, Prepared
from refkernels.softmax_ref import formulas, mixtures


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    x, target = inputs["x"], inputs["target"]
    if not x.ndim or not x.shape[-1] or target.shape != x.shape[:-1]:
        raise ValueError(
            f"target has shape {target.shape} and x {x.shape}: x has an axis more, the classes."
        )
    if target.size and not 0 <= target.min() <= target.max() < x.shape[-1]:
        raise ValueError(
            f"target goes from {target.min()} to {target.max()}: x has {x.shape[-1]} classes."
        )
    chosen = target[..., None] == np.arange(x.shape[-1])
    arrays = {**inputs, "chosen": chosen, **formulas.marked(x)}
    heat = params["temperature"]
    return Prepared(arrays, {"temperature": None if heat == 1 else heat})


def scaled(xp: Any, x: Any, temperature: Any) -> Any:
    """x / T."""
    if temperature is None:
        return x
    return xp.either(xp.may_store(x / temperature), xp.may_store(x * (1 / temperature)))


def chosen_log(
    log: Any, xp: Any, x: Any, target: Any, temperature: Any, present: Any = None, top: Any = None,
    **_: Any,
) -> Any:  # fmt: skip
    y = log(xp, x=scaled(xp, x, temperature), present=present, top=top)
    return xp.take_along_axis(xp.may_store(y), target)


def chosen_gradient(
    gradient: Any, xp: Any, dy: Any, x: Any, chosen: Any, temperature: Any, present: Any = None,
    top: Any = None, **_: Any,
) -> Any:  # fmt: skip
    dy = xp.where(chosen, dy, xp.number(0))
    dx = gradient(xp, dy=dy, x=scaled(xp, x, temperature), present=present, top=top)
    return dx if temperature is None else scaled(xp, xp.may_store(dx), temperature)


def _shares(xp: Any, dy: Any, x: Any, softmax: Any, present: Any = None, **_: Any) -> Any:
    """dy - p sum dy, for a dy that one class alone has."""
    p = xp.may_store(softmax(xp, x=x, present=present))
    return dy - p * xp.sum(dy)


def _either_gradient(xp: Any, **arguments: Any) -> Any:
    return xp.either(
        mixtures.log_softmax_gradient(xp, **arguments),
        _shares(xp, softmax=mixtures.softmax, **arguments),
    )


FORMS = {
    "shifted": partial(chosen_log, formulas.shifted),
    "logsumexp": partial(chosen_log, formulas.logsumexp),
    "mixture": partial(chosen_log, mixtures.log_softmax),
}
BACKWARD = {
    "by_log_softmax": partial(chosen_gradient, formulas.from_logits),
    "mixture": partial(chosen_gradient, _either_gradient),
}
TRUTH = partial(chosen_log, formulas.log1p)
BACKWARD_TRUTH = partial(chosen_gradient, formulas.log_softmax_gradient)


def _probability(
    xp: Any, x: Any, target: Any, temperature: Any, present: Any = None, **_: Any
) -> Any:
    p = formulas.divided(xp, x=scaled(xp, x, temperature), present=present)
    return xp.take_along_axis(p, target)


def _log_of_probability(xp: Any, **arguments: Any) -> Any:
    return xp.log(xp.store(_probability(xp, **arguments)))


FAULTS = (Fault("log_of_softmax", _log_of_probability, unstable=True),)
