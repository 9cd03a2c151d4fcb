"""Dataclasses read from the JSON of an untrusted file: each field with its annotated type."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from refkernels.alignment.tensors import CaptureError

T = TypeVar("T")
_WORDS = {
    str: "a string", int: "a whole number", float: "a number", bool: "true or false",
    list: "a list", dict: "an object",
}  # fmt: skip
# The file's keys of fields with other names; a dot leads into an object. Keys of floats that JSON
# cannot hold end with _hex.
_KEYS = {
    "loss": "loss_hex", "gradient_norm": "gradient_norm_hex", "batch_hash": "hash.batch",
    "parameters_hash": "hash.parameters", "gradients_hash": "hash.gradients", "draws": "random",
}  # fmt: skip


def read_object(kind: type[T], value: Any, where: str, **given: Any) -> T:
    """The dataclass of a JSON object; `where` names it in errors, which are CaptureErrors. `given`:
    fields that are not the file's. A field that may be None, or has a default, may be absent; an
    absent mapping is all that no other field reads."""
    if not isinstance(value, dict):
        raise CaptureError(f"{where} is not a JSON object.")
    hints, found = get_type_hints(kind), dict(given)
    for one in fields(kind):  # type: ignore[arg-type]
        *outer, key = _KEYS.get(one.name, one.name).split(".")
        optional = one.default is not MISSING or one.default_factory is not MISSING
        inside = value
        for name in outer:
            inside = _read(dict, inside.get(name, {}), where, name)
        if one.name in given or (optional and inside.get(key) is None):
            continue
        if key in inside or type(None) in get_args(hints[one.name]):
            found[one.name] = _read(hints[one.name], inside.get(key), where, key)
        elif get_origin(hints[one.name]) is Mapping:
            found[one.name] = {k: v for k, v in value.items() if k not in hints}
        else:
            raise CaptureError(f"{where} lacks {key}.")
    return kind(**found)


def _read(kind: Any, value: Any, where: str, name: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        (known,) = (one for one in inner if one is not type(None))
        return None if value is None else _read(known, value, where, name)
    if name.endswith("_hex"):
        try:
            return float.fromhex(str(value))
        except (ValueError, OverflowError):
            raise CaptureError(f"{where}: {name} is not a hexadecimal float.") from None
    if is_dataclass(kind):
        return read_object(cast("type[Any]", kind), value, f"{where}: {name}")
    if origin is tuple or (origin is Mapping and is_dataclass(inner[1])):
        item_kind = inner[0] if origin is tuple else inner[1]
        items = _read(list, value, where, name)
        read = tuple(_read(item_kind, item, where, f"{name}[{k}]") for k, item in enumerate(items))
        return read if origin is tuple else {item.name: item for item in read}
    if origin is Mapping:
        items = _read(dict, value, where, name)
        return {key: _read(inner[1], item, where, f"{name}.{key}") for key, item in items.items()}
    right_type = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not right_type or (isinstance(value, bool) and kind is not bool):
        raise CaptureError(f"{where}: {name} must be {_WORDS[kind]}.")
    if kind is int and value < 0:
        raise CaptureError(f"{where}: {name} is {value}, and must not be negative.")
    return float(value) if kind is float else value
