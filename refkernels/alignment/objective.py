"""What a run minimises, by its own figures: the multiple of its loss whose gradient it descends.

Gradients are linear in what is minimised. With l_k what a loss layer answered in its k-th call, c_k
the cotangent of that answer, and w_r what the gradient of rank r counts in what the update
receives, that is the gradient of

    sum over ranks r and calls k of w_r c_k l_k

which is the loss that the run says it has, or a multiple of it. Of several ranks each says its own:
a mean of them, weighed or not, lies between the least and the greatest, so that the multiple is an
interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from refkernels import registry
from refkernels.alignment.kinds import LayerKind, kind_of
from refkernels.alignment.question import Array
from refkernels.alignment.run import Rank, Run, StepTensors

Interval = tuple[float, float]


def multiple(
    run: Run, step: int, tensors: Sequence[StepTensors], counted: Sequence[float]
) -> Interval | None:
    """`counted`: w of each rank. None where no loss layer was captured, or a rank did not say its
    loss."""
    parts = [
        weight * float(np.vdot(cotangent, loss))
        for rank, some, weight in zip(run.ranks, tensors, counted, strict=True)
        for layer in _loss_layers(rank, some)
        for loss, cotangent in layer.answers
    ]
    losses = [line.loss for rank in run.ranks for line in rank.lines if line.step == step]
    known = [one for one in losses if one is not None and math.isfinite(one)]
    if not parts or len(known) < len(run.ranks) or min(known) * max(known) <= 0.0:
        return None
    ends = sorted(math.fsum(parts) / one for one in known)
    return (ends[0], ends[-1]) if math.isfinite(ends[0] + ends[-1]) else None


def holds(multiple: Interval | None, factor: float, digits: float) -> bool:
    """Whether a multiple may be that factor, but for `digits` of it."""
    if multiple is None or not math.isfinite(factor):
        return False
    return multiple[0] - digits * abs(factor) <= factor <= multiple[1] + digits * abs(factor)


def weighs_alike(
    run: Run, tensors: Sequence[StepTensors], counted: Sequence[float], digits: float
) -> bool:
    """Whether a loss layer answers each part of the batch with its own mean, and all of these count
    the same."""
    shares: dict[str, list[float]] = {}
    for rank, some, weight in zip(run.ranks, tensors, counted, strict=True):
        for layer in _loss_layers(rank, some):
            if layer.mean and all(loss.size == 1 for loss, _ in layer.answers):
                own = [weight * float(cotangent.sum()) for _, cotangent in layer.answers]
                shares.setdefault(layer.name, []).extend(own)
    return any(
        len(some) > 1 and max(some) - min(some) <= digits * max(some) for some in shares.values()
    )


@dataclass(frozen=True)
class _LossLayer:
    """`answers`: l and c of each call."""

    name: str
    mean: bool
    answers: tuple[tuple[Array, Array], ...]


def _loss_layers(rank: Rank, tensors: StepTensors) -> Iterator[_LossLayer]:
    for layer in rank.layers.values():
        kind = kind_of(layer, layer.hyperparameters)
        if not isinstance(kind, LayerKind) or registry.get(kind.op).outputs != ("loss",):
            continue
        params = kind.params(layer.hyperparameters)
        mean = not isinstance(params, str) and params.get("reduction", "mean") == "mean"
        answers = [
            (one.outputs.get("0"), one.cotangents.get("0")) for one in tensors.calls(layer.name)
        ]
        pairs = tuple(
            (loss.astype(np.float64), cotangent.astype(np.float64))
            for loss, cotangent in answers
            if loss is not None and cotangent is not None and loss.size == cotangent.size
        )
        yield _LossLayer(layer.name, mean, pairs)
