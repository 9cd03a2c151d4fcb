"""A folder of work in pieces. Finished pieces are kept, so that the work can be resumed.

During the work the journal gets one line per piece, whole or not at all: a kill loses no finished
piece, a power cut at most those of the last second. At the end the records are written to a
temporary file, which is renamed, and the journal is deleted. A manifest holds the question, so that
work is never resumed with another one.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refkernels.records import codec
from refkernels.records.collector import without_collector
from refkernels.records.files import compressed, exists, read_whole, write_whole

Json = dict[str, Any]
_NAMES_SHOWN = 8  # of a list in a message
_SYNC_SECONDS = 1.0  # between syncs: one may take as long as a small piece of work


@dataclass(frozen=True)
class Words:
    """The words for a kind of work: its file names, and its words in messages ("a run", "what was
    measured", "to measure its unit again"). `piece` and `result` are the keys in a journal line."""

    records: str
    journal: str
    manifest: str
    work: str
    done: str
    redo: str
    piece: str
    result: str


class JournalError(Exception):
    """The folder cannot be used in this way; the message says why and what to do."""


class Journal:
    """The folder of one run of work; `done` holds the result of each finished piece by its key.

    A subclass is one kind of work: it gives the `words` and checks a piece's result. Raises
    JournalError if the folder holds other work, or this work although `resume` is False, if a line
    in it is damaged (the message names the line), and if it cannot be written.
    """

    words: Words
    sound: Callable[[str, Any], bool]
    """Whether the piece with this key may have this result; finds edited lines on reading."""

    def __init__(self, directory: Path, question: Json, resume: bool) -> None:
        self.directory = directory
        self.done: dict[str, Any] = {}
        self._synced = -_SYNC_SECONDS
        with self._writing("choose another --out", "created as a folder"):
            directory.mkdir(parents=True, exist_ok=True)
        with self._writing("choose another --out"):
            self._open(question, resume)

    @property
    def complete(self) -> bool:
        """Whether an earlier call finished the work, so that nothing is left to do."""
        ended = exists(self.directory / self.words.records)
        return ended and not (self.directory / self.words.journal).exists()

    def add(self, key: str, result: Any) -> None:
        """Keep a finished piece: one line, written before this returns."""
        line = codec.dumps({self.words.piece: key, self.words.result: result}) + "\n"
        with (
            self._writing("make room, then add --resume to continue"),
            (self.directory / self.words.journal).open("a", encoding="utf-8") as file,
        ):
            file.write(line)
            file.flush()
            if time.monotonic() >= self._synced + _SYNC_SECONDS:
                os.fsync(file.fileno())
                self._synced = time.monotonic()
        self.done[key] = result

    def write(self, records: Iterable[Json], keep: bool = False) -> Path:
        """Write the records and delete the journal; `keep` an empty one if --resume can still add
        something."""
        path = self.directory / self.words.records
        with self._writing("make room, then add --resume to continue"):
            write_whole(path, "".join(codec.dumps(record) + "\n" for record in records))
            with path.open("r+b") as file:
                os.fsync(file.fileno())
            journal = self.directory / self.words.journal
            journal.touch() if keep else journal.unlink(missing_ok=True)
            compressed(path).unlink(missing_ok=True)  # of an earlier call
        return path

    def records(self) -> list[Json]:
        """The records of finished work."""
        path = self.directory / self.words.records
        records = []
        lines = self._content(path).splitlines()
        with without_collector(len(lines)):
            for number, line in enumerate(lines, start=1):
                try:
                    record = codec.loads(line.decode())
                except ValueError:
                    record = None
                if not isinstance(record, dict):
                    raise self._damaged(path, number)
                records.append(record)
        return records

    @contextlib.contextmanager
    def _writing(self, fix: str, what: str = "written") -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JournalError(
                f"{self.directory} cannot be {what} ({error.strerror}): {fix}."
            ) from None

    def _open(self, question: Json, resume: bool) -> None:
        files = (self.words.records, self.words.journal)
        used = any(exists(self.directory / name) for name in files)
        if used and not resume:
            raise JournalError(
                f"{self.directory} already holds a {self.words.work}: add --resume to "
                "continue it, or choose another --out."
            )
        if used:
            self._check(self.directory / self.words.manifest, question)
            self._read()
        else:
            write_whole(self.directory / self.words.manifest, codec.dumps(question) + "\n")

    def _check(self, manifest: Path, question: Json) -> None:
        try:
            stored = codec.loads(manifest.read_text(encoding="utf-8"))
            if not isinstance(stored, dict):
                raise ValueError("it is not an object")
        except (OSError, ValueError):
            raise JournalError(
                f"{manifest} is missing or damaged, so it is unknown what was "
                f"{self.words.done} there: choose another --out."
            ) from None
        asked = codec.loads(codec.dumps(question))
        for key in asked:
            if stored.get(key) != asked[key]:
                raise JournalError(
                    f"{self.directory} holds a {self.words.work} with {key} = "
                    f"{_difference(stored.get(key), asked[key])}: resume with the same question, "
                    "or choose another --out."
                )

    def _read(self) -> None:
        """Read the journal. A last line that a kill cut short is dropped; an earlier damaged line
        is an error."""
        path = self.directory / self.words.journal
        if not path.exists():
            return
        content = self._content(path)
        complete_lines = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(complete_lines.splitlines(), start=1):
            try:
                entry = codec.loads(line.decode())
                key, result = entry[self.words.piece], entry[self.words.result]
                sound = isinstance(key, str) and type(self).sound(key, result)
            except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
                sound = False
            if not sound:
                raise self._damaged(path, number)
            self.done[key] = result
        if len(complete_lines) < len(content):
            os.truncate(path, len(complete_lines))

    def _content(self, path: Path) -> bytes:
        try:
            return read_whole(path)
        except ValueError as error:
            raise JournalError(f"{error} Choose another --out.") from None
        except OSError as error:
            raise JournalError(
                f"{path} cannot be read ({error.strerror}): choose another --out."
            ) from None

    def _damaged(self, path: Path, number: int) -> Exception:
        return JournalError(
            f"{path}, line {number}, is damaged: delete that line to {self.words.redo} again, or "
            "choose another --out."
        )


def _difference(stored: Any, asked: Any) -> str:
    """What is stored and what is asked instead; of long lists only their sizes and the first
    difference, as a run has thousands of units."""
    if not (isinstance(stored, list) and isinstance(asked, list)):
        return f"{stored!r}, not {asked!r}"
    if max(len(stored), len(asked)) <= _NAMES_SHOWN:
        return f"{stored!r}, not {asked!r}"
    known, wanted = set(map(str, stored)), set(map(str, asked))
    gone = next((name for name in map(str, stored) if name not in wanted), None)
    new = next((name for name in map(str, asked) if name not in known), None)
    which = [f"{gone!r} is not asked"] if gone else []
    which += [f"{new!r} is new"] if new else []
    order = " and ".join(which) or "their order differs"
    return f"a list of {len(stored):,}, not this one of {len(asked):,} ({order})"
