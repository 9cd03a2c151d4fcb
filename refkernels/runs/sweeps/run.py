"""sweep(): frameworks x ops x formats, chunk by chunk, into sweeps.jsonl."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import refkernels
from refkernels import registry
from refkernels.arguments import (
    as_flag,
    as_function,
    as_names,
    as_path,
    as_seconds,
    as_settings,
    as_text,
)
from refkernels.arithmetic import formats
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.scalars import as_count
from refkernels.frameworks import catalog
from refkernels.frameworks.catalog import Spec
from refkernels.frameworks.gateway import split_settings
from refkernels.op import DTYPES, Op
from refkernels.runs.progress import Progress
from refkernels.runs.sweeps import patterns, records
from refkernels.runs.sweeps.chunk import describe, run_chunk, settle_borders
from refkernels.runs.sweeps.journal import ENVIRONMENT, Json, SweepJournal
from refkernels.runs.sweeps.pairs import run_pair_restart
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.pool import Job, Processes, WorkerPool
from refkernels.runs.sweeps.question import ONE_THREAD, SweepQuestion
from refkernels.runs.sweeps.search import run_restart
from refkernels.runs.sweeps.tally import SweepTally
from refkernels.suggestion import did_you_mean, quoted
from refkernels.target_names import TargetName, merged, short

CHUNK = 1 << 24
CALL = 1 << 20
RESTART = 1 << 17
TRIES = 1 << 21
_IN_A_ROW = 8  # consecutive failures after which the rest of a sweep is not tried
_NARROW = 32  # bits: formats up to this width are swept, wider ones searched


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep asks, independent of the workers that answer it."""

    ops: tuple[str, ...]
    frameworks: tuple[tuple[Spec, TargetName], ...]
    dtypes: tuple[str, ...]
    device: str = "cpu"
    range: str | None = None
    settings: Mapping[str, str] | None = None
    chunk: int = CHUNK
    call: int = CALL
    tries: int = TRIES
    seed: int = 0
    timeout: float = 120.0


@dataclass(frozen=True)
class SweepUnit:
    """One framework, op and format: a question and the jobs that answer it."""

    question: SweepQuestion
    spans: tuple[Span, ...]
    method: Mapping[str, Any]
    jobs: tuple[tuple[Job, int], ...]  # with the number of inputs of each

    @property
    def label(self) -> str:
        """The unit's name in progress lines."""
        return _label(self.question, short(str(self.question.name)))


def plan(
    ops: Sequence[str],
    frameworks: Sequence[str],
    dtypes: Sequence[str] = ("float32",),
    *,
    range: str | None = None,
    settings: Mapping[str, str] | None = None,
    **others: Any,
) -> SweepPlan:
    """A SweepPlan, after a check of all names. `frameworks` are names of targets (`target_names`),
    whose own settings and device take precedence over those for all; `others` are further fields of
    a SweepPlan. Raises ValueError (unknown op, dtype or range, an op that no sweep can cover),
    FrameworkError (unknown framework or flag), and TypeError for an unknown field and for an
    argument that is not a list of names, a mapping of settings or a number."""
    others = _checked_fields(others)
    ops, dtypes = as_names(ops, "ops"), as_names(dtypes, "dtypes")
    frameworks, settings = as_names(frameworks, "frameworks"), as_settings(settings)
    for op in ops:
        _check_op(registry.get(op), range)
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise ValueError(f"There is no dtype {quoted(dtype)}: {did_you_mean(dtype, DTYPES)}.")
        if range is not None:
            patterns.parse_range(range, formats.get(dtype))
    targets = {str(name): (spec, name) for spec, name in map(catalog.target, frameworks)}
    for spec, name in targets.values():
        split_settings(spec.framework, _settings(settings, name))
    return SweepPlan(
        tuple(dict.fromkeys(ops)), tuple(targets.values()), tuple(dict.fromkeys(dtypes)),
        range=range, settings=settings, **others,
    )  # fmt: skip


@with_default_fenv
def sweep(
    plan: SweepPlan,
    directory: Path,
    *,
    resume: bool = False,
    pool: WorkerPool | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> list[Json]:
    """Sweep everything that the plan names; write `directory`/sweeps.jsonl and return its records.

    A sweep may be stopped at any moment; called again with `resume=True` it goes on, with the same
    result. If it ended with failures, the failed chunks are tried again. `pool` are the workers (by
    default one process for each core); it is closed at the end. Raises JournalError if the
    directory holds another sweep, PoolError if no worker is available, TypeError or ValueError for
    an argument that is not a plan, folder or pool.
    """
    if not isinstance(plan, SweepPlan):
        raise TypeError(f"plan is of type {type(plan).__name__}: `plan` makes one.")
    if pool is not None and not isinstance(pool, WorkerPool):
        raise TypeError(f"pool is of type {type(pool).__name__}, but it must be a WorkerPool.")
    progress = as_function(progress, "progress")
    directory, resume = as_path(directory, "directory"), as_flag(resume, "resume")
    pool = pool or Processes()
    at_once = True
    try:
        journal = SweepJournal(directory, _question(plan), resume)
        if journal.complete:
            at_once = False
            return journal.records()
        units = units_of(plan)
        pool.limit(most_at_once(plan))
        total = sum(size for unit in units for _, size in unit.jobs)
        results: list[Json] = []
        environments: dict[str, Json] = {}
        done = 0
        for unit in units:
            progress(Progress(unit.label, done, total))
            description = _describe(unit, pool, journal)
            if description["environment"]:
                record = records.environment(unit.question, description)
                environments[unit.question.name] = record
            if description["status"] != "ok":
                results.append(records.failure(unit.question, description))
            else:

                def report(swept: int, unit: SweepUnit = unit, before: int = done) -> None:
                    progress(Progress(unit.label, before + swept, total))

                results.append(_sweep_unit(unit, description, pool, journal, report))
            done += sum(size for _, size in unit.jobs)
            progress(Progress(unit.label, done, total))
        results += environments.values()
        journal.finish(results)
        at_once = False
        return results
    finally:
        pool.close(at_once)


def units_of(plan: SweepPlan) -> list[SweepUnit]:
    """One unit for each op, framework and format."""
    units = []
    for spec, name in plan.frameworks:
        settings, device = _settings(plan.settings, name), name.device or plan.device
        for op in plan.ops:
            for dtype in plan.dtypes:
                question = SweepQuestion(
                    op, spec, device, dtype, settings, plan.call, plan.timeout, str(name.anywhere)
                )
                units.append(_unit(question, plan))
    return units


def most_at_once(plan: SweepPlan) -> int:
    """The chunks of the largest unit. Units follow one another, so no more workers than that have
    work at the same time."""
    return max([1, *(len(unit.jobs) for unit in units_of(plan))])


def _settings(settings: Mapping[str, str] | None, name: TargetName) -> dict[str, str]:
    return merged({**ONE_THREAD, **(settings or {})}, name)


def _unit(question: SweepQuestion, plan: SweepPlan) -> SweepUnit:
    format = formats.get(question.dtype)
    spans = patterns.everything(format)
    if plan.range is not None:
        spans = patterns.parse_range(plan.range, format)
    label = _label(question, str(question.name))
    jobs = []
    takes = len(registry.get(question.op).inputs)
    if takes == 1 and patterns.width(format) <= _NARROW:
        for span in patterns.split(spans, plan.chunk):
            key = f"{label} {span.start:#x}-{span.stop:#x}"
            jobs.append((Job(key, run_chunk, (question, span.start, span.stop)), len(span)))
        return SweepUnit(question, spans, {"method": "exhaustive"}, tuple(jobs))
    ranges = [[span.start, span.stop] for span in spans]
    for restart, first in enumerate(range(0, plan.tries, RESTART)):
        tries = min(RESTART, plan.tries - first)
        key, place = f"{label} restart {restart}", (plan.seed, restart, tries)
        job = Job(key, run_restart, (question, ranges, *place))
        if takes > 1:
            job = Job(key, run_pair_restart, (question, *place))
        jobs.append((job, tries))
    method = {"method": "search", "seed": plan.seed, "tries": plan.tries}
    return SweepUnit(question, spans, method, tuple(jobs))


def _describe(unit: SweepUnit, pool: WorkerPool, journal: SweepJournal) -> Json:
    """The framework's description. All workers start the framework at the same time."""
    key = unit.label + ENVIRONMENT
    if key not in journal.done:
        jobs = [Job(f"{key} {worker}", describe, (unit.question,)) for worker in range(pool.width)]
        results = [answer for _, answer in pool.results(jobs)]
        result = next((answer for answer in results if answer["status"] == "ok"), results[0])
        result.setdefault("environment", {})
        if result["status"] != "ok":  # not kept, so that --resume asks again
            return result
        journal.add(key, result)
    return journal.done[key]


def _sweep_unit(
    unit: SweepUnit,
    description: Json,
    pool: WorkerPool,
    journal: SweepJournal,
    report: Callable[[int], None],
) -> Json:
    sizes = {job.key: size for job, size in unit.jobs}
    swept = sum(size for key, size in sizes.items() if key in journal.done)
    failures: dict[str, Json] = {}
    in_a_row = 0
    remaining = [job for job, _ in unit.jobs if job.key not in journal.done]
    report(swept)
    for job, result in pool.results(remaining):
        if result["status"] == "ok" and result["version"] != description["version"]:
            result = _other_version(result, description)
        if result["status"] == "ok":
            journal.add(job.key, result)
            in_a_row = 0
        else:
            failures[job.key] = {"status": result["status"], "reason": result["reason"]}
            in_a_row += 1
        swept += sizes[job.key]
        report(swept)
        if in_a_row >= _IN_A_ROW:
            break
    return _merged(unit, description, journal, failures)


def _merged(
    unit: SweepUnit, description: Json, journal: SweepJournal, failures: Mapping[str, Json]
) -> Json:
    """The record of all chunks, in their order."""
    takes = len(registry.get(unit.question.op).inputs)
    tally = SweepTally(formats.get(unit.question.dtype), takes)
    failed: list[Json] = []
    untried = {"status": "not_tried", "reason": f"Not tried after {_IN_A_ROW} failures in a row."}
    for job, _ in unit.jobs:
        if job.key in journal.done:
            tally.merge(SweepTally.from_json(journal.done[job.key]["tally"]))
        else:
            failed.append({"chunk": job.key, **failures.get(job.key, untried)})
    settle_borders(registry.get(unit.question.op), tally)
    return records.record(unit.question, description, tally, unit.spans, failed, unit.method)


def _other_version(result: Json, description: Json) -> Json:
    reason = (
        f"This worker has version {result['version']}, the sweep began with "
        f"{description['version']}: give all workers the same version."
    )
    return {"status": "error", "reason": reason}


def _question(plan: SweepPlan) -> Json:
    """What must be the same for a stopped sweep to resume."""
    return {
        "refkernels": refkernels.__version__,
        "ops": list(plan.ops),
        "frameworks": [str(name) for _, name in plan.frameworks],
        "dtypes": list(plan.dtypes),
        "device": plan.device,
        "range": plan.range,
        "settings": dict(plan.settings or {}),
        "chunk": plan.chunk,
        "call": plan.call,
        "tries": plan.tries,
        "seed": plan.seed,
    }


def _label(question: SweepQuestion, target: str) -> str:
    return f"{question.op} {target} {question.device} {question.dtype}"


def _checked_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Further fields of a SweepPlan, each checked."""
    check: dict[str, Callable[[Any, str], Any]] = {
        "device": as_text,
        "chunk": as_count,
        "call": as_count,
        "tries": as_count,
        "seed": lambda value, name: as_count(value, name, least=0),
        "timeout": as_seconds,
    }
    if unknown := [name for name in fields if name not in check]:
        raise TypeError(f"A plan has no {quoted(unknown[0])}: {did_you_mean(unknown[0], check)}.")
    return {name: check[name](value, name) for name, value in fields.items()}


def _check_op(op: Op, range: str | None) -> None:
    if not (op.function or op.function_of_two):
        ops = registry.ops().items()
        names = [name for name, known in ops if known.function or known.function_of_two]
        raise ValueError(
            f"{op.name} is not a function of one number or two, so no sweep can try its inputs: "
            f"choose from {', '.join(names)}."
        )
    if op.function_of_two and range is not None:
        raise ValueError(
            f"--range is for functions of one number: {op.name} takes {' and '.join(op.inputs)}, "
            "whose pairs are searched everywhere; leave it out."
        )
