"""The formulas of the cross entropy of a linear layer: those of `cross_entropy`, of its logits."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.fused_ref.lora import columns_times, rows_times, turned
from refkernels.loss_ref import reduction
from refkernels.loss_ref.cross_entropy import prepare as prepare_loss
from refkernels.loss_ref.cross_entropy import terms
from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.ops.letters import Signature


def prepare_cross_entropy(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """The labels' marks are those of `cross_entropy` for logits of that shape."""
    x, weight = inputs["x"], inputs["weight"]
    if not x.ndim or weight.ndim != 2 or x.shape[-1] != weight.shape[-1]:
        raise ValueError(
            f"x has shape {x.shape} and weight {weight.shape}: they must be x[... d] and "
            "weight[n d]."
        )
    logits = np.broadcast_to(np.float32(0), (*x.shape[:-1], len(weight)))
    asked = {"x": logits, "target": inputs["target"], "weight": None}
    of_logits = prepare_loss(asked, params, direction)
    marks = ("target", "chosen", "kept", "valid", "in_sequence")
    arrays = {**inputs, **{name: of_logits.inputs[name] for name in marks}}
    rows, counted = ("...", "") if params["reduction"] == "none" else ("", "target")
    way = Signature.parse(f"{TAKES}{_MARKS} -> loss[{rows}]", "n d", counted)
    if direction == "backward":
        way = way.backward({"dloss": "loss"}, {"dx": "x", "dweight": "weight"})
    return Prepared(arrays, of_logits.params, signature=way)


TAKES = "x[... d], weight[n d], target[...]:int"
_MARKS = ", chosen[... n]:bool, kept[...]:bool, valid[...]:bool, in_sequence[...]:int"


def _columns(xp: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The numbers of rows as columns, as `cross_entropy` has them."""
    named = {name: a for name, a in arguments.items() if len(getattr(a, "shape", ())) == 1}
    return arguments | {
        name: a[:, None] if isinstance(a, np.ndarray) else xp.reshape(a, (*a.shape, 1))
        for name, a in named.items()
    }


def _logits(xp: Any, x: Any, weight: Any) -> Any:
    return xp.may_store(rows_times(xp, x, weight))


_TOTAL = reduction.by("total")


def loss(log: Any, xp: Any, x: Any, weight: Any, of: Any = _TOTAL, **arguments: Any) -> Any:
    """`of`: the denominator of a mean."""
    form = reduction.reduced(partial(terms, log=log), of)
    loss = form(xp, x=_logits(xp, x, weight), **_columns(xp, arguments))
    return xp.reshape(loss, loss.shape[:-1])


def loss_gradient(
    slope: Any, xp: Any, x: Any, weight: Any, of: Any = _TOTAL, **arguments: Any
) -> Any:
    logits = _logits(xp, x, weight)
    slopes = reduction.scaled(slope, of)(xp, x=logits, **_columns(xp, arguments))
    dlogits = xp.may_store(slopes)
    return rows_times(xp, dlogits, turned(xp, weight)), columns_times(xp, dlogits, x)
