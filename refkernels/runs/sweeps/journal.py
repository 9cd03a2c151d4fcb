"""A sweep's directory: finished chunks are kept one by one, so that a killed sweep can resume."""

from pathlib import Path
from typing import Any

from refkernels.records.journal import Journal, Json, Words
from refkernels.runs.sweeps.tally import SweepTally

ENVIRONMENT = " environment"  # the end of the key of a framework's description
FINAL = (None, "ok", "unsupported")  # None: an environment record has no status

RECORDS = "sweeps.jsonl"


class SweepJournal(Journal):
    """The directory of one sweep; `done` holds the results of finished chunks by their keys.

    Raises JournalError if the directory holds another sweep, or this sweep although `resume` is
    False, or if it cannot be written.
    """

    words = Words(
        records=RECORDS,
        journal="sweep-journal.jsonl",
        manifest="sweep.json",
        work="sweep",
        done="swept",
        redo="sweep its chunk",
        piece="chunk",
        result="result",
    )

    @staticmethod
    def sound(key: str, result: Any) -> bool:
        """Whether it is a chunk's result or a framework's description."""
        if key.endswith(ENVIRONMENT):
            return isinstance(result["environment"], dict) and isinstance(result["status"], str)
        SweepTally.from_json(result["tally"])  # raises for anything else
        return True

    def finish(self, records: list[Json]) -> Path:
        """Write the records and delete the journal. If something failed, an empty journal stays, so
        that --resume tries it again."""
        return self.write(records, keep=any(r.get("status") not in FINAL for r in records))
