"""measure(): the whole run, from frameworks and a plan to records.jsonl."""

import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import refkernels
from refkernels.arguments import (
    as_flag,
    as_function,
    as_names,
    as_path,
    as_seconds,
    as_settings,
)
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.scalars import as_count
from refkernels.frameworks import catalog
from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.gateway import Session, split_settings
from refkernels.records.files import stored
from refkernels.records.journal import JournalError
from refkernels.runs.measurement.dispatcher import AskedUnit, Dispatcher, in_advance
from refkernels.runs.measurement.invariance import ThreadedTargets, ask_invariance
from refkernels.runs.measurement.journal import ENVIRONMENTS, MeasurementJournal, unit_of
from refkernels.runs.measurement.judges import UNITS_EACH, Judges
from refkernels.runs.measurement.plan import Plan, Unit
from refkernels.runs.measurement.targets import Target, abandon, close_all, opened, targets_of
from refkernels.runs.measurement.unit import Record, ask_unit
from refkernels.runs.progress import Progress
from refkernels.target_names import merged

FRAMEWORKS = ("torch", "paddle", "oneflow", "mindspore", "numpy")
FIRST_TABLE_SECONDS = 15.0  # from the frameworks' start; later if one op takes longer
FAULTS = ("import_error", "error", "wrong_shape", "killed", "timeout", "oom")
Call = Callable[..., Callable[[], Any]]
"""`Judges.call`: starts function(*arguments); what it returns waits for the result."""
Afterwards = Callable[[list[Record], Sequence[Target], Call], Iterable[Record]]


@dataclass(frozen=True)
class RunOutcome:
    """The result of a run: its records, their path, how many of them record a fault, and the
    frameworks that are not installed."""

    records: list[Record]
    path: Path
    faults: int
    missing: tuple[str, ...]


@with_default_fenv
def measure(
    plan: Plan,
    directory: Path,
    *,
    frameworks: Sequence[str] = FRAMEWORKS,
    devices: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    resume: bool = False,
    timeout: float = 120.0,
    judges: int = 1,
    progress: Callable[[Progress], None] = lambda _: None,
    on_first_results: Callable[[list[Record]], None] = lambda _: None,
    afterwards: Afterwards = lambda *_: (),
    reopen: bool = False,
) -> RunOutcome:
    """Measure every unit of the plan on every framework; write `directory`/records.jsonl.

    A run may be stopped at any moment; called again with `resume=True`, it does not repeat finished
    units. What a framework did when it was asked, even a crash, is its final answer; a unit is
    measured again only if a framework that had not started (not installed, killed, out of time)
    starts now. `frameworks` are names of targets (`target_names`), each perhaps with its own
    settings and its own device; `devices` applies to those that name no device. `settings` are
    environment variables and framework flags for all, and part of every record. `timeout` limits
    the seconds that a framework may take for one answer. `judges`: the largest number of processes
    that judge; 1 means this process. A script that asks for more must guard its `__main__`.
    `on_first_results` gets the records of one case of each op, or, after a while, of as many ops as
    have been answered, if others will follow. `afterwards` gets all records, the targets, which
    still answer, and `Judges.call`, which runs a function in a judge's process; it returns further
    records, the explanations. With `reopen` the frameworks of a finished run are started for
    `afterwards` alone. Raises JournalError if the directory holds another run, FrameworkError for a
    name, flag or device that no framework has and for a kernel that cannot be loaded, and TypeError
    or ValueError for an argument that is not a plan, folder, list of names, number of seconds or
    number of judges."""
    if not isinstance(plan, Plan):
        raise TypeError(f"plan is of type {type(plan).__name__}: `select` makes one.")
    directory, devices = as_path(directory, "directory"), as_names(devices, "devices")
    setting_values, timeout = as_settings(settings), as_seconds(timeout, "timeout")
    judges = as_count(judges, "judges")
    progress, afterwards = as_function(progress, "progress"), as_function(afterwards, "afterwards")
    on_first_results = as_function(on_first_results, "on_first_results")
    names = as_names(frameworks, "frameworks")
    frameworks, devices_of = _requested(names, devices, setting_values)
    question = _question(plan, frameworks, devices, setting_values)
    journal = MeasurementJournal(directory, question, as_flag(resume, "resume"))
    reopen = as_flag(reopen, "reopen")
    keys = (ENVIRONMENTS, *(unit.key for unit in plan.units))
    if journal.complete and not reopen and not any(map(journal.waiting, keys)):
        return _outcome(journal.records(), stored(directory / "records.jsonl"))
    finished = sum(not journal.waiting(unit.key) for unit in plan.units)
    progress(Progress("starting the frameworks", finished, len(plan.units)))
    worthwhile = judges if reopen else max(1, (len(plan.units) - finished) // UNITS_EACH)
    with Judges(min(judges, worthwhile)) as pool:
        sessions = opened(devices_of, setting_values, timeout)
        try:
            _refuse_broken_kernels(sessions.values())
            targets, environments = targets_of(sessions, devices_of)
            _keep_environments(journal, environments, plan)
            started = {name for name, session in sessions.items() if session.status == "ok"}
            tell = progress, on_first_results
            _measure_units(plan, targets, pool, journal, started, timeout, *tell)
            _explain(targets, pool, journal, afterwards)
        finally:
            close_all(sessions.values())
    path = journal.finish(dict.fromkeys((*keys, *journal.done)))
    return _outcome(journal.records(), path)


def _requested(
    names: Sequence[str], devices: Sequence[str], settings: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The names as the grammar prints them, each once; and for each name without its device, the
    requested devices (empty: all). Raises FrameworkError for a name or flag that no framework
    has."""
    devices_of: dict[str, tuple[str, ...]] = {}
    targets = {}
    for spec, name in map(catalog.target, names):
        split_settings(spec.framework, merged(settings, name))
        targets[str(name)] = name
    for name in targets.values():
        requested = (name.device,) if name.device else tuple(devices)
        earlier = devices_of.get(str(name.anywhere))
        all_devices = not requested or earlier == ()
        devices_of[str(name.anywhere)] = (
            () if all_devices else tuple(dict.fromkeys((*(earlier or ()), *requested)))
        )
    return tuple(targets), devices_of


def _refuse_broken_kernels(sessions: Iterable[Session]) -> None:
    """Raise FrameworkError, with the reason, if a kernel could not be loaded: without the user's
    own kernel the question has no meaning."""
    for session in sessions:
        if session.spec.framework.kernel is not None and session.status != "ok":
            raise FrameworkError(str(session.reason))


def _measure_units(
    plan: Plan,
    targets: Sequence[Target],
    judges: Judges,
    journal: MeasurementJournal,
    started: Collection[str],
    timeout: float,
    progress: Callable[[Progress], None],
    on_first_results: Callable[[list[Record]], None],
) -> None:
    open_units = [unit for unit in plan.order if journal.waiting(unit.key, started)]
    done = len(plan.units) - len(open_units)
    first = {unit.key for unit in plan.first}
    shown = len(first) == len(plan.units)
    end = time.monotonic() + FIRST_TABLE_SECONDS
    threaded = ThreadedTargets(timeout)
    if any(unit.case is None for unit in open_units):
        threaded.begin(targets)
    try:
        with Dispatcher(targets) as dispatcher:
            try:
                questions = (_ask(unit, dispatcher, judges, threaded) for unit in open_units)
                for asked in in_advance(questions):
                    if not shown and (asked.unit.key not in first or time.monotonic() > end):
                        keys = (ENVIRONMENTS, *(key for key in journal.done if key in first))
                        records = [record for key in keys for record in journal.done[key]]
                        shown = any(map(_has_answer, records))
                        if shown:
                            on_first_results(records)
                    progress(Progress(asked.unit.key, done, len(plan.units)))
                    journal.add(asked.unit.key, asked.records())
                    done += 1
            except BaseException:
                judges.abandon()
                threaded.abandon()
                abandon(target.session for target in targets)
                raise
    finally:
        threaded.close()
    progress(Progress("", len(plan.units), len(plan.units)))


def _has_answer(record: Record) -> bool:
    return record["kind"] == "measurement" and record["status"] == "ok"


def _ask(
    unit: Unit, dispatcher: Dispatcher, judges: Judges, threaded: ThreadedTargets
) -> AskedUnit:
    if unit.case is None:
        return ask_invariance(unit, dispatcher, threaded)
    return ask_unit(unit, dispatcher, judges.judge)


def _explain(
    targets: Sequence[Target], judges: Judges, journal: MeasurementJournal, afterwards: Afterwards
) -> None:
    records = [record for of_unit in journal.done.values() for record in of_unit]
    try:
        for record in afterwards(records, targets, judges.call):
            key = unit_of(record)
            assert key is not None
            journal.add(key, [record])
    except BaseException:
        judges.abandon()
        abandon(target.session for target in targets)
        raise


def _keep_environments(journal: MeasurementJournal, records: list[Record], plan: Plan) -> None:
    """Record the environments. Raises JournalError if a framework's version is not the one with
    which the run began; a framework that had not started then may have started now."""
    units = sum(unit.case is not None for unit in plan.units)
    scope = {"units": units, "left_out": plan.left_out}
    records = [{**record, "host": _host(), "plan": scope} for record in records]
    before = journal.done.get(ENVIRONMENTS)
    if before is None:
        journal.add(ENVIRONMENTS, records)
        return
    old = {record.get("framework"): record.get("version") for record in before}
    new = {record["framework"]: record["version"] for record in records}
    for name in old:
        if old[name] != new.get(name):
            was, now = (versions.get(name) or "absent" for versions in (old, new))
            raise JournalError(
                f"When the run began, {name} was {was}, and now it is {now}: restore that version, "
                "or start a new run in another --out."
            )
    if late := [record for record in records if record["framework"] not in old]:
        journal.add(ENVIRONMENTS, [*before, *late])


def _question(
    plan: Plan, frameworks: Sequence[str], devices: Sequence[str], settings: dict[str, str]
) -> dict[str, Any]:
    """What must be unchanged for a run to resume, which includes the content of a kernel's file."""
    kernels = {name: catalog.target(name)[0].framework.kernel for name in frameworks}
    versions = {name: kernel["version"] for name, kernel in kernels.items() if kernel is not None}
    return {
        "refkernels": refkernels.__version__,
        "frameworks": list(frameworks),
        "devices": list(devices),
        "settings": settings,
        "full": plan.full,
        "units": [unit.key for unit in plan.units],
        **({"kernels": versions} if versions else {}),
    }


def _host() -> dict[str, Any]:
    return {
        "refkernels": refkernels.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
    }


def _outcome(records: list[Record], path: Path) -> RunOutcome:
    measured = [record for record in records if record.get("kind") != "explanation"]
    faults = sum(record.get("status") in FAULTS for record in measured)
    missing = {str(r.get("framework")) for r in records if r.get("status") == "not_installed"}
    return RunOutcome(records, path, faults, tuple(sorted(missing)))
