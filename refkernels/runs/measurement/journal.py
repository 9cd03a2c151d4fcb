"""A run's directory: finished units are kept one by one, so that a stopped run can resume."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from refkernels.records.files import exists
from refkernels.records.journal import Journal, Words

RECORDS = "records.jsonl"
ENVIRONMENTS = "environments"  # the key of the environment records

Record = dict[str, Any]


def unit_of(record: Record) -> str | None:
    """The key of the unit (`plan.Unit`) that a record belongs to; None for other records."""
    kind, case = record.get("kind"), record.get("case")
    if kind == "environment":
        return ENVIRONMENTS
    if kind == "invariance":
        case = f"{record.get('op')}/invariance"
    elif isinstance(case, dict):
        case = case.get("name")
    place = f"{case} {record.get('dtype')} {record.get('direction')}"
    if kind == "explanation":
        return f"explained {record.get('framework')} {record.get('device')} {place}"
    return place if kind in ("measurement", "agreement", "invariance") else None


class MeasurementJournal(Journal):
    """The directory of one run; `done` holds the records of finished units.

    Raises JournalError if the directory holds another run, or this run although `resume` is False,
    or if it cannot be written.
    """

    words = Words(
        records=RECORDS,
        journal="journal.jsonl",
        manifest="run.json",
        work="run",
        done="measured",
        redo="measure its unit",
        piece="unit",
        result="records",
    )

    @staticmethod
    def sound(key: str, result: Any) -> bool:
        """Whether it is a list of records."""
        return isinstance(result, list) and all(isinstance(record, dict) for record in result)

    def waiting(self, key: str, started: Collection[str] | None = None) -> bool:
        """Whether a unit is still to be measured: it has no records, or a framework had not started
        when it was asked. Only a framework in `started` is worth asking again (None: any)."""
        return key not in self.done or any(
            record.get("started") is False
            and (started is None or record.get("framework") in started)
            for record in self.done[key]
        )

    def _read(self) -> None:
        """Read the units of a finished run from its records, then those in the journal."""
        path = self.directory / RECORDS
        for number, record in enumerate(self.records() if exists(path) else (), start=1):
            key = unit_of(record)
            if key is None:
                raise self._damaged(path, number)
            self.done.setdefault(key, []).append(record)
        super()._read()

    def finish(self, units: Iterable[str]) -> Path:
        """Write the records of all units, in that order, and drop the journal."""
        return self.write(record for unit in units for record in self.done[unit])
