"""Which changes of eps and of weight decay a test of curves would have noticed.

An update with another value of a setting differs by D for each unit of the change, and moves the
loss of a later step by <D, g>, where g is that step's gradient. Captured steps give D of one step
and g of later ones; within one step, g's own noise is in D. Where each step moves the loss by as
much, t steps move it by t times that. The least over all pairs of captured steps counts: Adam's
first steps, whose moments are single gradients, move the loss by more. What a momentum repeats
counts 1 / (1 - momentum) times. An estimate of first order, for small steps; decay that passes
through Adam's moments has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.alignment.question import Array, CapturedQuestion
from refkernels.alignment.run import Rank
from refkernels.alignment.updates import read_updates
from refkernels.arithmetic import formats

SETTINGS = ("eps", "weight_decay")
_THROUGH_MOMENTS = ("adam", "adagrad", "rmsprop")  # their decay is part of the gradient
_STEP = 2.0**-10  # of a setting's own size; an update is smooth in it, and float64 exact enough


def least_changes(rank: Rank, least_slope: float) -> dict[str, float]:
    """The least noticeable change of each setting, where losses that part by `least_slope` in each
    step are noticed; without a setting that fewer than two captured steps show."""
    moves: list[dict[str, dict[str, Array]]] = []  # by step, setting and parameter
    gradients: list[dict[str, Array]] = []
    for step in rank.steps:
        line, tensors = next(line for line in rank.lines if line.step == step), rank.tensors(step)
        moves.append(_moves(read_updates(rank, line, tensors)))
        received = {name: tensors.gradient(name) for name in rank.parameters}
        gradients.append({
            name: gradient.astype(np.float64).reshape(-1)
            for name, gradient in received.items()
            if gradient is not None
        })  # fmt: skip
    changes = {}
    for setting in SETTINGS:
        slopes = [
            abs(sum(float(move @ later[name]) for name, move in earlier.items() if name in later))
            for k, earlier in enumerate(of_step.get(setting, {}) for of_step in moves)
            for later in gradients[k + 1 :]
            if earlier
        ]
        if slopes and 0.0 < min(slopes) <= max(slopes) < np.inf:
            changes[setting] = least_slope / min(slopes)
    return changes


def _moves(questions: Iterator[Any]) -> dict[str, dict[str, Array]]:
    """D of a step's update by setting and parameter."""
    pieces: dict[str, dict[str, list[Array]]] = {}
    for question in questions:
        if not isinstance(question, CapturedQuestion):
            continue
        parts = question.parts or ((question.place.name, question.inputs["param"].size),)
        for setting in SETTINGS:
            move = _move(question, setting)
            starts = (0, *(end for _, end in parts))
            for (name, end), start in zip(parts, starts, strict=False):
                if move is not None:
                    of_setting = pieces.setdefault(setting, {})
                    of_setting.setdefault(name, []).append(move[start:end])
    return {
        setting: {name: np.concatenate(arrays) for name, arrays in by_name.items()}
        for setting, by_name in pieces.items()
    }


def _move(question: CapturedQuestion, setting: str) -> Array | None:
    """The update's difference for each unit of a setting; None where it has none."""
    params: Mapping[str, Any] = question.params
    value = params.get(setting)
    through = setting == "weight_decay" and question.op in _THROUGH_MOMENTS
    if not value or through:
        return None
    inputs = {name: array.astype(np.float64) for name, array in question.inputs.items()}
    step, op, wide = value * _STEP, registry.get(question.op), formats.get("float64")
    ends = [
        op.plain("forward", inputs, {**params, setting: value + sign * step}, wide)["param"]
        for sign in (1, -1)
    ]
    repeated = 1.0 / (1.0 - float(params.get("momentum") or 0.0))
    move: Array = repeated * (ends[0] - ends[1]).reshape(-1) / (2.0 * step)
    return move
