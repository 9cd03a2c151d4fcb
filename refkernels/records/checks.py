"""Checks of a record's values, each of which can also be written as JSON Schema.

A check is called with a value, and returns None or a complaint ("'ulp.max' must be a number").
`rule()` is the same condition in JSON Schema (2020-12). It describes the file, where a number may
also be one of the words for infinities and NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, Protocol

Json = dict[str, Any]
FIGURE = "#/$defs/figure"
"""Where a schema defines a number, or the word for one that JSON cannot hold."""
_NAMES = {str: "string", int: "integer", bool: "boolean", NoneType: "null", dict: "object"}


class Check(Protocol):
    """A condition on a value."""

    def __call__(self, value: Any) -> str | None:
        """What is wrong with the value; None if nothing is."""

    def rule(self) -> Json:
        """The condition as JSON Schema."""


@dataclass(frozen=True)
class OneOf:
    """A value of one of these JSON types; an integer between low and high."""

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

    def rule(self) -> Json:
        if float in self.types:
            figure = {"$ref": FIGURE}
            others = sorted(_NAMES[kind] for kind in self.types - {float, int})
            return {"anyOf": [figure, *({"type": kind} for kind in others)]} if others else figure
        names = sorted(_NAMES[kind] for kind in self.types)
        bounds = dict(zip(("minimum", "maximum"), self.between or (), strict=False))
        return {"type": names if len(names) > 1 else names[0], **bounds}


@dataclass(frozen=True)
class Name:
    """A text that is not blank."""

    def __call__(self, value: Any) -> str | None:
        return None if isinstance(value, str) and value.strip() else "must be a name"

    def rule(self) -> Json:
        return {"type": "string", "pattern": "\\S"}


@dataclass(frozen=True)
class AnyOf:
    """One of these words or numbers."""

    values: tuple[str | int, ...]

    def __call__(self, value: Any) -> str | None:
        if any(type(value) is type(allowed) and value == allowed for allowed in self.values):
            return None
        return f"must be {' or '.join(map(str, self.values))}"

    def rule(self) -> Json:
        kind = {type(allowed) for allowed in self.values}.pop()
        return {"type": _NAMES[kind], "enum": list(self.values)}


@dataclass(frozen=True)
class Shallow:
    """Anything, nested `depth` times at most."""

    depth: int

    def __call__(self, value: Any) -> str | None:
        return None if _shallow(value, self.depth) else f"must be nested {self.depth} times at most"

    def rule(self) -> Json:
        rule: Json = {"type": ["string", "number", "boolean", "null"]}
        for _ in range(self.depth):
            rule = {"items": rule, "additionalProperties": rule}
        return rule


def _shallow(value: Any, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_shallow(item, depth - 1) for item in inner)


@dataclass(frozen=True)
class Filled:
    """An object with something in it."""

    def __call__(self, value: Any) -> str | None:
        return None if isinstance(value, dict) and value else "must be an object with fields"

    def rule(self) -> Json:
        return {"type": "object", "minProperties": 1}


@dataclass(frozen=True)
class Pair:
    """A list of two values."""

    first: OneOf
    second: OneOf

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

    def rule(self) -> Json:
        items = [self.first.rule(), self.second.rule()]
        return {"type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2}


@dataclass(frozen=True)
class Maybe:
    """Null, or what passes the check."""

    check: Check

    def __call__(self, value: Any) -> str | None:
        return None if value is None else self.check(value)

    def rule(self) -> Json:
        return {"anyOf": [{"type": "null"}, self.check.rule()]}


@dataclass(frozen=True)
class Each:
    """A list of such values."""

    check: Check

    def __call__(self, value: Any) -> str | None:
        if not isinstance(value, list):
            return "must be a list"
        if isinstance(self.check, OneOf | Pair) and self.check.passes(value):
            return None
        for inner in value:
            if wrong := self.check(inner):
                return wrong
        return None

    def rule(self) -> Json:
        return {"type": "array", "items": self.check.rule()}


@dataclass(frozen=True)
class Named:
    """An object of such values, whatever their names."""

    check: Check

    def __call__(self, value: Any) -> str | None:
        if not isinstance(value, dict):
            return "must be an object"
        if isinstance(self.check, OneOf) and self.check.passes(value.values()):
            return None
        for name, inner in value.items():
            if wrong := self.check(inner):
                return f"{name}.{wrong}"
        return None

    def rule(self) -> Json:
        return {"type": "object", "additionalProperties": self.check.rule()}


@dataclass(frozen=True)
class Object:
    """An object with these fields, and perhaps others. A report has a million fields, most of which
    only need one of a few types. Those are checked together, and combinations of types that passed
    are remembered."""

    checks: Mapping[str, Check]
    _typed: dict[str, frozenset[type]] = field(init=False, repr=False)
    _others: dict[str, Check] = field(init=False, repr=False)
    _known: set[tuple[type, ...]] = field(init=False, repr=False, default_factory=set)

    def __post_init__(self) -> None:
        typed = {
            name: check.types
            for name, check in self.checks.items()
            if isinstance(check, OneOf) and check.between is None
        }
        others = {name: check for name, check in self.checks.items() if name not in typed}
        object.__setattr__(self, "_typed", typed)
        object.__setattr__(self, "_others", others)

    def __call__(self, value: Any) -> str | None:
        if not isinstance(value, dict):
            return "must be an object"
        get = value.get
        kinds = tuple(map(type, map(get, self._typed)))
        if kinds not in self._known:
            for kind, (name, types) in zip(kinds, self._typed.items(), strict=True):
                if kind not in types:
                    return f"{name}.{self.checks[name](get(name))}"
            self._known.add(kinds)
        for name, check in self._others.items():
            if wrong := check(get(name)):
                return f"{name}.{wrong}"
        return None

    def rule(self) -> Json:
        rules = {name: check.rule() for name, check in self.checks.items()}
        needed = [name for name, check in self.checks.items() if check(None)]
        rule: Json = {"type": "object", "properties": rules}
        return {**rule, "required": needed} if needed else rule


@dataclass(frozen=True)
class Where:
    """A value that meets a condition passes the check; every other value passes."""

    condition: Check
    check: Check

    def __call__(self, value: Any) -> str | None:
        return None if self.condition(value) else self.check(value)

    def rule(self) -> Json:
        return {"if": self.condition.rule(), "then": self.check.rule()}


@dataclass(frozen=True)
class Every:
    """What passes all the checks, and a last one that JSON Schema cannot express."""

    checks: tuple[Check, ...]
    besides: Callable[[Any], str | None] = field(default=lambda value: None)
    comment: str = ""  # the last one in words

    def __call__(self, value: Any) -> str | None:
        for check in self.checks:
            if wrong := check(value):
                return wrong
        return self.besides(value)

    def rule(self) -> Json:
        rule: Json = {"allOf": [check.rule() for check in self.checks]}
        return {**rule, "$comment": self.comment} if self.comment else rule


def types(what: str, *some: type) -> OneOf:
    return OneOf(what, frozenset(some))


def integer(what: str, low: int, high: int) -> OneOf:
    return OneOf(what, frozenset((int,)), (low, high))


def maybe(check: Check) -> Check:
    """The check for a field that may be absent or null."""
    if isinstance(check, OneOf):
        return replace(check, types=check.types | {NoneType})
    return Maybe(check)


def fields(needed: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Object:
    """An object with the fields `needed`, and perhaps those of `optional`."""
    return Object({**needed, **{name: maybe(check) for name, check in (optional or {}).items()}})
