"""Checks values against JSON Schema (2020-12), as far as the schema of records uses it.

`passes` checks many values at once: a report has a million fields, and column by column they take a
fifth of the time that they take record by record. `complaint` finds what is wrong with one value.
A `Schema` is a document whose definitions rules may refer to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from types import NoneType
from typing import Any

Json = dict[str, Any]
Values = Sequence[Any]
_TYPES: dict[str, set[type]] = {
    "string": {str},
    "integer": {int},
    "number": {int, float},
    "boolean": {bool},
    "null": {NoneType},
    "object": {dict},
    "array": {list},
}
_NAMES = {
    "string": "a text",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}


class Schema:
    """The rules of a document. `definitions` replace those of the same name in it."""

    def __init__(self, document: Json, definitions: Mapping[str, Json]) -> None:
        self._definitions = {**document["$defs"], **definitions}

    def rule(self, name: str) -> Json:
        """The definition of that name."""
        return self._definitions[name]

    def passes(self, rule: Json, values: Values) -> bool:
        """Whether all the values obey the rule."""
        if not values:
            return True
        if "type" in rule and not _allowed(rule).issuperset(map(type, values)):
            return False
        return all(check(self, rule, values) for word, check in _CHECKS.items() if word in rule)

    def complaint(self, rule: Json, value: Any) -> str | None:
        """What is wrong with the value, behind the names that lead to it: "ulp.max.must be a
        number"; None if nothing is."""
        if self.passes(rule, [value]):
            return None
        for name, inner_rule, inner in self._parts(rule, value):
            if found := self.complaint(inner_rule, inner):
                return f"{name}.{found}" if name else found
        return f"must be {self._words(rule)}"

    def _parts(self, rule: Json, value: Any) -> Iterator[tuple[str, Json, Any]]:
        """(name, rule, value) of what is inside a value."""
        if "$ref" in rule:
            yield "", self._referred(rule), value
        for inner in rule.get("allOf", ()):
            yield "", inner, value
        if "if" in rule and self.passes(rule["if"], [value]):
            yield "", rule["then"], value
        if len(options := _besides_null(rule)) == 1:
            yield "", options[0], value
        if isinstance(value, dict):
            named = rule.get("properties", {})
            for name, inner in named.items():
                if name in value or name in rule.get("required", ()):
                    yield name, inner, value.get(name)
            others = {n: inner for n, inner in value.items() if n not in named}
            for name, inner in others.items() if "additionalProperties" in rule else ():
                yield name, rule["additionalProperties"], inner
        elif isinstance(value, list) and "items" in rule:
            yield from (("", rule["items"], inner) for inner in value)

    def _words(self, rule: Json) -> str:
        """What a value must be."""
        if "$ref" in rule:
            return self._words(self._referred(rule))
        if "anyOf" in rule:
            return " or ".join(map(self._words, _besides_null(rule)))
        if "enum" in rule:
            return " or ".join(map(str, rule["enum"]))
        if "prefixItems" in rule:
            return "a list of pairs"
        if "pattern" in rule:
            return str(rule.get("description", "a name"))
        if "minProperties" in rule:
            return "an object with fields"
        types = [rule["type"]] if isinstance(rule.get("type"), str) else rule.get("type", ())
        if "integer" in types:
            low, high = rule["minimum"], rule["maximum"]
            return "a count" if low == 0 else f"an integer from {low} to {high}"
        return " or ".join(_NAMES[name] for name in types if name != "null")

    def _referred(self, rule: Json) -> Json:
        return self.rule(rule["$ref"].rpartition("/")[2])

    # Each keyword of a rule, for values whose types are right.

    def _ref(self, rule: Json, values: Values) -> bool:
        return self.passes(self._referred(rule), values)

    def _enum(self, rule: Json, values: Values) -> bool:
        allowed = {(type(value), value) for value in rule["enum"]}
        return allowed.issuperset(zip(map(type, values), values, strict=True))

    def _between(self, rule: Json, values: Values) -> bool:
        numbers = [value for value in values if value is not None]
        return not numbers or (rule["minimum"] <= min(numbers) and max(numbers) <= rule["maximum"])

    def _pattern(self, rule: Json, values: Values) -> bool:
        return all(map(re.compile(rule["pattern"]).search, values))

    def _filled(self, rule: Json, values: Values) -> bool:
        return all(len(value) >= rule["minProperties"] for value in values)

    def _required(self, rule: Json, values: Values) -> bool:
        objects = _of(dict, values)
        return all(all(map(dict.__contains__, objects, repeat(name))) for name in rule["required"])

    def _properties(self, rule: Json, values: Values) -> bool:
        objects = _of(dict, values)
        return all(  # a field that may be absent may be null too
            self.passes(inner, [*map(dict.get, objects, repeat(name))])
            for name, inner in rule["properties"].items()
        )

    def _additional(self, rule: Json, values: Values) -> bool:
        named, objects = rule.get("properties", {}), _of(dict, values)
        inside = list(chain.from_iterable(map(dict.values, objects)))
        if named:
            inside = [v for value in objects for name, v in value.items() if name not in named]
        return self.passes(rule["additionalProperties"], inside)

    def _items(self, rule: Json, values: Values) -> bool:
        return self.passes(rule["items"], list(chain.from_iterable(_of(list, values))))

    def _tuples(self, rule: Json, values: Values) -> bool:
        if not {rule["maxItems"]}.issuperset(map(len, values)):
            return False
        return all(map(self.passes, rule["prefixItems"], zip(*values, strict=True)))

    def _all(self, rule: Json, values: Values) -> bool:
        return all(self.passes(inner, values) for inner in rule["allOf"])

    def _any(self, rule: Json, values: Values) -> bool:
        if len(options := _besides_null(rule)) == 1:
            return self.passes(options[0], [value for value in values if value is not None])
        return all(
            any(self.passes(option, _of(kind, values)) for option in rule["anyOf"])
            for kind in set(map(type, values))
        )

    def _where(self, rule: Json, values: Values) -> bool:
        return self.passes(rule["then"], self._chosen(rule["if"], values))

    def _chosen(self, condition: Json, values: Values) -> Values:
        """The values that meet a condition. Neighbours are alike, and are asked together."""
        if self.passes(condition, values):
            return values
        middle = len(values) // 2
        halves = (values[:middle], values[middle:]) if middle else ()
        return [value for half in halves for value in self._chosen(condition, half)]


_CHECKS = {
    "$ref": Schema._ref,
    "enum": Schema._enum,
    "minimum": Schema._between,
    "pattern": Schema._pattern,
    "minProperties": Schema._filled,
    "required": Schema._required,
    "properties": Schema._properties,
    "additionalProperties": Schema._additional,
    "items": Schema._items,
    "prefixItems": Schema._tuples,
    "allOf": Schema._all,
    "anyOf": Schema._any,
    "if": Schema._where,
}


def _besides_null(rule: Json) -> list[Json]:
    return [option for option in rule.get("anyOf", ()) if option != {"type": "null"}]


def _allowed(rule: Json) -> set[type]:
    names = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
    return {kind for name in names for kind in _TYPES[name]}


def _of(kind: type, values: Values) -> Values:
    """The values of a type, which are mostly all."""
    if {kind}.issuperset(map(type, values)):
        return values
    return [value for value in values if type(value) is kind]
