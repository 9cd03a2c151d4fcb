"""The schema of records, checked before a view reads a record: `schema.json`, as JSON Schema.

Fields that it does not name may hold anything. A field that may be absent may be null too. The
definition "common" has the fields that a record of any kind but "environment" may have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from refkernels.records.checks import Schema

# Text by definition: a decimal "nan" is what the report must print, not compute with.
TEXTS = frozenset((
    "kind", "status", "reason", "op", "direction", "output", "framework", "version", "device",
    "dtype", "environment", "name", "regime", "verdict", "digest", "decimal", "exact", "hex",
    "radius", "property", "detail", "a", "b", "platform", "cpu", "id", "cause", "confidence",
    "form", "state", "layer", "emulated", "case", "model", "script", "method", "statement",
    "source", "limit_source",
))  # fmt: skip
TEXT = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
"""The schema of a line of records.jsonl or sweeps.jsonl, as JSON Schema (2020-12)."""
DOCUMENT: dict[str, Any] = json.loads(TEXT)
# A reader has replaced the words for infinities and NaN, so that a figure is a number.
_SCHEMA = Schema(DOCUMENT, {"figure": {"type": "number"}})
_KINDS = frozenset(part["if"]["properties"]["kind"]["const"] for part in DOCUMENT["allOf"])


def complaint(record: Mapping[str, Any]) -> str | None:
    """What is wrong with a record; None if it is valid. A record of an unknown kind passes: the
    views count such records."""
    kind = str(record["kind"])
    if kind not in _KINDS:
        return None
    return _SCHEMA.complaint(_SCHEMA.rule(kind), record) or _miscounted(record)


def valid(records: Iterable[Mapping[str, Any]]) -> bool:
    """Whether no record has a complaint: one check of all is faster than one of each."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        by_kind.setdefault(str(record["kind"]), []).append(record)
    return all(
        _SCHEMA.passes(_SCHEMA.rule(kind), alike) and not any(map(_miscounted, alike))
        for kind, alike in by_kind.items()
        if kind in _KINDS
    )


def _miscounted(record: Mapping[str, Any]) -> str | None:
    """The one rule that JSON Schema cannot express, of sweeps with inputs."""
    if record["kind"] != "sweep" or not (record.get("counts") or {}).get("inputs"):
        return None
    if any((binade.get("correct") or 0) > binade["inputs"] for binade in record["binades"]):
        return "binades.correct.must not exceed the inputs"
    return None
