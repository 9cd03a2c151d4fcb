"""The sweeps that a folder keeps: what is missing there, and each function added when it is done.

A function is swept in a folder of its own, FOLDER/sweeping/VERSION-QUESTION/OP, so that a stopped
sweep resumes, whatever is asked in between. When it is done, its records join FOLDER/sweeps.jsonl,
or the .gz that stands for it. What is there is not asked again, whichever version of torch gave it:
the records name their versions.
"""

import hashlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import refkernels
from refkernels.arithmetic import formats
from refkernels.cli.shared.progress import Log
from refkernels.records import codec
from refkernels.records.files import compress, compressed, exists, write_whole
from refkernels.reporting.reading import read_records
from refkernels.runs import sweeps
from refkernels.runs.progress import Progress
from refkernels.runs.sweeps import patterns
from refkernels.runs.sweeps.journal import FINAL, RECORDS, SweepJournal
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.run import SweepPlan, most_at_once

Json = dict[str, Any]
Missing = dict[str, tuple[str, ...]]  # the formats in which each function is not swept
WORK = "sweeping"


class KeptSweeps:
    """The sweeps of one framework in a folder. Raises RecordsError for a damaged file."""

    def __init__(self, folder: Path, framework: str = "torch") -> None:
        self.folder, self.framework = folder, framework
        path = folder / RECORDS
        self.records: list[Json] = read_records(path) if exists(path) else []

    @property
    def sweeps(self) -> list[Json]:
        """The records of this framework's sweeps."""
        return [r for r in self.records if (r["kind"], r["framework"]) == ("sweep", self.framework)]

    def missing(
        self,
        ops: Sequence[str],
        dtypes: Sequence[str],
        device: str,
        range: str | None = None,
        version: str = "",
    ) -> Missing:
        """The functions that are not swept on this device, in these formats, over this range. A
        device without a number, such as cuda, is any of its kind. What a version of the framework
        did not have is missing for another one. Raises RangeError."""
        missing = {}
        for op in ops:
            done = [
                record
                for record in self.sweeps
                if record["op"] == op
                and device in (record["device"], record["device"].split(":")[0])
                and (record["status"] == "ok" or _lacks(record, version))
            ]
            left = [dtype for dtype in dtypes if not any(_covers(r, dtype, range) for r in done)]
            if left:
                missing[op] = tuple(left)
        return missing

    def sweep(self, missing: Missing, device: str, version: str, range: str | None = None) -> bool:
        """Sweep what is missing; add each function when it is done. Returns whether all answered:
        a failure is kept as a record, and asked again by the next call. Raises JournalError and
        PoolError."""
        plans = {
            op: sweeps.plan([op], [f"{self.framework}:{device}"], dtypes, range=range)
            for op, dtypes in missing.items()
        }
        answered = True
        with _pool_of(max(map(most_at_once, plans.values()))) as pool:
            for number, (op, plan) in enumerate(plans.items(), start=1):
                _say(f"sweep {number} of {len(plans)}: {op} in {', '.join(plan.dtypes)}")
                place = self.folder / WORK / f"{version}-{_digest(plan)}" / op
                records = _swept(plan, place, pool)
                self._add(records)
                answered &= all(record.get("status") in FINAL for record in records)
                shutil.rmtree(place)
                for above in (place.parent, self.folder / WORK):
                    with suppress(OSError):  # it holds what else was stopped
                        above.rmdir()
        return answered

    def _add(self, new: Sequence[Json]) -> None:
        """Write the file with `new` in it, in the place of what it repeats."""
        by_key = {_key(record): record for record in (*self.records, *new)}
        used = {(r["framework"], r["version"]) for r in by_key.values() if r["kind"] == "sweep"}
        self.records = [r for r in by_key.values() if (r["framework"], r["version"]) in used]
        self.records.sort(key=lambda record: (record["kind"] != "sweep", record.get("op") or ""))
        path = self.folder / RECORDS
        packed = compressed(path).exists()
        (self.folder / SweepJournal.words.manifest).unlink(missing_ok=True)  # of `refkernels sweep`
        write_whole(path, "".join(codec.dumps(record) + "\n" for record in self.records))
        if packed:
            compress(path)


@contextmanager
def _pool_of(most: int) -> Iterator[sweeps.WorkerPool]:
    """Workers for all functions: starting torch on the device takes longer than sweeping one."""
    pool = _Standing()
    pool.width = min(pool.width, most)
    try:
        yield pool
    finally:
        pool.release()


class _Standing(sweeps.Processes):
    """Workers that outlive a sweep."""

    def close(self, at_once: bool = False) -> None:
        pass

    def limit(self, most: int) -> None:
        pass

    def release(self) -> None:
        super().close(at_once=True)


def _swept(plan: SweepPlan, place: Path, pool: sweeps.WorkerPool) -> list[Json]:
    with Log(_say, counted=lambda inputs: f"{inputs / 1e6:,.1f} M") as log:

        def show(progress: Progress) -> None:
            log.show(progress.done, progress.total, progress.unit)

        return sweeps.sweep(plan, place, resume=True, pool=pool, progress=show)


def _covers(record: Json, dtype: str, range: str | None) -> bool:
    """Whether a sweep has tried all these inputs."""
    if record["dtype"] != dtype:
        return False
    format = formats.get(dtype)
    asked = patterns.everything(format) if range is None else patterns.parse_range(range, format)
    tried = [Span(int(first, 16), int(last, 16) + 1) for first, last in record.get("ranges", ())]
    return record["status"] != "ok" or all(
        any(span.start <= wanted.start and wanted.stop <= span.stop for span in tried)
        for wanted in asked
    )


def _lacks(record: Json, version: str) -> bool:
    return record["status"] == "unsupported" and record["version"] == version


def _digest(plan: SweepPlan) -> str:
    """Of what a stopped sweep must have in common with one that resumes it."""
    question = (refkernels.__version__, plan.frameworks[0][1], plan.dtypes, plan.range)
    return hashlib.sha256(repr(question).encode()).hexdigest()[:8]


def _key(record: Json) -> tuple[Any, ...]:
    names = ("kind", "framework", "op", "device", "dtype")
    version = record["version"] if record["kind"] == "environment" else ""
    return (*(record.get(name) for name in names), version)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
