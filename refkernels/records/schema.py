"""Checks records before a view reads them: types and ranges, field by field.

A check is a function of a value that returns None or a complaint ("'ulp.max' must be a number").
Fields that no table here names may hold anything. A field that may be absent may be null too.
`FIELDS` are those that a record of any kind, except an environment's, may have besides its own.
A report has a million fields, and most need only have one of a few types. So an object checks the
types of all such fields at once, and remembers the combinations that were right.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

from refkernels.records.words import CONFIDENCES

Check = Callable[[Any], str | None]

# Text by definition: a decimal "nan" is what the report must print, not compute with.
TEXTS = frozenset((
    "kind", "status", "reason", "op", "direction", "output", "framework", "version", "device",
    "dtype", "environment", "name", "regime", "verdict", "digest", "decimal", "exact", "hex",
    "radius", "property", "detail", "a", "b", "platform", "cpu", "id", "cause", "confidence",
    "form", "state", "layer", "emulated", "case", "model", "script",
))  # fmt: skip
_LARGEST_EXPONENT = 1100  # float64's smallest subnormal is 2^-1074
_DEPTH = 4  # of an environment's fields


def complaint(record: Mapping[str, Any]) -> str | None:
    """What is wrong with a record, None where it is valid. A record of an unknown kind passes: the
    views count those."""
    check = _KINDS.get(str(record["kind"]))
    if check is None:
        return None
    if wrong := check(record):
        return wrong
    known = check is _environment or FIELDS.keys().isdisjoint(record)
    return None if known else _COMMON(record)


@dataclass(frozen=True)
class _OneOf:
    """A value of one of these types, as JSON has them; an integer between low and high."""

    what: str
    types: frozenset[type]
    between: tuple[int, int] | None = None

    def __call__(self, value: Any) -> str | None:
        return None if self.passes((value,)) else f"must be {self.what}"

    def passes(self, values: Collection[Any]) -> bool:
        """Whether every value passes."""
        if not self.types.issuperset(map(type, values)):
            return False
        if self.between is None:
            return True
        low, high = self.between
        if NoneType in self.types:
            values = [value for value in values if value is not None]
        return not values or (low <= min(values) and max(values) <= high)


@dataclass(frozen=True)
class _Pair:
    """A list of two values."""

    first: _OneOf
    second: _OneOf

    def __call__(self, value: Any) -> str | None:
        if not isinstance(value, list) or len(value) != 2:
            return "must be a list of pairs"
        return self.first(value[0]) or self.second(value[1])

    def passes(self, values: Collection[Any]) -> bool:
        """Whether every value passes."""
        if not {list}.issuperset(map(type, values)) or not {2}.issuperset(map(len, values)):
            return False
        firsts, seconds = zip(*values, strict=True) if values else ((), ())
        return self.first.passes(firsts) and self.second.passes(seconds)


def _is(what: str, test: Callable[[Any], bool]) -> Check:
    return lambda value: None if test(value) else f"must be {what}"


def _types(what: str, *types: type) -> _OneOf:
    return _OneOf(what, frozenset(types))


def _integer(what: str, low: int, high: int) -> _OneOf:
    return _OneOf(what, frozenset((int,)), (low, high))


def _maybe(check: Check) -> Check:
    if isinstance(check, _OneOf):
        return replace(check, types=check.types | {NoneType})
    return lambda value: None if value is None else check(value)


def _each(check: Check) -> Check:
    """A list of such values."""

    def checked(value: Any) -> str | None:
        if not isinstance(value, list):
            return "must be a list"
        if isinstance(check, _OneOf | _Pair) and check.passes(value):
            return None
        for inner in value:
            if wrong := check(inner):
                return wrong
        return None

    return checked


def _named(check: Check) -> Check:
    """An object of such values, whatever their names."""

    def checked(value: Any) -> str | None:
        if not isinstance(value, dict):
            return "must be an object"
        if isinstance(check, _OneOf) and check.passes(value.values()):
            return None
        for name, inner in value.items():
            if wrong := check(inner):
                return f"{name}.{wrong}"
        return None

    return checked


def _object(needed: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """An object with the fields `needed`, and perhaps those of `optional`."""
    checks = {**needed, **{name: _maybe(check) for name, check in (optional or {}).items()}}
    typed = {
        name: check.types
        for name, check in checks.items()
        if isinstance(check, _OneOf) and check.between is None
    }
    others = {name: check for name, check in checks.items() if name not in typed}
    known: set[tuple[type, ...]] = set()  # combinations of these fields' types that were right

    def checked(value: Any) -> str | None:
        if not isinstance(value, dict):
            return "must be an object"
        get = value.get
        kinds = tuple(map(type, map(get, typed)))
        if kinds not in known:
            for kind, (name, types) in zip(kinds, typed.items(), strict=True):
                if kind not in types:
                    return f"{name}.{checks[name](get(name))}"
            known.add(kinds)
        for name, check in others.items():
            if wrong := check(get(name)):
                return f"{name}.{wrong}"
        return None

    return checked


def _shallow(value: Any, depth: int = _DEPTH) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_shallow(item, depth - 1) for item in inner)


TEXT = _types("a text", str)
NAME = _is("a name", lambda value: isinstance(value, str) and bool(value.strip()))
NUMBER = _types("a number", int, float)
COUNT = _integer("a count", 0, 2**63 - 1)
TRUTH = _types("true or false", bool)
SCALAR = _types("a text or a number", str, int, float, bool, NoneType)
SHALLOW = _is(f"nested {_DEPTH} times at most", _shallow)


@dataclass(frozen=True)
class Field:
    """What a field of a record may hold, and what it means."""

    check: Check
    meaning: str


_EVIDENCE = _object(
    {"cause": NAME, "bits": NUMBER, "units": COUNT},
    {
        "confidence": _is("proven, matched or consistent", CONFIDENCES.__contains__),
        "needed": COUNT,
        "survivors": _each(NAME),
    },
)
FIELDS: Mapping[str, Field] = {
    "evidence": Field(
        _EVIDENCE,
        "The evidence for a cause: cause; bits, less the cost of the hypothesis; units, the "
        "observations behind the bits; confidence, the word for that many bits; needed, how many "
        "units would make it matched; survivors, the causes that these observations cannot tell "
        "apart.",
    ),
    "form": Field(
        NAME,
        "The form of the op, by its name in the op: in a measurement the form whose bound permits "
        "the error, in a model the form that it computes.",
    ),
    "state": Field(
        NAME,
        "The state that the output holds, where an op has states besides outputs: exp_avg in an "
        "optimizer, running_mean in a normalisation.",
    ),
    "step": Field(COUNT, "The step of a training run, the first one 0."),
    "rank": Field(COUNT, "The process of a distributed run, the first one 0."),
    "layer": Field(
        NAME, "The module of a model, by its path: encoder.layers.3.norm1. A single op has none."
    ),
    "emulated": Field(
        NAME,
        "What emulates the machine, with its version: qemu-aarch64 7.2. Absent on a real one. "
        "Bits under emulation count, times do not.",
    ),
}

_NUMBERS = _named(_maybe(NUMBER))
_FLOAT = _object({"decimal": TEXT, "hex": TEXT})
_POINT = _object({"input": _FLOAT, "got": _FLOAT})
_SUBJECT: dict[str, Check] = {
    "version": TEXT,
    "device": TEXT,
    "status": TEXT,
    "reason": TEXT,
    "settings": _named(SCALAR),
}
_MEASURED: dict[str, Check] = {"op": NAME, "direction": NAME, "framework": NAME, "dtype": NAME}

_WORST = _object(
    {},
    {
        "index": _each(SCALAR),
        "inputs": _named(_object({}, {"index": _each(SCALAR), "decimal": TEXT, "hex": TEXT})),
        "got": _object({}, {"decimal": TEXT, "hex": TEXT}),
        "exact": _object({}, {"decimal": TEXT, "hex": TEXT}),
        "ulp_error": NUMBER,
        "condition": NUMBER,
        "error": NUMBER,
        "error_over_bound": NUMBER,
    },
)
_MEASUREMENT = _object(
    {**_MEASURED, "case": _object({"name": TEXT}, {"regime": TEXT, "parameters": _named(SCALAR)})},
    {
        **_SUBJECT,
        "output": TEXT,
        "verdict": TEXT,
        "flags": _each(TEXT),
        "counts": _named(COUNT),
        "ulp": _object(
            {},
            {
                **dict.fromkeys(("max", "max_uncertainty", "mean", "p50", "p99", "p999"), NUMBER),
                "histogram": _each(_Pair(NUMBER, COUNT)),
            },
        ),
        "error": _NUMBERS,
        "bound": _object(
            {}, {"max_ratio": NUMBER, "form": TEXT, "limit": NUMBER, "limit_source": TEXT}
        ),
        "plain": _NUMBERS,
        "condition": _NUMBERS,
        "worst": _WORST,
        "invariants_violated": _each(TEXT),
        "oracle": _object({}, {"tiers": _named(COUNT)}),
        "seconds": _NUMBERS,
    },
)
_AGREEMENT = _object(
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
_INVARIANCE = _object(
    {**_MEASURED, "property": TEXT},
    {**_SUBJECT, "holds": TRUTH, "different": COUNT, "elements": COUNT, "case": TEXT,
     "detail": TEXT},
)  # fmt: skip
_EXPLANATION = _object(
    {**_MEASURED, "case": TEXT},
    {
        **_SUBJECT,
        "output": TEXT,
        "verdict": TEXT,
        "cause": TEXT,
        "confidence": TEXT,
        "model": TEXT,
        "details": _named(SHALLOW),
        "among": TRUTH,
        "tried": COUNT,
        "script": TEXT,
    },
)
_BINADE = _object(
    {
        "sign": _is("1 or -1", lambda value: value in (1, -1)),
        "inputs": _integer("a count above 0", 1, 2**64),
    },
    {
        "exponent": _integer("an exponent", -_LARGEST_EXPONENT, _LARGEST_EXPONENT),
        "correct": COUNT,
        "max": NUMBER,
    },
)
_SWEPT = _object(
    {
        "status": TEXT,
        "counts": _object({"inputs": COUNT, "compared": COUNT, "not_correctly_rounded": COUNT}),
        "distances": _named(COUNT),
        "binades": _each(_BINADE),
    }
)
_SWEEP = _object(
    _MEASURED,
    {
        **_SUBJECT,
        "output": TEXT,
        "takes": _each(TEXT),
        "verdict": TEXT,
        "method": TEXT,
        "counts": _named(COUNT),
        "distances": _named(COUNT),
        "ulp": _is("an object", lambda value: isinstance(value, dict)),
        "bound": _object({}, {"limit": NUMBER, "source": TEXT}),
        "firsts": _named(_POINT),
        "invariants": _each(_object({"name": TEXT, "violated": COUNT}, {"statement": TEXT})),
        "seconds": _NUMBERS,
    },
)
_LARGEST = _object(
    {
        **dict.fromkeys(("max", "error", "uncertainty"), NUMBER),
        **dict.fromkeys(("input", "got"), _FLOAT),
        "exact": TEXT,
    }
)


_JUDGED = _object({"output": TEXT, "verdict": TEXT})
_NAMED_FRAMEWORK = _object({"framework": NAME})
_WORST_ULP = {True: _object({}, {"ulp": _LARGEST}), False: _object({}, {"ulp": SCALAR})}
_POINTS = _each(_POINT)
_SHALLOWS = _named(SHALLOW)


def _measurement(record: Mapping[str, Any]) -> str | None:
    wrong = _MEASUREMENT(record)
    return wrong if wrong or record.get("status") != "ok" else _JUDGED(record)


def _sweep(record: Mapping[str, Any]) -> str | None:
    wrong = _SWEEP(record)
    if wrong or not (record.get("counts") or {}).get("inputs"):
        return wrong
    if wrong := _SWEPT(record) or _WORST_ULP[bool(record.get("ulp"))](record):
        return wrong
    if any((binade.get("correct") or 0) > binade["inputs"] for binade in record["binades"]):
        return "binades.correct.must not exceed the inputs"
    return _POINTS(record.get("invariants") or [])


def _environment(record: Mapping[str, Any]) -> str | None:
    return _NAMED_FRAMEWORK(record) or _SHALLOWS(dict(record))


_COMMON = _object({}, {name: field.check for name, field in FIELDS.items()})
_KINDS: dict[str, Check] = {
    "measurement": _measurement,
    "agreement": _AGREEMENT,
    "invariance": _INVARIANCE,
    "explanation": _EXPLANATION,
    "sweep": _sweep,
    "environment": _environment,
}
