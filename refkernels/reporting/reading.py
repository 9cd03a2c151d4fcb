"""Reads records: strict JSON lines, one record a line, every fault named with its line.

Numbers that JSON cannot hold were written as the strings "inf", "-inf" and "nan"; they are
decoded here, outside the fields that are text by definition.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

SCHEMA = 1
Record = dict[str, Any]

_NON_FINITE = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
_WORDS = tuple(f'"{word}"' for word in _NON_FINITE)
# Text by definition: a decimal "nan" is what the report must print, not compute with.
_TEXT = frozenset(
    [
        "kind",
        "status",
        "reason",
        "op",
        "direction",
        "output",
        "framework",
        "version",
        "device",
        "dtype",
        "environment",
        "name",
        "regime",
        "verdict",
        "digest",
        "decimal",
        "exact",
        "hex",
        "radius",
        "property",
        "detail",
        "a",
        "b",
        "platform",
        "cpu",
        "id",
    ]
)
_MEASURED = ("op", "direction", "framework", "dtype")
_REQUIRED = {
    "measurement": _MEASURED,
    "agreement": ("op", "direction", "output", "dtype", "a", "b"),
    "invariance": ("op", "direction", "framework", "dtype", "property"),
    "sweep": _MEASURED,
    "environment": ("framework",),
}
_OBJECTS = (
    "counts",
    "ulp",
    "error",
    "bound",
    "plain",
    "condition",
    "worst",
    "settings",
    "oracle",
    "seconds",
)


class RecordsError(ValueError):
    """The records file cannot be read; the message is one sentence with the line and the cure."""


def read_records(path: Path) -> list[Record]:
    """All records of the JSON-lines file `path`, in its order.

    Raises RecordsError (one sentence, with the line number) for a missing file, bytes that are
    not UTF-8, a line that is not one JSON object, a line that is cut off, another schema, and a
    record that lacks what its kind needs. Blank lines are allowed.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise RecordsError(
            f"{path} does not exist: give the folder that `refkernels measure --out DIR` wrote to."
        ) from None
    except UnicodeDecodeError as fault:
        broken = fault.object.count(b"\n", 0, fault.start) + 1
        raise RecordsError(
            f"{path}, line {broken}: not UTF-8 text, so this is not a records file."
        ) from None
    ended = text.endswith("\n")
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    records = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            last = number == len(lines) and not ended
            records.append(_parse(line, f"{path}, line {number}", last))
    return records


def _parse(line: str, where: str, last: bool) -> Record:
    try:
        record = json.loads(line, parse_constant=_refuse_constant)
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
    _check(record, where)
    # Few lines hold one of the three words: the others need no walk through all their fields.
    if any(word in line for word in _WORDS):
        decoded: Record = _decode(record)
        return decoded
    return record


def _check(record: Record, where: str) -> None:
    kind = record.get("kind")
    if not isinstance(kind, str):
        raise RecordsError(f"{where}: the record has no kind.")
    for name in _REQUIRED.get(kind, ()):
        if not isinstance(record.get(name), str):
            raise RecordsError(f"{where}: a record of kind {kind!r} needs the text field {name!r}.")
    if kind == "measurement":
        if not isinstance(record.get("case"), dict):
            raise RecordsError(f"{where}: a measurement needs the object field 'case'.")
        for name in _OBJECTS:
            if not isinstance(record.get(name), dict | None):
                raise RecordsError(f"{where}: the field {name!r} must be an object or null.")
        for name in ("output", "verdict"):
            if record.get("status") == "ok" and not isinstance(record.get(name), str):
                raise RecordsError(f"{where}: a measurement with status 'ok' needs the {name}.")


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: inner if key in _TEXT and isinstance(inner, str) else _decode(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_decode(inner) for inner in value]
    if isinstance(value, str):
        return _NON_FINITE.get(value, value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"bare {name}, which strict JSON does not have")


def _kind_of(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
