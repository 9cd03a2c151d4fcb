"""A sweep's directory: finished chunks are kept one by one, so that a killed sweep can go on."""

from pathlib import Path
from typing import Any

from refkernels.records.journal import Journal, Json, Words
from refkernels.runs.sweeps.tally import Tally

ENVIRONMENT = " environment"  # what the key of a framework's account of itself ends with
FINAL = (None, "ok", "unsupported")  # an environment has no status

RECORDS = "sweeps.jsonl"


class SweepJournal(Journal):
    """The directory of one sweep; `done` holds the results of finished chunks by their keys.

    Raises JournalError when it holds another sweep, or one that has not been asked to go on, or
    when it cannot be written.
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
        """Whether it is a chunk's result, or what a framework says of itself."""
        if key.endswith(ENVIRONMENT):
            return isinstance(result["environment"], dict) and isinstance(result["status"], str)
        Tally.from_json(result["tally"])  # raises where it is none
        return True

    def finish(self, records: list[Json]) -> Path:
        """Write the records and drop the journal; where something failed, it stays: --resume asks
        for that again."""
        return self.write(records, keep=any(one.get("status") not in FINAL for one in records))
