"""The formulas of mixtures of experts.

    s_i = softmax(logits)_i, or sigmoid(logits_i)
    expert i is chosen where fewer than k have a larger s_j + bias_j; of equal ones the first are
    w_i = s_i where i is chosen, else 0; if renormalised, over their sum; times `scale`

With groups, only experts of the best groups are chosen; a group's score is the sum of its `best`
largest s_i + bias_i. Scores are in the order of the logits, by which a kernel may choose as well;
rounded scores may be equal where logits are not, and another expert may then be chosen: the bound
of such an element contains the jump.

Sources: Fedus et al. (2022), arXiv:2101.03961 (Switch); Jiang et al. (2024), arXiv:2401.04088
(Mixtral); DeepSeek-AI (2024), arXiv:2412.19437 (V3).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.arithmetic.wording import shown
from refkernels.op import Direction
from refkernels.ops import Fault, Prepared
from refkernels.ops.ordering import chosen
from refkernels.softmax_ref import mixtures
from refkernels.softmax_ref.formulas import divided, total_shifted

SCORES = ("softmax", "sigmoid")
ROUTING = {
    "k": 1, "scores": "softmax", "groups": 1, "groups_kept": None, "best": 1, "renormalise": False,
    "scale": 1.0,
}  # fmt: skip

# --- which experts ------------------------------------------------------------------------------


def _count(name: str, given: Any, most: int) -> int:
    count = as_count(given, name, least=1)
    if count > max(most, 1):
        raise ValueError(f"{name} is {count}, and there are {most} to choose from.")
    return count


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """`undefined` marks tokens whose scores have no order. Raises ValueError for numbers of experts
    and groups that do not fit."""
    if params["scores"] not in SCORES:
        raise ValueError(f"scores is {shown(params['scores'])}: it must be one of {SCORES}.")
    experts = inputs["logits"].shape[-1] if inputs["logits"].ndim else 0
    groups = as_count(params["groups"], "groups", least=1)
    if experts % groups:
        raise ValueError(f"groups is {groups}: it must divide {experts} experts.")
    size, kept = experts // groups, params["groups_kept"]
    counts: dict[str, Any] = {
        "groups": groups,
        "scale": None if params["scale"] == 1 else params["scale"],
    }
    counts["groups_kept"] = _count("groups_kept", groups if kept is None else kept, groups)
    counts["best"] = _count("best", params["best"], size)
    counts["k"] = _count("k", params["k"], counts["groups_kept"] * size)
    scored, bias = inputs["logits"], inputs.get("bias")
    scored = scored if bias is None or bias.shape != scored.shape[-1:] else scored + bias
    undefined = None
    if not (scored < np.inf).all():
        undefined = np.broadcast_to(~(scored < np.inf).all(axis=-1, keepdims=True), scored.shape)
    return Prepared({**inputs, "undefined": undefined}, {**params, **counts})


def _of_best_groups(xp: Any, key: Any, groups: int, groups_kept: int, best: int) -> Any:
    """The keys, below all others in groups that are not among the best."""
    *rows, n = key.shape
    inside = xp.reshape(key, (*rows, groups, n // groups))
    largest = xp.where(chosen(xp, inside, best), inside, xp.number(0))
    kept = chosen(xp, xp.reshape(xp.sum(largest), (*rows, groups)), groups_kept)
    outside = xp.reshape(xp.where(kept, xp.number(0), xp.number(1)), (*rows, groups, 1))
    outside = xp.reshape(xp.broadcast(outside, inside.shape), key.shape)
    least = -xp.max(-key) - 1
    return xp.where(outside < xp.number(Fraction(1, 2)), key, least)


def routed(
    xp: Any, logits: Any, k: int, scores: str, groups: int, groups_kept: int, best: int,
    renormalise: bool, scale: Any, bias: Any = None, undefined: Any = None,
    by_scores: bool = False, biased: bool = False,
) -> Any:  # fmt: skip
    """The weights. `by_scores`: chosen by computed scores also where the logits would do. `biased`:
    a wrong way, the bias is in the weights too."""
    s = divided(xp, x=logits) if scores == "softmax" else xp.function("sigmoid", logits)
    by_logits = bias is None and (best == 1 or groups_kept == groups) and not by_scores
    key = logits if by_logits else s if bias is None else s + bias
    if groups_kept < groups:
        key = _of_best_groups(xp, key, groups, groups_kept, best)
    taken = chosen(xp, key if undefined is None else xp.where(undefined, xp.number(0), key), k)
    w = xp.where(taken, s + bias if biased and bias is not None else s, xp.number(0))
    if renormalise:
        total = xp.sum(w)
        w = xp.either(w / total, w * (1 / total))
    if renormalise and scores == "softmax" and not biased:  # of the chosen alone
        e = xp.where(taken, xp.exp(logits - xp.pivot(logits)), xp.number(0))
        w = xp.either(w, e / xp.sum(e))
    return w if scale is None else w * scale


def _of_all_groups(xp: Any, groups_kept: int, **arguments: Any) -> Any:
    return routed(xp, groups_kept=arguments["groups"], **arguments)


ROUTER = {"by_logits": routed, "by_scores": partial(routed, by_scores=True)}
WRONG = (
    Fault("bias_in_weights", partial(routed, biased=True), derived=True),
    Fault("group_limit_ignored", _of_all_groups, derived=True),
)


# --- losses of the router -----------------------------------------------------------------------


def prepare_loss(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """All tokens on one axis. Raises ValueError for a k that does not fit, and for a number."""
    logits = inputs["logits"]
    if not logits.ndim:
        raise ValueError("logits has shape (): it must be logits[... n].")
    counts = {"k": _count("k", params["k"], logits.shape[-1])} if "k" in params else {}
    tokens = {"logits": logits.reshape(math.prod(logits.shape[:-1]), logits.shape[-1])}

    def restore(name: str, array: Any) -> Any:
        return array.reshape(logits.shape) if name == "dlogits" else array

    return Prepared({**inputs, **tokens}, {**params, **counts}, restore)


def _of_nothing(xp: Any, logits: Any) -> Any:
    return xp.reshape(xp.sum(xp.sum(logits), axis=-2), (logits.shape[0],)) / xp.number(0)


def balance(xp: Any, logits: Any, k: int, scale: Any, by_scores: bool = False) -> Any:
    """scale n sum f_i P_i."""
    if 0 in logits.shape:
        return _of_nothing(xp, logits)
    s = divided(xp, x=logits)
    taken = chosen(xp, s if by_scores else logits, k)
    share = xp.mean(xp.where(taken, xp.number(1), xp.number(0)), axis=-2)
    total = xp.sum(share * xp.mean(s, axis=-2))
    return xp.reshape(total * (scale * logits.shape[-1]), (logits.shape[0],))


def z_loss(total: Any, xp: Any, logits: Any, scale: Any) -> Any:
    """`total`: the formula of L."""
    if 0 in logits.shape:
        return _of_nothing(xp, logits)
    loss = scale * xp.mean(xp.square(total(xp, x=logits)), axis=-2)
    return xp.reshape(loss, (logits.shape[0],))


def z_loss_gradient(xp: Any, dloss: Any, logits: Any, scale: Any) -> Any:
    """By the L that the forward pass kept, or computed again."""
    if 0 in logits.shape:
        return logits
    total = xp.saved(mixtures.logsumexp(xp, x=logits))
    g = xp.reshape(dloss, (-1, 1, 1)) * (2 * scale / logits.shape[-2]) * total
    return mixtures.logsumexp_gradient(xp, dy=xp.may_store(g), x=logits)


BALANCE = {"by_logits": balance, "by_scores": partial(balance, by_scores=True)}
Z_LOSS = {
    "shifted": partial(z_loss, total_shifted),
    "mixture": partial(z_loss, mixtures.logsumexp),
}


# --- tokens and experts -------------------------------------------------------------------------


def indexed(name: str, of: str) -> Any:
    """What raises ValueError where an index, -1 apart, is of no row."""

    def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
        index, most = inputs[name], len(inputs[of]) if inputs[of].ndim else 0
        if index.size and not -1 <= index.min() <= index.max() < most:
            ends = f"{index.min()} to {index.max()}"
            raise ValueError(f"{name} goes from {ends}: {of} has {most}, and -1 is none.")
        return Prepared(inputs, {})

    return prepare


def grouped(xp: Any, a: Any, b: Any, experts: Any) -> Any:
    """The rows of each expert times its matrix."""
    _, number, k, n = b.shape
    order = np.argsort(experts, kind="stable")
    parts, ends = [], np.searchsorted(experts[order], np.arange(-1, number + 1))
    for expert, start, end in zip(range(-1, number), ends, ends[1:], strict=False):
        rows = xp.take(a, order[start:end], axis=0)
        if expert < 0:
            parts.append(xp.broadcast(xp.number(0), (end - start, n)))
        elif end > start:
            own = xp.reshape(xp.take(b, np.array([expert]), axis=1), (1, k, n))
            product = xp.matmul(xp.reshape(rows, (1, end - start, k)), own)
            parts.append(xp.reshape(product, (end - start, n)))
    return xp.take(xp.concatenate(parts, axis=0), np.argsort(order), axis=0)


def combined(xp: Any, x: Any, rows: Any, weights: Any = None) -> Any:
    """The sum of the rows times their weights."""
    taken = xp.take(xp.reshape(x, x.shape[1:]), np.maximum(rows, 0), axis=0)
    if weights is not None:
        taken = xp.may_store(taken * xp.reshape(weights, (*rows.shape, 1)))
    taken = xp.where((rows >= 0)[..., None], taken, xp.number(0))
    return xp.reshape(xp.sum(taken, axis=-2), (len(rows), x.shape[-1]))
