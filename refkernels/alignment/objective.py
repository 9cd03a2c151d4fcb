"""The multiple of its own loss whose gradient a run descends.

The update receives the gradient of the sum over ranks r and calls k of w_r c_k l_k (l_k: a loss
layer's answer, c_k its cotangent, w_r the rank's weight): a multiple of the loss that the run
reports. Several ranks report losses of their own, so the multiple is an interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from refkernels import registry
from refkernels.alignment.kinds import LayerKind, kind_of
from refkernels.alignment.question import Array
from refkernels.alignment.run import Rank, Run, StepTensors

Interval = tuple[float, float]


def multiple(
    run: Run, step: int, tensors: Sequence[StepTensors], counted: Sequence[float]
) -> Interval | None:
    """The multiple. `counted`: w of each rank. None where no loss layer was captured, or a rank did
    not report its loss."""
    parts = [
        weight * float(np.vdot(cotangent, loss))
        for rank, rank_tensors, weight in zip(run.ranks, tensors, counted, strict=True)
        for _, _, answers in _loss_layers(rank, rank_tensors)
        for loss, cotangent in answers
    ]
    losses = (line.loss for rank in run.ranks for line in rank.lines if line.step == step)
    reported = [run_loss for run_loss in losses if run_loss is not None and math.isfinite(run_loss)]
    if not parts or len(reported) < len(run.ranks) or min(reported) * max(reported) <= 0.0:
        return None
    ends = sorted(math.fsum(parts) / run_loss for run_loss in reported)
    return (ends[0], ends[-1]) if math.isfinite(ends[0] + ends[-1]) else None


def holds(multiple: Interval | None, factor: float, digits: float) -> bool:
    """Whether a multiple may be that factor, up to a relative `digits`."""
    if multiple is None or not math.isfinite(factor):
        return False
    return multiple[0] - digits * abs(factor) <= factor <= multiple[1] + digits * abs(factor)


def weighs_alike(
    run: Run, tensors: Sequence[StepTensors], counted: Sequence[float], digits: float
) -> bool:
    """Whether a loss layer answers each part of the batch with its own mean, and all these means
    have the same weight."""
    shares: dict[str, list[float]] = {}
    for rank, rank_tensors, weight in zip(run.ranks, tensors, counted, strict=True):
        for name, mean, answers in _loss_layers(rank, rank_tensors):
            if mean and all(loss.size == 1 for loss, _ in answers):
                part_shares = [weight * float(cotangent.sum()) for _, cotangent in answers]
                shares.setdefault(name, []).extend(part_shares)
    several = [layer for layer in shares.values() if len(layer) > 1]
    return any(max(layer) - min(layer) <= digits * max(layer) for layer in several)


_LossLayer = tuple[str, bool, tuple[tuple[Array, Array], ...]]


def _loss_layers(rank: Rank, tensors: StepTensors) -> Iterator[_LossLayer]:
    """The name of each, whether it answers a mean, and l and c of each call."""
    for layer in rank.layers.values():
        kind = kind_of(layer, layer.hyperparameters)
        if not isinstance(kind, LayerKind) or registry.get(kind.op).outputs != ("loss",):
            continue
        params = kind.params(layer.hyperparameters)
        mean = not isinstance(params, str) and params.get("reduction", "mean") == "mean"
        answers = [
            (call.outputs.get("0"), call.cotangents.get("0")) for call in tensors.calls(layer.name)
        ]
        pairs = tuple(
            (loss.astype(np.float64), cotangent.astype(np.float64))
            for loss, cotangent in answers
            if loss is not None and cotangent is not None and loss.size == cotangent.size
        )
        yield layer.name, mean, pairs
