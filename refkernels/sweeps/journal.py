"""A sweep's directory: finished chunks are kept one by one, so that a killed sweep can go on."""

import json
from pathlib import Path
from typing import Any

from refkernels import journal
from refkernels.journal import Json

RECORDS = "sweeps.jsonl"


class JournalError(Exception):
    """The sweep's directory cannot be used as asked; the message says why and what to do."""


def to_json(value: Any) -> str:
    """Strict JSON on one line; a tally holds no infinities and no NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Journal(journal.Journal):
    """The directory of one sweep; `done` holds the results of finished chunks by their keys.

    Raises JournalError when it holds another sweep, or one that has not been asked to go on, or
    when it cannot be written.
    """

    words = journal.Words(
        records=RECORDS,
        journal="sweep-journal.jsonl",
        manifest="sweep.json",
        work="sweep",
        done="swept",
        redo="sweep its chunk",
        piece="chunk",
        result="result",
    )
    error = JournalError
    encode = staticmethod(to_json)

    def finish(self, records: list[Json]) -> Path:
        """Write the records and drop the journal."""
        return self.write(records)
