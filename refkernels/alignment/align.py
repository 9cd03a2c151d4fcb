"""align(): is it the same training run?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refkernels.alignment import curves, record
from refkernels.alignment.clipping import Clipping, clipping, scalings, shared
from refkernels.alignment.comparison import departure, null_directions
from refkernels.alignment.curves import CurveTest
from refkernels.alignment.differences import RunDifference, differences, shards
from refkernels.alignment.local import LocalTruth, judge_run
from refkernels.alignment.matching import Matched, matched
from refkernels.alignment.noise import Noise, noise_of
from refkernels.alignment.run import CaptureError, Run
from refkernels.alignment.verdict import Conclusion, decide, decide_alone

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Alignment:
    """What was found about one run, or two. `local`, `clips` and `null_directions`: of each run;
    `curve`: the losses beside null runs, None without them; `band`: the null runs' least, mean and
    greatest loss by step; `noise`: whether those round as the runs do; `remarks`: what is
    missing or damaged in the captures."""

    runs: tuple[Run, ...]
    verdict: Conclusion
    differences: tuple[RunDifference, ...]
    local: tuple[LocalTruth, ...]
    clips: tuple[Clipping | None, ...]
    matched: Matched | None = None
    curve: CurveTest | None = None
    null_directions: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = ()
    band: tuple[tuple[int, float, float, float], ...] = ()
    noise: Noise | None = None

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON, of which every view is made."""
        return record.of(self)


def align(
    a: Path | Run,
    b: Path | Run | None = None,
    *,
    nulls: Sequence[Path | Run] = (),
    seeds: Sequence[Path | Run] = (),
    names: Mapping[str, str] | None = None,
    steps: Sequence[int] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Alignment:
    """Whether two captured runs are the same training but for rounding; or whether one run is what
    it says to be.

    nulls   rounding-only runs of the same definition (`Capture(perturb=seed)`), for the p-value
    seeds   runs from other seeds, which say from which step on no curve can decide
    names   layers and parameters of A by those of B, where order and shapes do not tell
    steps   the captured steps to judge; all of them by default
    Raises CaptureError, a ValueError, for a folder that holds no captured run.
    """
    runs = tuple(_run(one) for one in ((a,) if b is None else (a, b)))
    chosen = None if steps is None else tuple(steps)
    local = tuple(judge_run(run, chosen, progress) for run in runs)
    beside, others = [_run(one) for one in nulls], [_run(one) for one in seeds]
    noise = noise_of(runs, local, beside) if beside and len(runs) > 1 else None
    return conclude(runs, local, beside, others, names, chosen, noise)


def conclude(
    runs: tuple[Run, ...],
    local: tuple[LocalTruth, ...],
    nulls: Sequence[Run] = (),
    seeds: Sequence[Run] = (),
    names: Mapping[str, str] | None = None,
    chosen: tuple[int, ...] | None = None,
    noise: Noise | None = None,
) -> Alignment:
    """`align`, of runs whose ops have been judged, beside null runs of known noise."""
    scaled = tuple(scalings(run, chosen) for run in runs)
    clips = tuple(clipping(one) for one in scaled)
    null = tuple(_null_directions(run) for run in runs)
    remarks = tuple(remark for run in runs for remark in run.remarks)
    if len(runs) == 1:
        return Alignment(
            runs, decide_alone(local[0]), shards(runs[0]), local, clips, null_directions=null,
            remarks=remarks,
        )  # fmt: skip
    pairs = matched(runs[0].first, runs[1].first, names)
    found = differences(runs[0], runs[1], pairs)
    parted = departure(runs[0], runs[1], pairs)
    curve = _curve(runs, nulls, seeds, 1.0 if noise is None else noise.wider)
    both = local[0], local[1]
    scaled_alike = (None, None) if _reduces(runs) else shared(scaled[0], scaled[1])
    verdict = decide(found, both, scaled_alike, pairs, curve, parted, noise)
    return Alignment(
        runs, verdict, found, local, clips, pairs, curve, null, remarks, _band(nulls), noise
    )  # fmt: skip


def _null_directions(run: Run) -> tuple[str, ...]:
    """Of the first captured step."""
    return null_directions(run.first, run.first.steps[0]) if run.first.steps else ()


def _reduces(runs: tuple[Run, ...]) -> bool:
    """Whether ranks may add their gradients up before the update, which is no scaling."""
    return any(run.first.world_size > 1 for run in runs)


def _run(one: Path | Run) -> Run:
    return one if isinstance(one, Run) else Run.read(one)


def _curve(
    runs: tuple[Run, ...], nulls: Sequence[Run], seeds: Sequence[Run], wider: float
) -> CurveTest | None:
    """The pair beside null runs; None without these."""
    if not nulls:
        return None
    every = [_losses(run) for run in (*runs, *nulls)]
    shared = sorted(set.intersection(*(set(one) for one in every)))
    if not shared or shared[0] != min(every[0]):
        raise CaptureError("The runs share no first steps: their curves cannot be compared.")
    table = np.array([[one[step] for step in shared] for one in every])
    other = [_losses(run) for run in seeds]
    beside = [[one.get(step, np.nan) for step in shared] for one in other]
    dtype = next((line.loss_dtype for line in runs[0].first.lines if line.loss_dtype), "float32")
    return curves.of_pair(
        table[0], table[1], table[2:], dtype, np.array(beside) if beside else None, wider
    )


def _band(nulls: Sequence[Run]) -> tuple[tuple[int, float, float, float], ...]:
    """Over the steps that all of them finished."""
    curves = [_losses(run) for run in nulls]
    if not curves:
        return ()
    steps = sorted(set.intersection(*(set(one) for one in curves)))
    every = {step: [one[step] for one in curves] for step in steps}
    return tuple(
        (step, min(some), float(np.mean(some)), max(some))
        for step, some in every.items()
        if np.all(np.isfinite(some))
    )


def _losses(run: Run) -> dict[int, float]:
    """The losses by step; of several ranks their mean."""
    found: dict[int, list[Any]] = {}
    for rank in run.ranks:
        for line in rank.lines:
            found.setdefault(line.step, []).append(line.loss)
    return {step: float(np.mean(losses)) for step, losses in found.items() if None not in losses}
