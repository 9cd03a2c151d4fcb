"""A run's directory: what is done is kept, unit by unit, so that a stopped run can go on.

While a run goes on, `journal.jsonl` gets one line a unit, whole or not at all; when it ends,
`records.jsonl` is written aside and renamed, and the journal goes. `run.json` says what was asked,
so that a run is never continued with another question.
"""

import contextlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

RECORDS = "records.jsonl"
_JOURNAL = "journal.jsonl"
_MANIFEST = "run.json"

Record = dict[str, Any]


class StoreError(Exception):
    """The run's directory cannot be used as asked; the message says why and what to do."""


class Store:
    """The directory of one run. Raises StoreError when it holds another run, or one that has not
    been asked to go on, or when it cannot be written."""

    def __init__(self, directory: Path, question: dict[str, Any], resume: bool) -> None:
        self.directory = directory
        self.done: dict[str, list[Record]] = {}
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{directory} cannot be made a folder ({error.strerror}): choose another --out."
            ) from None
        with self._writing("choose another --out"):
            self._open(question, resume)

    @property
    def complete(self) -> bool:
        """Whether the run has ended before."""
        return (self.directory / RECORDS).exists()

    def add(self, unit: str, records: Sequence[Record]) -> None:
        """Keep a finished unit: one line, on the disk before this returns."""
        line = to_json({"unit": unit, "records": list(records)}) + "\n"
        with (
            self._writing("make room, then add --resume to go on"),
            (self.directory / _JOURNAL).open("a", encoding="utf-8") as journal,
        ):
            journal.write(line)
            journal.flush()
            os.fsync(journal.fileno())
        self.done[unit] = list(records)

    def finish(self, units: Iterable[str]) -> Path:
        """Write the records of all units, in that order, and drop the journal."""
        path = self.directory / RECORDS
        lines = [to_json(record) + "\n" for unit in units for record in self.done[unit]]
        with self._writing("make room, then add --resume to go on"):
            write_whole(path, "".join(lines))
            (self.directory / _JOURNAL).unlink(missing_ok=True)
        return path

    def records(self) -> list[Record]:
        """The records of an ended run."""
        with (self.directory / RECORDS).open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    @contextlib.contextmanager
    def _writing(self, cure: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self.directory} cannot be written ({error.strerror}): {cure}."
            ) from None

    def _open(self, question: dict[str, Any], resume: bool) -> None:
        manifest = self.directory / _MANIFEST
        used = self.complete or (self.directory / _JOURNAL).exists()
        if used and not resume:
            raise StoreError(
                f"{self.directory} already holds a run: add --resume to go on with it, or choose "
                "another --out."
            )
        if used:
            self._check(manifest, question)
            self._read_journal()
        else:
            write_whole(manifest, to_json(question) + "\n")

    def _check(self, manifest: Path, question: dict[str, Any]) -> None:
        try:
            before = json.loads(manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise StoreError(
                f"{manifest} is missing or damaged, so nobody can tell what was measured there: "
                "choose another --out."
            ) from None
        asked = json.loads(to_json(question))
        different = [key for key in asked if before.get(key) != asked[key]]
        if different:
            key = different[0]
            raise StoreError(
                f"{self.directory} holds a run with {key} = {before.get(key)!r}, not "
                f"{asked[key]!r}: resume with the same question, or choose another --out."
            )

    def _read_journal(self) -> None:
        """A last line cut short by a kill is dropped; a damaged one before it is an error."""
        path = self.directory / _JOURNAL
        if not path.exists():
            return
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entry = json.loads(line)
                self.done[entry["unit"]] = entry["records"]
            except (ValueError, KeyError, TypeError):
                raise StoreError(
                    f"{path}, line {number}, is damaged: delete that line to measure its unit "
                    "again, or choose another --out."
                ) from None
        if len(whole) < len(content):
            os.truncate(path, len(whole))


def write_whole(path: Path, text: str) -> None:
    """Write a file aside and rename it: readers see the old one or the new one, never a part."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    finally:
        with contextlib.suppress(OSError):  # what went wrong before is the news
            aside.unlink()


def to_json(value: Any) -> str:
    """Strict JSON: what is not finite is written as "inf", "-inf" or "nan"."""
    return json.dumps(_strict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return value
