"""A sweep's directory: finished chunks are kept one by one, so that a killed sweep can go on.

While it runs, `sweep-journal.jsonl` gets one line a chunk, with its tally, whole or not at all;
when it ends, `sweeps.jsonl` is written aside and renamed, and the journal goes. `sweep.json` says
what was asked, so that a sweep is never continued with another question.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDS = "sweeps.jsonl"
_JOURNAL = "sweep-journal.jsonl"
_MANIFEST = "sweep.json"

Json = dict[str, Any]


class JournalError(Exception):
    """The sweep's directory cannot be used as asked; the message says why and what to do."""


class Journal:
    """The directory of one sweep; `done` holds the results of finished chunks by their keys.

    Raises JournalError when it holds another sweep, or one that has not been asked to go on, or
    when it cannot be written.
    """

    def __init__(self, directory: Path, question: Json, resume: bool) -> None:
        self.directory = directory
        self.done: dict[str, Json] = {}
        with self._writing("choose another --out"):
            directory.mkdir(parents=True, exist_ok=True)
            self._open(question, resume)

    @property
    def complete(self) -> bool:
        """Whether the sweep has ended before."""
        return (self.directory / RECORDS).exists()

    def add(self, key: str, result: Json) -> None:
        """Keep a result: one line, on the disk before this returns."""
        line = to_json({"chunk": key, "result": result}) + "\n"
        with (
            self._writing("make room, then add --resume to go on"),
            (self.directory / _JOURNAL).open("a", encoding="utf-8") as file,
        ):
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.done[key] = result

    def finish(self, records: list[Json]) -> Path:
        """Write the records and drop the journal."""
        path = self.directory / RECORDS
        with self._writing("make room, then add --resume to go on"):
            write_whole(path, "".join(to_json(record) + "\n" for record in records))
            (self.directory / _JOURNAL).unlink(missing_ok=True)
        return path

    def records(self) -> list[Json]:
        """The records of an ended sweep."""
        with (self.directory / RECORDS).open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    @contextlib.contextmanager
    def _writing(self, cure: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JournalError(
                f"{self.directory} cannot be written ({error.strerror}): {cure}."
            ) from None

    def _open(self, question: Json, resume: bool) -> None:
        used = self.complete or (self.directory / _JOURNAL).exists()
        if used and not resume:
            raise JournalError(
                f"{self.directory} already holds a sweep: add --resume to go on with it, or choose "
                "another --out."
            )
        if used:
            self._check(self.directory / _MANIFEST, question)
            self._read()
        else:
            write_whole(self.directory / _MANIFEST, to_json(question) + "\n")

    def _check(self, manifest: Path, question: Json) -> None:
        try:
            before = json.loads(manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise JournalError(
                f"{manifest} is missing or damaged, so nobody can tell what was swept there: "
                "choose another --out."
            ) from None
        asked = json.loads(to_json(question))
        for key in asked:
            if before.get(key) != asked[key]:
                raise JournalError(
                    f"{self.directory} holds a sweep with {key} = {before.get(key)!r}, not "
                    f"{asked[key]!r}: resume with the same question, or choose another --out."
                )

    def _read(self) -> None:
        """A last line cut short by a kill is dropped; a damaged one before it is an error."""
        path = self.directory / _JOURNAL
        if not path.exists():
            return
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entry = json.loads(line)
                self.done[entry["chunk"]] = entry["result"]
            except (ValueError, KeyError, TypeError):
                raise JournalError(
                    f"{path}, line {number}, is damaged: delete that line to sweep its chunk "
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
        with contextlib.suppress(OSError):
            aside.unlink()


def to_json(value: Any) -> str:
    """Strict JSON on one line; a tally holds no infinities and no NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
