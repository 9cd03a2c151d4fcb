"""The formulas of the probabilities from which a next token is drawn.

    p = softmax(x / T) of the x that are among the top_k largest
    y_i = p_i / (sum of the p_j that are kept), or 0

p_i is kept where the probabilities of larger ones add up to less than top_p, and where it is at
least min_p times the largest. Which are kept is certain only where rounding leaves it so: elsewhere
the bound contains the jump.

Sources: Holtzman et al. (2020), arXiv:1904.09751 (top-p); Nguyen et al. (2024), arXiv:2407.01082
(min-p).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.softmax_ref.formulas import divided, exponential, marked, pivot
from refkernels.softmax_ref.selective import scaled


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """x below the k-th largest is masked as by -inf; the places of x in descending order, and back.
    Raises ValueError for x without an axis."""
    x, count, least = inputs["x"], params["top_k"], params["min_p"]
    if not x.ndim:
        raise ValueError("x has shape (): it must be x[... n].")
    count = x.shape[-1] if count is None else as_count(count, "top_k", least=1)
    order = np.argsort(-x, axis=-1, kind="stable")
    kept = x
    if count < x.shape[-1]:
        last = np.take_along_axis(x, order[..., count - 1 : count], axis=-1)
        kept = np.where(x < last, -np.inf, x)
    places = {"order": order, "back": np.argsort(order, axis=-1)}
    heat, share = params["temperature"], params["top_p"]
    options = {
        "temperature": None if heat == 1 else heat,
        "top_p": None if share == 1 else share,
        "min_p": None if least == 0 else least,
    }
    return Prepared({**inputs, **marked(kept), **places}, options)


def _probabilities(
    masked: bool, xp: Any, x: Any, order: Any, back: Any, temperature: Any, top_p: Any, min_p: Any,
    present: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """`masked`: the softmax of what is kept, instead of probabilities over their sum."""
    x = scaled(xp, x, temperature)
    p = xp.may_store(divided(xp, x=x, present=present))
    if top_p is None and min_p is None:
        return p
    y = exponential(xp, x - pivot(xp, x, present), present) if masked else p
    if top_p is not None:
        ranked = xp.take_along_axis(p, order)
        before = xp.take_along_axis(xp.cumsum(ranked) - ranked, back)
        y = xp.where(before < top_p, y, xp.number(0))
    if min_p is not None:
        y = xp.where(p < min_p * xp.max(p), xp.number(0), y)
    total = xp.sum(y)
    return xp.either(y / total, y * (1 / total))


FORMS = {"divided": partial(_probabilities, False), "masked": partial(_probabilities, True)}
