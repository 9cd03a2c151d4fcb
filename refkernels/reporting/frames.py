"""Records to compute with: `refkernels.load_records(DIR)`, and as a data frame."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refkernels.arguments import as_path
from refkernels.records.files import exists, write_whole
from refkernels.reporting.reading import Record, RecordsError, read_records

if TYPE_CHECKING:
    import pandas

FILES = ("records.jsonl", "sweeps.jsonl")


class Records(list[Record]):
    """The records of a run, in order. Each is a dict as docs/records.md describes it, except that
    infinities and NaN, which the file spells as words, are floats."""

    def __repr__(self) -> str:
        kinds = ", ".join(f"{number:,} of kind {kind}" for kind, number in self.kinds.items())
        return f"Records({kinds})"

    @property
    def kinds(self) -> dict[str, int]:
        """How many records there are of each kind."""
        return dict(Counter(record["kind"] for record in self))

    def of(self, kind: str = "measurement", **fields: Any) -> Records:
        """The records of one kind with these field values: of(op="sin", dtype="float32")."""
        wanted = {"kind": kind, **fields}.items()
        return Records(
            [record for record in self if all(record.get(name) == value for name, value in wanted)]
        )

    def to_frame(self, kind: str = "measurement") -> pandas.DataFrame:
        """The records of one kind as a pandas.DataFrame, one column per field: `ulp.max`,
        `case.name`.

        Lists, params and inputs, whose fields differ from record to record, are JSON strings.
        Raises ImportError (one sentence) if pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "to_frame needs pandas, which is not installed: pip install pandas."
            ) from None
        return pandas.DataFrame([dict(_flat(record)) for record in self.of(kind)])

    def to_parquet(self, path: str | os.PathLike[str], kind: str = "measurement") -> Path:
        """Write `to_frame(kind)` as a Parquet file, whole or not at all.

        Raises ImportError (one sentence) if pandas or pyarrow is not installed.
        """
        frame = self.to_frame(kind)
        try:
            content: bytes = frame.to_parquet(index=False)
        except ImportError:
            raise ImportError(
                "to_parquet needs pyarrow, which is not installed: pip install pyarrow."
            ) from None
        return write_whole(as_path(path, "path"), content)


def load_records(path: str | os.PathLike[str]) -> Records:
    """The records of a run that `refkernels measure --out DIR` wrote, or of a sweep.

    path    the folder, or one file of records in JSON lines; the files may be compressed (.gz)
    Raises ValueError (one sentence) if there are no records, or if a line is not a record (the
    message gives its number), and TypeError for anything but a path.
    """
    place = as_path(path, "path")
    if not os.path.isdir(place):  # whatever the name, such as one that is too long
        return Records(read_records(place))
    files = [place / name for name in FILES if exists(place / name)]
    if not files:
        raise RecordsError(
            f"{place} holds no records: give the folder of `refkernels measure --out DIR`."
        )
    return Records([record for file in files for record in read_records(file)])


_OPEN = ("params", "parameters", "settings", "inputs", "shapes", "thread_pools", "flags")


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of every field."""
    for name, value in record.items():
        if isinstance(value, list) or (isinstance(value, Mapping) and name in _OPEN):
            yield prefix + name, json.dumps(value)
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
