"""align(): is it the same training run?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refkernels.alignment import record
from refkernels.alignment.clipping import Clipping, clipping, scaling, shared
from refkernels.alignment.comparison import coarse_places, departure, null_directions
from refkernels.alignment.differences import differences, judged_by_calls, notes
from refkernels.alignment.local import Judged, LocalTruth, judge_run
from refkernels.alignment.matching import Matched, matched
from refkernels.alignment.noise import Noise, noise_of
from refkernels.alignment.run import CaptureError, Run
from refkernels.alignment.suspect import Suspect
from refkernels.alignment.traced import UNEXPLAINED, CallComparison, traced
from refkernels.alignment.updates import judged_as
from refkernels.alignment.verdict import Conclusion, VerdictReason, decide, decide_alone
from refkernels.training import curves
from refkernels.training.curves import CurveTest

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Alignment:
    """The findings about one run, or two; some are of each run. `curve`: the losses beside null
    runs; `band`: their least, mean and greatest loss by step; `noise`: whether they round as the
    runs do."""

    runs: tuple[Run, ...]
    verdict: Conclusion
    differences: tuple[Suspect, ...]
    local: tuple[LocalTruth, ...]
    clips: tuple[Clipping | None, ...]
    matched: Matched | None = None
    curve: CurveTest | None = None
    null_directions: tuple[tuple[str, ...], ...] = ()
    band: tuple[tuple[int, float, float, float], ...] = ()
    noise: Noise | None = None
    traced: CallComparison | None = None

    def to_dict(self) -> dict[str, Any]:
        """The record in strict JSON, from which every view is made."""
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
    """Whether two captured runs are the same training but for rounding; or whether one run is the
    training that it claims to be.

    nulls   rounding-only runs of the same definition (`Capture(perturb=seed)`), for the p-value
    seeds   runs from other seeds, which show from which step on no curve can decide
    names   B's names of A's layers and parameters, where order and shapes do not decide
    steps   the captured steps to judge; all of them by default
    Raises CaptureError, a ValueError, for a folder that holds no captured run, and where none of
    `steps` was captured.
    """
    runs = tuple(_run(folder) for folder in ((a,) if b is None else (a, b)))
    chosen = None if steps is None else tuple(steps)
    captured = sorted({step for run in runs for rank in run.ranks for step in rank.steps})
    if chosen is not None and not set(chosen) & set(captured):
        requested = ", ".join(map(str, chosen)) or "none"
        available = ", ".join(map(str, captured)) or "none"
        few = f"Steps to judge: {requested}; captured steps: {available}. Choose among these."
        raise CaptureError(few)
    calls = traced(runs[0], runs[-1])  # in another process, while this one judges
    judged: Judged = {}
    local = tuple(
        judge_run(judged_as(run, other), chosen, progress, judged)
        for run, other in zip(runs, reversed(runs), strict=True)
    )
    null_runs, seed_runs = [_run(folder) for folder in nulls], [_run(folder) for folder in seeds]
    noise = noise_of(runs, local, null_runs) if null_runs and len(runs) > 1 else None
    return conclude(runs, local, null_runs, seed_runs, names, chosen, noise, calls)


def conclude(
    runs: tuple[Run, ...],
    local: tuple[LocalTruth, ...],
    nulls: Sequence[Run] = (),
    seeds: Sequence[Run] = (),
    names: Mapping[str, str] | None = None,
    chosen: tuple[int, ...] | None = None,
    noise: Noise | None = None,
    calls_of: Callable[[], CallComparison | None] | None = None,
) -> Alignment:
    """The alignment of runs whose ops have been judged, beside null runs of known noise."""
    scalings_by_run = []
    for run in runs:
        places = [(rank, step) for rank in run.ranks for step in rank.steps]
        chosen_places = (one for one in places if chosen is None or one[1] in chosen)
        scalings = (scaling(rank, step, rank.tensors(step)) for rank, step in chosen_places)
        scalings_by_run.append([one for one in scalings if one is not None])
    clips = tuple(clipping(run_scalings) for run_scalings in scalings_by_run)
    firsts = [run.first for run in runs]
    directions = tuple(null_directions(one, one.steps[0]) if one.steps else () for one in firsts)
    cut_off = tuple(_cut_off(runs, chosen))
    if len(runs) == 1:
        return Alignment(
            runs, decide_alone(local[0], cut_off), notes(runs[0]), local, clips,
            null_directions=directions,
        )  # fmt: skip
    pairs = matched(runs[0].first, runs[1].first, names)
    calls = (calls_of or traced(runs[0], runs[1]))()
    differing = differences(runs[0], runs[1], pairs)
    first_departure = departure(runs[0], runs[1], pairs, coarse_places(local, pairs))
    if calls is not None and calls.decides:
        of_update = first_departure is not None and first_departure.topic == "update"
        differing = judged_by_calls(differing, calls.same and not of_update)
        if first_departure is not None and first_departure.step <= calls.step:
            edits = {one.kind for one in calls.differences} - {UNEXPLAINED, "calls:replaced"}
            unknown = first_departure.details["cause"] is None or bool(edits)
            if (calls.same and not of_update) or (calls.forward and unknown):
                first_departure = None
    curve = _curve_test(runs, nulls, seeds, 1.0 if noise is None else noise.wider)
    local_pair = local[0], local[1]
    reduces = any(one.world_size > 1 for one in firsts)  # a sum over ranks is no scaling
    clips_alike = (None, None) if reduces else shared(scalings_by_run[0], scalings_by_run[1])
    given = pairs, curve, first_departure, noise, calls, cut_off
    verdict = decide(differing, local_pair, clips_alike, *given)
    return Alignment(
        runs, verdict, differing, local, clips, pairs, curve, directions, _band(nulls), noise,
        calls,
    )  # fmt: skip


def _cut_off(runs: tuple[Run, ...], chosen: tuple[int, ...] | None) -> Iterator[VerdictReason]:
    """The captured steps that cannot be read, and which run stopped before the other."""
    longest = max(len(run.first.lines) for run in runs)
    for run in runs:
        name, finished = run.folder.name, len(run.first.lines)
        damaged = {step for rank in run.ranks for step in rank.damaged}
        lost = [str(step) for step in sorted(damaged) if chosen is None or step in chosen]
        if lost:
            yield VerdictReason("unreadable", {"run": name, "steps": ", ".join(lost)})
        if not run.first.complete and (finished < longest or not finished):
            yield VerdictReason("stopped", {"run": name, "steps": finished})


def _run(folder: Path | Run) -> Run:
    return folder if isinstance(folder, Run) else Run.read(folder)


def _curve_test(
    runs: tuple[Run, ...], nulls: Sequence[Run], seeds: Sequence[Run], wider: float
) -> CurveTest | None:
    """The test of the pair beside null runs; None without null runs."""
    if not nulls:
        return None
    curves_by_step = [_losses(run) for run in (*runs, *nulls)]
    shared = sorted(set.intersection(*(set(losses) for losses in curves_by_step)))
    if not shared or shared[0] != min(curves_by_step[0]):
        raise CaptureError("The runs share no first steps: their curves cannot be compared.")
    table = np.array([[losses[step] for step in shared] for losses in curves_by_step])
    seed_losses = [_losses(run) for run in seeds]
    seed_table = [[losses.get(step, np.nan) for step in shared] for losses in seed_losses]
    dtype = next((line.loss_dtype for line in runs[0].first.lines if line.loss_dtype), "float32")
    return curves.of_pair(
        table[0], table[1], table[2:], dtype, np.array(seed_table) if seed_table else None, wider
    )


def _band(nulls: Sequence[Run]) -> tuple[tuple[int, float, float, float], ...]:
    """The null runs' least, mean and greatest loss, in the steps that all of them completed."""
    curves = [_losses(run) for run in nulls]
    steps = sorted(set.intersection(*map(set, curves))) if curves else []
    table = ((step, [losses[step] for losses in curves]) for step in steps)
    return tuple(
        (step, min(values), float(np.mean(values)), max(values))
        for step, values in table
        if np.all(np.isfinite(values))
    )


def _losses(run: Run) -> dict[int, float]:
    """The losses by step; for several ranks their mean."""
    losses = {step: [line.loss for line in lines] for step, lines in run.lines.items()}
    return {
        step: float(np.mean(np.array(some, np.float64)))
        for step, some in losses.items()
        if None not in some
    }
