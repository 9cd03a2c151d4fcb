"""Whether null runs round like the two runs under comparison: only then is p valid.

Each op's errors are compared with those in the first null run of the framework that captured a
step. Where A or B err c times as much in the mean square, the null runs' deviations are taken c
times as wide, up to LIKE. Beyond it, and where errors alone are biased, p is not valid. Null runs
of `refkernels.training.null_runs` have no layers: their arithmetic answers A's questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from refkernels.alignment.local import (
    BIASED,
    LocalJudgement,
    LocalTruth,
    judge_questions,
    judge_run,
)
from refkernels.alignment.run import Run
from refkernels.alignment.tensors import grouped
from refkernels.contexts import Shuffled
from refkernels.diagnosis.fit import LIKE

_FEW = 30  # a mean square of fewer errors is unreliable
_SHARE = 1.0 / 3.0  # the least share of null runs from a framework that represents its runs
_Key = tuple[str, str, str]
_name = "{} ({}, {})".format
_Judgements = Sequence[LocalJudgement]


@dataclass(frozen=True)
class Noise:
    """`wider`: the factor that widens the null runs' deviations, from the op `where`. `invalid`: an
    op whose errors are too large for widening, or biased; "" where p is valid. `known`: whether the
    null runs' errors could be measured."""

    wider: float = 1.0
    where: str = ""
    invalid: str = ""
    known: bool = True


def noise_of(runs: Sequence[Run], local: Sequence[LocalTruth], nulls: Sequence[Run]) -> Noise:
    """The noise of null runs, compared with these runs."""
    sides = [side.judgements for side in local]
    captured = [run for run in nulls if run.first.steps]
    if captured:
        chosen = [representative(run.first.framework, nulls) or captured[0] for run in runs]
        judged = {id(run): judge_run(run, run.first.steps[:1]).judgements for run in chosen}
        return compared(sides, [judged[id(run)] for run in chosen])
    if all("arithmetic" in run.first.notes for run in nulls) and runs[0].first.steps:
        rank = runs[0].first
        null_judgements = judge_questions(rank, rank.steps[0], Shuffled(0))
        return compared(sides, [null_judgements] * len(sides))
    return Noise(known=False)


def representative(framework: str, nulls: Sequence[Run]) -> Run | None:
    """A null run of the framework with a captured step, if enough of the null runs are its own."""
    of_framework = [run for run in nulls if run.first.framework == framework]
    if len(of_framework) < _SHARE * len(nulls):
        return None
    return next((run for run in of_framework if run.first.steps), None)


def compared(sides: Sequence[_Judgements], nulls: Sequence[_Judgements]) -> Noise:
    """The errors of runs compared with those of a null run for each, op by op, in units of the
    plain kernel's."""
    ratios: dict[_Key, float] = {}
    for side, null in zip(sides, nulls, strict=True):
        null_figures = _figures(null)
        for key, (size, bias) in _figures(side).items():
            if key in null_figures:
                null_size, null_bias = null_figures[key]
                if abs(bias) > BIASED and abs(null_bias) < BIASED / 2:
                    return Noise(invalid=_name(*key))
                ratio = size / null_size if null_size else math.inf if size else 0.0
                ratios[key] = max(ratios.get(key, 0.0), ratio)
    if not ratios:
        return Noise(known=False)
    worst = max(sorted(ratios), key=lambda key: ratios[key])
    if ratios[worst] > LIKE:
        return Noise(where=_name(*worst), invalid=_name(*worst))
    return Noise(max(1.0, ratios[worst]), _name(*worst))


def _figures(judged: Sequence[LocalJudgement]) -> dict[_Key, tuple[float, float]]:
    """Of each op's output, over all layers: the root mean square error, and the mean of the signed
    errors in its own standard deviations; outputs beyond rounding are left to the local verdict."""
    figures, sound = {}, (one for one in judged if one.ordinary and one.attributed)
    finite = (one for one in sound if math.isfinite(one.over_plain + one.bias))
    groups = grouped(finite, lambda one: (one.op, str(one.place.stage), one.output))
    for key, group in groups.items():
        count = sum(one.elements for one in group)
        if count >= _FEW:
            squares = math.fsum(one.elements * one.over_plain**2 for one in group)
            biases = math.fsum(math.sqrt(one.elements) * one.bias for one in group)
            figures[key] = math.sqrt(squares / count), biases / math.sqrt(count)
    return figures
