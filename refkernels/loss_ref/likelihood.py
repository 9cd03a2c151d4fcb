"""Losses whose formulas are cross entropy's: other labels, other weights, or no softmax.

    nll                     l_i = -w_t x_it, x being log-probabilities already
    soft_cross_entropy      l_i = -Σ_j q_ij w_j y_ij, the labels q being probabilities; D = the rows
    masked_lm_loss          l_i = w_i times cross entropy's; D = Σ w_i + eps, w_i the row's weight

Source: Devlin et al. (2018), arXiv:1810.04805, run_pretraining.py: eps = 1e-5.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.loss_ref import cross_entropy, reduction
from refkernels.loss_ref.cross_entropy import terms
from refkernels.loss_ref.reduction import OTHER_TOTALS, by, fault
from refkernels.op import Direction
from refkernels.ops import Prepared, Shared
from refkernels.ops.domains import PROBABILITY
from refkernels.softmax_ref import formulas, mixtures

SOFT = "x[... n], target[... n], weight[n]?"
MASKED = "x[... n], target[...]:int, weights[...]"
_MARKS = ", present[... n]:bool, top[... n]:bool"


# --- nll --------------------------------------------------------------------------------------


def prepare_nll(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """Cross entropy's, without smoothing."""
    return cross_entropy.prepare(inputs, {**params, "label_smoothing": 0.0}, direction)


_as_it_is = partial(terms, log=lambda xp, x, **_: x)


def _chosen(xp: Any, g: Any, chosen: Any, **arguments: Any) -> Any:
    """-g q; 0 elsewhere, and not -0."""
    dx = cross_entropy.by_log_softmax(xp, g, lambda xp, dy, **_: dy, chosen=chosen, **arguments)
    return xp.where(chosen, dx, xp.number(0)) if arguments["valid"] is None else dx


NLL = reduction.loss(
    {"chosen": _as_it_is},
    {"chosen": _chosen},
    fault("softmax_twice", partial(terms, log=formulas.shifted), None),
    *reduction.of_labels(_as_it_is, _chosen),
    totals=tuple(OTHER_TOTALS),
    params={"reduction": "mean", "ignore_index": -100},
    prepare=prepare_nll,
)


# --- soft labels ------------------------------------------------------------------------------


def prepare_soft(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    x, target = inputs["x"], inputs["target"]
    if x.ndim == 0 or not x.shape[-1] or target.shape != x.shape:
        raise ValueError(f"target has shape {target.shape} and x {x.shape}: they do not fit.")
    rows, weight = np.ones(x.shape[:-1], bool), inputs.get("weight")
    cross_entropy.check_weight(weight, x.shape[-1])
    labels = target.reshape(-1, x.shape[-1])
    settings = {
        "reduction": params["reduction"],
        "smoothing": params["label_smoothing"] or None,
        **reduction.counts(rows),
        "label_weights": None
        if weight is None
        else Shared(lambda xp: xp.sum(xp.sum(xp.array(labels) * xp.array(weight[None])), axis=0)),
    }
    way = reduction.signature(SOFT + _MARKS, "n", params["reduction"], direction)
    return Prepared({**inputs, **formulas.marked(x)}, settings, signature=way)


def _soft(xp: Any, target: Any, smoothing: Any, weight: Any, n: int) -> Any:
    """q w."""
    q = target if smoothing is None else (1 - smoothing) * target + smoothing / n
    return q if weight is None else q * weight


def _soft_terms(
    xp: Any, log: Any, x: Any, target: Any, smoothing: Any, weight: Any = None, present: Any = None,
    top: Any = None, **_: Any,
) -> Any:  # fmt: skip
    y = xp.store(log(xp, x=x, present=present, top=top))
    return -xp.sum(_soft(xp, target, smoothing, weight, x.shape[-1]) * y)


def _soft_slope(
    xp: Any, g: Any, gradient: Any, x: Any, target: Any, smoothing: Any, weight: Any = None,
    present: Any = None, top: Any = None, **_: Any,
) -> Any:  # fmt: skip
    q = _soft(xp, target, smoothing, weight, x.shape[-1])
    return gradient(xp, dy=xp.store(-(g * q)), x=x, present=present, top=top)


def _label_weights(xp: Any, target: Any, weight: Any = None, **_: Any) -> Any:
    """A weight for the whole row, where the labels' weights do not weight their terms."""
    return xp.number(1) if weight is None else xp.sum(target * weight)


def _row_weighted(xp: Any, weight: Any = None, **arguments: Any) -> Any:
    return _label_weights(xp, weight=weight, **arguments) * _soft_shifted(xp, **arguments)


def _row_weighted_slope(xp: Any, g: Any, weight: Any = None, **arguments: Any) -> Any:
    return _soft_from_logits(xp, g * _label_weights(xp, weight=weight, **arguments), **arguments)


_soft_shifted = partial(_soft_terms, log=formulas.shifted)
_soft_from_logits = partial(_soft_slope, gradient=formulas.from_logits)
SOFT_CROSS_ENTROPY = reduction.loss(
    {
        "shifted": _soft_shifted,
        "logsumexp": partial(_soft_terms, log=formulas.logsumexp),
        "mixture": partial(_soft_terms, log=mixtures.log_softmax),
        "truth": partial(_soft_terms, log=formulas.log1p),
    },
    {
        "by_log_softmax": _soft_from_logits,
        "mixture": partial(_soft_slope, gradient=mixtures.log_softmax_gradient),
        "truth": partial(_soft_slope, gradient=formulas.log_softmax_gradient),
    },
    fault("row_weights", _row_weighted, _row_weighted_slope, by("label_weights")),
    cross_entropy.log_fault("clipped_exponent", _soft_terms),
    totals=("sum_instead_of_mean", "batch_denominator"),
    params={"reduction": "mean", "label_smoothing": 0.0},
    domains={"label_smoothing": PROBABILITY},
    prepare=prepare_soft,
)


# --- BERT's masked language model -------------------------------------------------------------


def prepare_masked(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    weights, eps = inputs["weights"], params["eps"]
    if weights.shape != inputs["target"].shape:
        raise ValueError(
            f"weights has shape {weights.shape} and target {inputs['target'].shape}: they must "
            "be equal."
        )
    arrays = {name: array for name, array in inputs.items() if name != "weights"}
    settings = {"reduction": params["reduction"], "label_smoothing": 0.0, "ignore_index": None}
    prepared = cross_entropy.prepare(arrays, settings, direction)
    counted = _counted(weights)

    def total(xp: Any) -> Any:
        """The denominator; a loss without eps has eps 0."""
        flat = weights.reshape(1, -1)
        return (xp.sum(xp.array(flat)) if counted is None else xp.number(counted)) + xp.number(eps)

    totals = {"total": Shared(total)}
    way = reduction.signature(MASKED + cross_entropy.MARKS, "n", params["reduction"], direction)
    return Prepared(
        {**prepared.inputs, "weights": weights}, {**prepared.params, **totals}, signature=way
    )


def _counted(weights: Any) -> int | None:
    """The sum of weights that are whole numbers, if it is so small that no order of summation
    rounds; else None."""
    wide = np.asarray(weights, np.float64)
    size = float(np.sum(np.abs(wide)))
    countable = size <= 2.0 ** formats.of(weights).p and bool(np.all(wide == np.rint(wide)))
    return int(np.sum(wide)) if countable else None


def _weighted(xp: Any, log: Any, weights: Any, **arguments: Any) -> Any:
    (row,) = terms(xp, log, **arguments)
    return weights * row


def _weighted_slope(xp: Any, g: Any, of: Any, weights: Any, **arguments: Any) -> Any:
    return of(xp, g * weights, **arguments)


def _weighted_from_log_softmax(
    xp: Any, g: Any, gradient: Any, weights: Any, **arguments: Any
) -> Any:
    return cross_entropy.by_log_softmax(xp, g * weights, gradient, **arguments)


_masked = partial(_weighted, log=formulas.shifted)
_masked_slope = partial(_weighted_slope, of=cross_entropy.slope)
weighted_from_output = partial(_weighted_slope, of=cross_entropy.from_output)
MASKED_LM_LOSS = reduction.loss(
    {
        "shifted": _masked,
        "logsumexp": partial(_weighted, log=formulas.logsumexp),
        "mixture": partial(_weighted, log=mixtures.log_softmax),
        "truth": partial(_weighted, log=formulas.log1p),
    },
    {
        "by_log_softmax": _masked_slope,
        "mixture": partial(_weighted_slope, of=cross_entropy.mixture),
        "truth": partial(_weighted_slope, of=cross_entropy.exact_slope),
    },
    cross_entropy.differentiated_maximum(_weighted_from_log_softmax),
    totals=("sum_instead_of_mean", "all_rows_denominator"),
    params={"reduction": "mean", "eps": 1e-5},
    prepare=prepare_masked,
)
