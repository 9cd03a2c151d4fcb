"""The schema of records: types and ranges, field by field, checked before a view reads a record.

Fields that no table here names may hold anything. A field that may be absent may be null too.
`FIELDS` are the fields that a record of any kind but "environment" may have besides those of its
kind. `document` is the same schema as JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

from refkernels.records.checks import (
    FIGURE,
    AnyOf,
    Check,
    Each,
    Every,
    Filled,
    Name,
    Named,
    Pair,
    Shallow,
    Where,
    fields,
    integer,
    maybe,
    types,
)
from refkernels.records.words import CONFIDENCES, SCHEMA

# Text by definition: a decimal "nan" is what the report must print, not compute with.
TEXTS = frozenset((
    "kind", "status", "reason", "op", "direction", "output", "framework", "version", "device",
    "dtype", "environment", "name", "regime", "verdict", "digest", "decimal", "exact", "hex",
    "radius", "property", "detail", "a", "b", "platform", "cpu", "id", "cause", "confidence",
    "form", "state", "layer", "emulated", "case", "model", "script", "method", "statement",
    "source", "limit_source",
))  # fmt: skip
_LARGEST_EXPONENT = 1100  # float64's smallest subnormal is 2^-1074
_DEPTH = 4  # of an environment's fields


def complaint(record: Mapping[str, Any]) -> str | None:
    """What is wrong with a record; None if it is valid. A record of an unknown kind passes: the
    views count such records."""
    check = _KINDS.get(str(record["kind"]))
    if check is None:
        return None
    return check(record) or (None if check is _ENVIRONMENT else _COMMON(record))


def valid(records: Iterable[Mapping[str, Any]]) -> bool:
    """Whether no record has a complaint: one check of all is faster than one of each."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        by_kind.setdefault(str(record["kind"]), []).append(record)
    return all(
        check.passes(by_kind.get(kind, ()))
        and (check is _ENVIRONMENT or _COMMON.passes(by_kind.get(kind, ())))
        for kind, check in _KINDS.items()
    )


def document() -> dict[str, Any]:
    """The schema of a line of records.jsonl or sweeps.jsonl, as JSON Schema (2020-12)."""
    common = _COMMON.rule()
    for name, field in FIELDS.items():
        common["properties"][name] = {"description": field.meaning, **common["properties"][name]}
    kinds = {
        kind: check.rule()
        if check is _ENVIRONMENT
        else {"allOf": [check.rule(), {"$ref": "#/$defs/common"}]}
        for kind, check in _KINDS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:refkernels:record:{SCHEMA}",
        "title": f"A line of records.jsonl or sweeps.jsonl, schema {SCHEMA}",
        "description": "Fields that are not named here may hold anything, and a record of another "
        "kind may be any object.",
        "type": "object",
        "required": ["schema", "kind"],
        "properties": {"schema": {"const": SCHEMA}, "kind": {"type": "string"}},
        "allOf": [
            {"if": {"properties": {"kind": {"const": kind}}}, "then": {"$ref": f"#/$defs/{kind}"}}
            for kind in _KINDS
        ],
        "$defs": {
            FIGURE.rpartition("/")[2]: {
                "description": "A number, or the word for one that JSON cannot write.",
                "anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}],
            },
            "common": common,
            **kinds,
        },
    }


TEXT = types("a text", str)
NAME = Name()
NUMBER = types("a number", int, float)
COUNT = integer("a count", 0, 2**63 - 1)
TRUTH = types("true or false", bool)
SCALAR = types("a text or a number", str, int, float, bool, NoneType)
SHALLOW = Shallow(_DEPTH)


@dataclass(frozen=True)
class Field:
    """What a field of a record may hold, and what it means."""

    check: Check
    meaning: str


_EVIDENCE = fields(
    {"cause": NAME, "bits": NUMBER, "units": COUNT},
    {
        "confidence": AnyOf(CONFIDENCES),
        "needed": COUNT,
        "survivors": Each(NAME),
    },
)
FIELDS: Mapping[str, Field] = {
    "evidence": Field(
        _EVIDENCE,
        "The evidence for a cause: cause; bits, less the cost of the hypothesis; units, the "
        "observations behind the bits; confidence, the word for that many bits; needed, how many "
        "units would make it matched; survivors, the causes that these observations do not "
        "distinguish.",
    ),
    "form": Field(
        NAME,
        "The form of the op, by its name in the op: in a measurement the form whose bound permits "
        "the error, in a model the form that it computes.",
    ),
    "state": Field(
        NAME,
        "The state that the output holds, for an op that has states besides outputs: exp_avg in an "
        "optimizer, running_mean in a normalisation.",
    ),
    "step": Field(COUNT, "The step of a training run, counted from 0."),
    "rank": Field(COUNT, "The process of a distributed run, counted from 0."),
    "layer": Field(
        NAME, "The module of a model, by its path: encoder.layers.3.norm1. A single op has none."
    ),
    "emulated": Field(
        NAME,
        "What emulates the machine, with its version: qemu-aarch64 7.2. Absent on a real machine. "
        "Bits are valid under emulation, times are not.",
    ),
}

_NUMBERS = Named(maybe(NUMBER))
_SECONDS = Named(maybe(NUMBER), finite=("framework",))  # one of TEXTS
_FLOAT = fields({"decimal": TEXT, "hex": TEXT})
_POINT = fields({"input": _FLOAT, "got": _FLOAT})
_SUBJECT: dict[str, Check] = {
    "version": TEXT,
    "device": TEXT,
    "status": TEXT,
    "reason": TEXT,
    "settings": Named(SCALAR),
}
_MEASURED: dict[str, Check] = {"op": NAME, "direction": NAME, "framework": NAME, "dtype": NAME}

_WORST = fields(
    {},
    {
        "index": Each(SCALAR),
        "inputs": Named(fields({}, {"index": Each(SCALAR), "decimal": TEXT, "hex": TEXT})),
        "got": fields({}, {"decimal": TEXT, "hex": TEXT}),
        "exact": fields({}, {"decimal": TEXT, "hex": TEXT}),
        "ulp_error": NUMBER,
        "condition": NUMBER,
        "error": NUMBER,
        "error_over_bound": NUMBER,
    },
)
_MEASUREMENT = fields(
    {**_MEASURED, "case": fields({"name": TEXT}, {"regime": TEXT, "parameters": Named(SCALAR)})},
    {
        **_SUBJECT,
        "output": TEXT,
        "verdict": TEXT,
        "flags": Each(TEXT),
        "counts": Named(COUNT),
        "ulp": fields(
            {},
            {
                **dict.fromkeys(("max", "max_uncertainty", "mean", "p50", "p99", "p999"), NUMBER),
                "histogram": Each(Pair(NUMBER, COUNT)),
            },
        ),
        "error": _NUMBERS,
        "bound": fields(
            {},
            {
                **dict.fromkeys(("max_ratio", "limit"), NUMBER),
                **dict.fromkeys(("form", "limit_source"), TEXT),
                "better": fields({"form": TEXT, "ratio": NUMBER}),
            },
        ),
        "plain": _NUMBERS,
        "condition": _NUMBERS,
        "worst": _WORST,
        "invariants_violated": Each(TEXT),
        "oracle": fields({}, {"tiers": Named(COUNT)}),
        "seconds": _SECONDS,
    },
)
_AGREEMENT = fields(
    {"op": NAME, "direction": NAME, "output": TEXT, "dtype": NAME, "a": NAME, "b": NAME},
    {
        "device": TEXT,
        "case": TEXT,
        "elements": COUNT,
        "equal_bits": COUNT,
        "max_abs_difference": NUMBER,
        "max_ulp_distance": NUMBER,
    },
)
_INVARIANCE = fields(
    {**_MEASURED, "property": TEXT},
    {**_SUBJECT, "holds": TRUTH, "different": COUNT, "elements": COUNT, "case": TEXT,
     "detail": TEXT},
)  # fmt: skip
_EXPLANATION = fields(
    {**_MEASURED, "case": TEXT},
    {
        **_SUBJECT,
        "output": TEXT,
        "verdict": TEXT,
        "cause": TEXT,
        "confidence": TEXT,
        "model": TEXT,
        "details": Named(SHALLOW),
        "among": TRUTH,
        "tried": COUNT,
        "script": TEXT,
    },
)
_BINADE = fields(
    {
        "sign": AnyOf((1, -1)),
        "inputs": integer("a count above 0", 1, 2**64),
    },
    {
        "exponent": integer("an exponent", -_LARGEST_EXPONENT, _LARGEST_EXPONENT),
        "correct": COUNT,
        "max": NUMBER,
    },
)
_SWEPT = fields(
    {
        "status": TEXT,
        "counts": fields({"inputs": COUNT, "compared": COUNT, "not_correctly_rounded": COUNT}),
        "distances": Named(COUNT),
        "binades": Each(_BINADE),
    }
)
_SWEEP = fields(
    _MEASURED,
    {
        **_SUBJECT,
        "output": TEXT,
        "takes": Each(TEXT),
        "verdict": TEXT,
        "method": TEXT,
        "counts": Named(COUNT),
        "distances": Named(COUNT),
        "ulp": types("an object", dict),
        "bound": fields({}, {"limit": NUMBER, "source": TEXT}),
        "firsts": Named(_POINT),
        "invariants": Each(fields({"name": TEXT, "violated": COUNT}, {"statement": TEXT})),
        "seconds": _SECONDS,
    },
)
_LARGEST = fields(
    {
        **dict.fromkeys(("max", "error", "uncertainty"), NUMBER),
        **dict.fromkeys(("input", "got"), _FLOAT),
        "exact": TEXT,
    }
)


_JUDGED = fields({"output": TEXT, "verdict": TEXT})
_ANSWERED = fields({"status": AnyOf(("ok",))})
_SOME_INPUTS = fields({"counts": fields({"inputs": integer("a count above 0", 1, 2**64)})})
_SOME_ERROR = fields({"ulp": Filled()})


def _miscounted(record: Mapping[str, Any]) -> str | None:
    binades = record.get("binades") if _SOME_INPUTS(record) is None else None
    if any((binade.get("correct") or 0) > binade["inputs"] for binade in binades or ()):
        return "binades.correct.must not exceed the inputs"
    return None


_COMMON = fields({}, {name: field.check for name, field in FIELDS.items()})
_ENVIRONMENT = Every((fields({"framework": NAME}), Named(SHALLOW)))
_KINDS: dict[str, Check] = {
    "measurement": Every((_MEASUREMENT, Where(_ANSWERED, _JUDGED))),
    "agreement": _AGREEMENT,
    "invariance": _INVARIANCE,
    "explanation": _EXPLANATION,
    "sweep": Every(
        (
            _SWEEP,
            Where(_SOME_INPUTS, _SWEPT),
            Where(_SOME_INPUTS, Where(_SOME_ERROR, fields({"ulp": _LARGEST}))),
            Where(_SOME_INPUTS, fields({}, {"invariants": Each(_POINT)})),
        ),
        _miscounted,
        "No binade has more correct results than inputs.",
    ),
    "environment": _ENVIRONMENT,
}
