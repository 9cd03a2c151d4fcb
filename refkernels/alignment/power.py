"""Which changes of eps and of weight decay a test of curves would have noticed.

A unit of a setting's change moves a captured step's update by D, and the loss of a later step by
<D, g>, g being its gradient; momentum repeats it 1 / (1 - momentum) times. A first-order estimate,
for small steps; there is none for decay that passes through Adam's moments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refkernels import registry
from refkernels.alignment.question import Array, CapturedQuestion
from refkernels.alignment.run import Rank, StepTensors
from refkernels.alignment.updates import THROUGH_MOMENTS, read_updates
from refkernels.arithmetic import formats

SETTINGS = ("eps", "weight_decay")
_STEP = 2.0**-10  # of a setting's own size; an update is smooth in it, and float64 exact enough


def least_changes(rank: Rank, least_slope: float) -> dict[str, float]:
    """The least noticeable change of each setting, where losses that part by `least_slope` in each
    step are noticed; without a setting that fewer than two captured steps show."""
    slopes: dict[str, list[float]] = {}
    for k, step in enumerate(rank.steps[:-1]):
        later = [rank.tensors(later_step) for later_step in rank.steps[k + 1 :]]
        for setting, of_step in _slopes(rank, step, later).items():
            slopes.setdefault(setting, []).extend(map(abs, of_step))
    return {
        setting: least_slope / min(sizes)
        for setting, sizes in slopes.items()
        if 0.0 < min(sizes) <= max(sizes) < np.inf
    }


def _slopes(rank: Rank, step: int, later: Sequence[StepTensors]) -> dict[str, list[float]]:
    """<D, g> by setting, of a step's D and the g of each later step."""
    line, tensors = next(line for line in rank.lines if line.step == step), rank.tensors(step)
    sums: dict[str, list[float]] = {}
    for question in read_updates(rank, line, tensors, sampled=False):
        for setting in SETTINGS:
            if not isinstance(question, CapturedQuestion):
                continue
            move = _move(question, setting)
            if move is None:
                continue
            of_setting = sums.setdefault(setting, [0.0] * len(later))
            parts = np.split(move, [end for _, end in question.parts[:-1]])
            for index, later_tensors in enumerate(later):
                for (name, _), part in zip(question.parts, parts, strict=True):
                    gradient = later_tensors.gradient(name)
                    if gradient is not None:
                        of_setting[index] += float(part @ gradient.astype(np.float64).reshape(-1))
    return sums


def _move(question: CapturedQuestion, setting: str) -> Array | None:
    """The update's difference for each unit of a setting; None where it has none."""
    params, value = question.params, question.params.get(setting)
    if not value or (setting == "weight_decay" and question.op in THROUGH_MOMENTS):
        return None
    inputs = {name: array.astype(np.float64) for name, array in question.inputs.items()}
    step, op, float64 = value * _STEP, registry.get(question.op), formats.get("float64")
    ends = [
        op.plain("forward", inputs, {**params, setting: value + sign * step}, float64)["param"]
        for sign in (1, -1)
    ]
    repeated = 1.0 / (1.0 - float(params.get("momentum") or 0.0))
    move: Array = repeated * (ends[0] - ends[1]).reshape(-1) / (2.0 * step)
    return move
