"""The formulas of cross entropy and of its gradient, and its faults.

    y = log_softmax(c(x))   l_i = -Σ_j q_ij y_ij + z L_i²   q_ij = (1 - e) w_t [j = t] + (e / n) w_j

with row i's label t, class weights w (ones), smoothing e (0), z the weight of the z-loss (0), L the
log-sum-exp of c(x), and c(x) = x or softcap tanh(x / softcap). D is Σ w_t over the rows whose label
is not ignored; the loss and gradient of an ignored row are 0.

    dx_ij = g_i (p_ij (Σ_k q_ik + 2 z L_i) - q_ij) c'(x_ij),  p = softmax(c(x))

which without z is log_softmax's gradient for the cotangent -g q.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.scalars import as_count, as_real
from refkernels.loss_ref import reduction
from refkernels.loss_ref.reduction import joined, reduced, scaled
from refkernels.op import Direction
from refkernels.ops import Fault, Prepared, Shared
from refkernels.ops.domains import NOT_NEGATIVE, POSITIVE, PROBABILITY
from refkernels.softmax_ref import formulas, mixtures
from refkernels.softmax_ref.faults import LOG_SOFTMAX, SOFTMAX, through_maximum

TAKES = "x[... n], target[...]:int, weight[n]?"
MARKS = (
    ", chosen[... n]:bool, present[... n]:bool, top[... n]:bool, kept[...]:bool, valid[...]:bool"
    ", in_sequence[...]:int"
)


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The rows that count, the denominator, and the gradient's chosen elements."""
    x, target, weight = inputs["x"], inputs["target"], inputs.get("weight")
    if x.ndim == 0 or not x.shape[-1] or target.shape != x.shape[:-1]:
        raise ValueError(
            f"target has shape {target.shape} and x {x.shape}: x has an axis more, the classes."
        )
    check_weight(weight, x.shape[-1])
    ignored = params["ignore_index"]
    if ignored is not None:
        ignored = as_count(ignored, "ignore_index", least=-(2**63))
    z, softcap = params.get("z_loss") or None, params.get("softcap")
    if z is not None and weight is not None:
        raise ValueError("z_loss takes no weight: libraries disagree on what weights it then.")
    if softcap is not None:
        softcap = as_real(softcap, "softcap")
        POSITIVE.check("softcap", softcap)
        # c is ±softcap at ±inf: there -inf is no mask.
        x = np.where(np.isinf(x), np.copysign(formats.of(x).max, x), x).astype(x.dtype)
    n, kept = x.shape[-1], np.asarray(target != ignored)
    valid = (target >= 0) & (target < n) | ~kept
    label = target % n
    total, smoothed, e = None, None, params["label_smoothing"]
    if weight is not None:
        label_weights = np.where(valid, weight[label], np.nan)[kept]
        total = Shared(lambda xp: xp.sum(xp.array(label_weights[None])))
        smoothed = Shared(
            lambda xp: (
                (1 - xp.number(e)) * total.of(xp)
                + int(kept.sum()) * xp.number(e) * xp.mean(xp.array(weight[None]))
            )
        )
    marks = {
        "chosen": label[..., None] == np.arange(n) if direction == "backward" else None,
        "kept": None if kept.all() else kept,
        "valid": None if valid.all() else valid,
        "in_sequence": reduction.in_sequence(kept),
        **formulas.marked(x),
    }
    settings = {
        "reduction": params["reduction"],
        "smoothing": e or None,
        "z_loss": z,
        "softcap": softcap,
        "label_weights": smoothed,
        **reduction.counts(kept, total),
    }
    way = reduction.signature(TAKES + MARKS, "n", params["reduction"], direction)
    return Prepared({**inputs, "x": x, "target": label, **marks}, settings, signature=way)


def check_weight(weight: Any, classes: int) -> None:
    """Raises ValueError unless there is one weight for each class."""
    if weight is not None and weight.shape != (classes,):
        raise ValueError(
            f"weight has shape {weight.shape}: it must be ({classes},), one for each class."
        )


def _shares(xp: Any, n: int, e: Any) -> tuple[Any, Any]:
    """The shares of the true class, and of every class, in q."""
    return 1 - e, e / n


def _weights(xp: Any, weight: Any, target: Any) -> Any:
    """The weights of the rows' labels."""
    return xp.take_along_axis(xp.broadcast(weight, (len(target), weight.shape[-1])), target)


def _where(xp: Any, row: Any, kept: Any, valid: Any) -> Any:
    """0 where a row is ignored, undefined where its label is not a class."""
    zero = xp.number(0)
    row = row if kept is None else xp.where(kept, row, zero)
    return row if valid is None else xp.where(valid, row, zero / zero)


def _capped(xp: Any, x: Any, softcap: Any) -> Any:
    """c(x), by one kernel or by one for each operation."""
    return formulas.capped(xp, x, softcap, xp.may_store)


def _uncapped(xp: Any, dx: Any, x: Any, softcap: Any) -> Any:
    """The gradient of x, from that of c(x)."""
    if softcap is None:
        return dx
    slope = 1 - xp.square(xp.may_store(xp.tanh(xp.may_store(x / softcap))))
    return xp.may_store(dx) * xp.may_store(slope)


def terms(
    xp: Any, log: Any, x: Any, target: Any, smoothing: Any, weight: Any = None, present: Any = None,
    top: Any = None, kept: Any = None, valid: Any = None, shares: Any = _shares, z_loss: Any = None,
    softcap: Any = None, lse: Any = formulas.total_shifted, **_: Any,
) -> Any:  # fmt: skip
    """The terms of each row's loss: the label's, the smoothing's and the z-loss."""
    x = _capped(xp, x, softcap)
    y = xp.store(log(xp, x=x, present=present, top=top))
    label_terms = -xp.take_along_axis(y, target)
    label_terms = label_terms if weight is None else label_terms * _weights(xp, weight, target)
    found = [label_terms]
    if smoothing is not None:
        label_share, class_share = shares(xp, x.shape[-1], smoothing)
        class_terms = -xp.sum(y if weight is None else y * weight)
        found = [label_share * label_terms, class_share * class_terms]
    if z_loss is not None:
        found.append(z_loss * xp.square(xp.may_store(lse(xp, x=x, present=present, top=top))))
    return tuple(_where(xp, term, kept, valid) for term in found)


def _labels(
    xp: Any, x: Any, target: Any, smoothing: Any, weight: Any, chosen: Any, shares: Any
) -> Any:
    """q."""
    ones = xp.number(1) if weight is None else _weights(xp, weight, target)
    if smoothing is None:
        return xp.where(chosen, ones, xp.number(0))
    label_share, class_share = shares(xp, x.shape[-1], smoothing)
    class_part = class_share if weight is None else class_share * weight
    return xp.where(chosen, label_share * ones + class_part, class_part)


def by_log_softmax(
    xp: Any, g: Any, gradient: Any, x: Any, target: Any, chosen: Any, smoothing: Any,
    weight: Any = None, present: Any = None, top: Any = None, kept: Any = None, valid: Any = None,
    shares: Any = _shares, z_loss: Any = None, softcap: Any = None, **_: Any,
) -> Any:  # fmt: skip
    logits = _capped(xp, x, softcap)
    q = _labels(xp, x, target, smoothing, weight, chosen, shares)
    dx = gradient(xp, dy=xp.store(-(g * q)), x=logits, present=present, top=top)
    if z_loss is not None:
        lse = formulas.total_shifted(xp, logits, present)
        p = formulas.divided(xp, x=logits, present=present)
        dx = xp.may_store(dx) + xp.may_store(2 * z_loss * xp.may_store(lse) * g) * xp.may_store(p)
    return _where(xp, _uncapped(xp, dx, x, softcap), kept, valid)


def fused(
    xp: Any, g: Any, softmax: Any, x: Any, target: Any, chosen: Any, smoothing: Any,
    weight: Any = None, present: Any = None, kept: Any = None, valid: Any = None,
    shares: Any = _shares, z_loss: Any = None, softcap: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """(p - q) g c'."""
    logits = _capped(xp, x, softcap)
    q = _labels(xp, x, target, smoothing, weight, chosen, shares)
    p = xp.store(softmax(xp, x=logits, present=present))
    if weight is not None:
        p = p * (_weights(xp, weight, target) if smoothing is None else xp.sum(q))
    if z_loss is not None:
        p = p + 2 * z_loss * formulas.total_shifted(xp, logits, present) * p
    return _where(xp, _uncapped(xp, (p - q) * g, x, softcap), kept, valid)


def mixture(xp: Any, g: Any, **arguments: Any) -> Any:
    log = by_log_softmax(xp, g, mixtures.log_softmax_gradient, **arguments)
    return xp.either(log, fused(xp, g, mixtures.softmax, **arguments))


_shifted = partial(terms, log=formulas.shifted)
slope = partial(by_log_softmax, gradient=formulas.from_logits)
from_output = partial(by_log_softmax, gradient=formulas.from_output)
exact_slope = partial(by_log_softmax, gradient=formulas.log_softmax_gradient)
# --- faults -----------------------------------------------------------------------------------


def _fault(cause: str, of: str = "total", **changed: Any) -> Fault:
    def rows(xp: Any, **arguments: Any) -> Any:
        return _shifted(xp, **{**arguments, **changed})

    def gradient(xp: Any, g: Any, **arguments: Any) -> Any:
        return slope(xp, g, **{**arguments, **changed})

    return reduction.fault(cause, rows, gradient, reduction.by(of))


def smoothed_by(cause: str, shares: Any) -> Fault:
    """Other shares of smoothing: (xp, classes, e) -> (the label's own, that of each class)."""
    return _fault(cause, shares=shares)


def rows_smoothed_by(cause: str, shares: Any, classes: int) -> Fault:
    """Such shares, and a weight for the whole row from its labels, Σ_j (the share of j) w_j."""

    def weights_of(xp: Any, target: Any, smoothing: Any, weight: Any) -> Any:
        label_share, class_share = shares(xp, classes, smoothing)
        return label_share * _weights(xp, weight, target) + class_share * xp.sum(weight)

    def total_of(total: Any, label_weights: Any, smoothing: Any, **_: Any) -> Any:
        label_share, class_share = shares(total.context, classes, smoothing)
        of_classes = (label_weights - (1 - smoothing) * total) / smoothing  # rows times mean w
        return label_share * total + class_share * classes * of_classes

    rows, gradient = (partial(part, shares=shares) for part in _weighted_by(weights_of))
    return reduction.fault(cause, rows, gradient, total_of)


def log_fault(cause: str, of: Any = terms) -> Fault:
    """A fault of log_softmax, as one of this loss."""
    (base,) = [fault for fault in LOG_SOFTMAX if fault.cause == cause]
    return Fault(
        cause,
        reduced(joined(partial(of, log=base.forward))),
        unstable=base.unstable,
    )


def differentiated_maximum(slope: Any) -> Fault:
    """In a loss whose slope takes log_softmax's gradient. It shows in rows of many classes."""
    gradient = partial(slope, gradient=through_maximum)
    return Fault("maximum_differentiated", backward=scaled(gradient), unstable=True)


def _twice(xp: Any, x: Any, **arguments: Any) -> Any:
    p = formulas.divided(xp, x=x, present=arguments.pop("present", None))
    return _shifted(xp, x=p, **arguments)


def _product(xp: Any, x: Any, target: Any, smoothing: Any, weight: Any = None, kept: Any = None,
             valid: Any = None, present: Any = None, **_: Any) -> Any:  # fmt: skip
    """-Σ q y, where 0 times -inf is NaN."""
    y = formulas.shifted(xp, x=x, present=present)
    chosen = target == np.arange(x.shape[-1])
    q = _labels(xp, x, target, smoothing, weight, chosen, _shares)
    return _where(xp, -xp.sum(q * y), kept, valid)


_clipped = partial(fused, softmax=next(x.forward for x in SOFTMAX if x.cause == "clipped_exponent"))


def _row_weights(xp: Any, target: Any, smoothing: Any, weight: Any) -> Any:
    """A weight for the whole row, from its smoothed labels."""
    if weight is None or smoothing is None:
        return xp.number(1) if weight is None else _weights(xp, weight, target)
    return (1 - smoothing) * _weights(xp, weight, target) + smoothing * xp.mean(weight)


def _label_weights(xp: Any, target: Any, smoothing: Any, weight: Any) -> Any:
    """As in the usual NumPy code: the label's class weight also weights the smoothing's share."""
    return _row_weights(xp, target, None, weight)


def _weighted(xp: Any, weights_of: Any, weight: Any = None, **arguments: Any) -> Any:
    rows = weights_of(xp, arguments["target"], arguments["smoothing"], weight)
    return tuple(rows * term for term in _shifted(xp, **arguments))


def _weighted_slope(xp: Any, g: Any, weights_of: Any, weight: Any = None, **arguments: Any) -> Any:
    rows = weights_of(xp, arguments["target"], arguments["smoothing"], weight)
    return slope(xp, g * rows, **arguments)


def _weighted_by(weights_of: Any) -> tuple[Any, Any]:
    """The terms and their gradient, with one such weight for a whole row."""
    named = {"weights_of": weights_of}
    return partial(_weighted, **named), partial(_weighted_slope, **named)


_FAULTS = (
    _fault("ignored_rows_counted", "rows", kept=None),
    _fault(
        "smoothing_of_other_classes", shares=lambda xp, n, e: (1 - e * n / (n - 1), e / (n - 1))
    ),
    *reduction.of_labels(_shifted, slope),
    Fault("product_with_labels", reduced(joined(_product)), unstable=True),
    reduction.fault("softmax_twice", _twice, None),
    reduction.fault("no_softmax", partial(terms, log=lambda xp, x, **_: x), None),
    log_fault("log_of_softmax"),
    Fault("clipped_exponent", log_fault("clipped_exponent").forward, scaled(_clipped)),
    differentiated_maximum(by_log_softmax),
    reduction.fault("row_weights", *_weighted_by(_row_weights), reduction.by("label_weights")),
    reduction.fault("smoothing_by_label_weight", *_weighted_by(_label_weights)),
)
OPTIONS = {"label_smoothing": 0.0, "z_loss": 0.0, "softcap": None}
DOMAINS = {"label_smoothing": PROBABILITY, "z_loss": NOT_NEGATIVE}
CROSS_ENTROPY = reduction.loss(
    {
        "shifted": _shifted,
        "logsumexp": partial(terms, log=formulas.logsumexp),
        "mixture": reduced(partial(terms, log=mixtures.log_softmax, lse=mixtures.logsumexp)),
        "truth": partial(terms, log=formulas.log1p, lse=formulas.total_log1p),
    },
    {
        "by_log_softmax": slope,
        "fused": partial(fused, softmax=formulas.divided),
        "mixture": mixture,
        "truth": exact_slope,
    },
    *_FAULTS,
    totals=tuple(reduction.OTHER_TOTALS),
    params={"reduction": "mean", "ignore_index": -100, **OPTIONS},
    domains=DOMAINS,
    prepare=prepare,
)
