"""Reads records: strict JSON, one record per line. An error names the line.

The words for infinities and NaN become numbers again, except in fields that are text by
definition.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from refkernels.records import codec, schema
from refkernels.records.collector import without_collector
from refkernels.records.files import read_whole
from refkernels.records.texts import showable
from refkernels.records.words import SCHEMA
from refkernels.suggestion import path_shown

Record = dict[str, Any]

_CHUNK = 256  # records checked at a time, while the processor's caches still hold them
_ESCAPES = re.compile(r"\\[ubfr]")  # may encode a character that no page can show


class RecordsError(ValueError):
    """The records file cannot be read: one sentence with the line and a suggested fix."""


def read_records(path: Path) -> list[Record]:
    """All records of the JSON-lines file `path`, or of `path`.gz, in its order.

    Raises RecordsError (one sentence, with the line number) for a missing file, one that cannot be
    read, a damaged gzip file, bytes that are not UTF-8, a line that is not one JSON object, a line
    that is cut off, another schema, and a record that violates the schema of its kind. Blank lines
    are allowed.
    """
    try:
        text = read_whole(path).decode("utf-8")
    except FileNotFoundError:
        raise RecordsError(
            f"{path_shown(path)} does not exist: give the folder that "
            "`refkernels measure --out DIR` wrote."
        ) from None
    except OSError as fault:
        raise RecordsError(f"{path_shown(path)} cannot be read ({fault.strerror}).") from None
    except UnicodeDecodeError as fault:
        broken = fault.object.count(b"\n", 0, fault.start) + 1
        raise RecordsError(
            f"{path_shown(path)}, line {broken}: not UTF-8 text, so this is not a records file."
        ) from None
    except ValueError as fault:
        raise RecordsError(str(fault)) from None
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    cut = len(lines) if not text.endswith("\n") else 0
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    # One search of the whole text costs less than one search per line.
    harmless, plain = not codec.suspicious(text), _is_plain(text.replace("\n", " "))
    records: list[Record] = []
    with without_collector(len(numbered)):
        for begin in range(0, len(numbered), _CHUNK):
            chunk: list[Record] = []
            try:
                for number, line in numbered[begin : begin + _CHUNK]:
                    where = f"{path}, line {number}"
                    chunk.append(_parse(line, where, number == cut, harmless, plain))
            finally:  # the error names the first faulty line, whatever its fault
                if not schema.valid(chunk):
                    for (number, _), record in zip(numbered[begin:], chunk, strict=False):
                        _check(record, f"{path}, line {number}")
            records += chunk
    return records


def _is_plain(text: str) -> bool:
    """Whether every character of the text can be shown on a page."""
    return text.isascii() and text.isprintable() and not _ESCAPES.search(text)


def _parse(line: str, where: str, last: bool, harmless: bool, plain: bool) -> Record:
    try:
        record = codec.loads(line, harmless=harmless)
        if codec.holds_words(line):  # few lines do; the others need no walk through their fields
            record = codec.restored(record, schema.TEXTS)
        if not (plain or _is_plain(line)) and (_ESCAPES.search(line) or showable(line) != line):
            record = _shown(record)
    except RecursionError:
        raise RecordsError(f"{where}: it is nested too deeply; delete or mend it.") from None
    except ValueError as fault:
        if last:
            raise RecordsError(
                f"{where}: the line is cut off, as when a run is stopped while it writes; "
                "give the run's command again with --resume, or delete this line."
            ) from None
        raise RecordsError(f"{where}: not valid JSON ({fault}); delete or mend it.") from None
    if not isinstance(record, dict):
        raise RecordsError(f"{where}: a record must be a JSON object, this is {_kind_of(record)}.")
    if record.get("schema") != SCHEMA:
        raise RecordsError(
            f"{where}: schema {record.get('schema')!r} is not the schema {SCHEMA} that this "
            "version reads; make the report with the version of refkernels that measured."
        )
    if not isinstance(record.get("kind"), str):
        raise RecordsError(f"{where}: the record has no kind.")
    return record


def _check(record: Record, where: str) -> None:
    if complaint := schema.complaint(record):
        field, _, rule = complaint.rpartition(".")
        raise RecordsError(f"{where}: in a record of kind {record['kind']!r} {field!r} {rule}.")


def _shown(value: Any) -> Any:
    """The value with every string made showable."""
    if isinstance(value, dict):
        return {showable(key): _shown(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shown(inner) for inner in value]
    return showable(value) if isinstance(value, str) else value


def _kind_of(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
