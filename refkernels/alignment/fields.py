"""The fields of a JSON object from an untrusted file, each read with its type or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from refkernels.alignment.tensors import CaptureError
from refkernels.records import codec

T = TypeVar("T")
_KIND_WORDS = {
    str: "a string", int: "a whole number", float: "a number", bool: "true or false",
    list: "a list", dict: "an object",
}  # fmt: skip


class Fields:
    """A JSON object; `where` names it in errors, which are CaptureErrors."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise CaptureError(f"{where} is not a JSON object.")
        self.values: dict[str, Any] = value
        self.where = where

    def _checked(self, name: str, kind: type, value: Any) -> Any:
        right_type = isinstance(value, kind) or (kind is float and isinstance(value, int))
        if not right_type or (isinstance(value, bool) and kind is not bool):
            raise CaptureError(f"{self.where}: {name} must be {_KIND_WORDS[kind]}.")
        return float(value) if kind is float else value

    def _required(self, name: str) -> Any:
        if name not in self.values:
            raise CaptureError(f"{self.where} lacks {name}.")
        return self.values[name]

    def text(self, name: str) -> str:
        """A string."""
        return self._checked(name, str, self._required(name))

    def flag(self, name: str) -> bool:
        """True or false."""
        return self._checked(name, bool, self._required(name))

    def count(self, name: str) -> int:
        """A whole number from 0."""
        value: int = self._checked(name, int, self._required(name))
        if value < 0:
            raise CaptureError(f"{self.where}: {name} is {value}, and must not be negative.")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """An object."""
        return self._checked(name, dict, self._required(name))

    def maybe(self, name: str, kind: type) -> Any:
        """A value of that type, or None for null and for an absent field."""
        value = self.values.get(name)
        return None if value is None else self._checked(name, kind, value)

    def hexadecimal(self, name: str) -> float | None:
        """The float of a hex string such as "0x1.8p+1", "inf" or "nan"."""
        text = self.maybe(name, str)
        if text is None:
            return None
        try:
            return float.fromhex(text)
        except (ValueError, OverflowError):
            raise CaptureError(f"{self.where}: {name} is not a hexadecimal float.") from None

    def texts(self, name: str) -> dict[str, str]:
        """An object whose values are strings."""
        values = self.mapping(name)
        return {key: self._checked(f"{name}.{key}", str, value) for key, value in values.items()}

    def tuple_of(self, name: str, kind: type) -> tuple[Any, ...]:
        """A list whose elements are of one type."""
        items = self._checked(name, list, self._required(name))
        return tuple(self._checked(f"an element of {name}", kind, value) for value in items)

    def objects(self, name: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
        """A list of objects, each read by `read`."""
        results = self._checked(name, list, self._required(name))
        return tuple(
            read(Fields(value, f"{self.where}: {name}[{index}]"))
            for index, value in enumerate(results)
        )


def json_of(text: str, where: str) -> Any:
    """The value of a JSON text; `where` names it in the CaptureError."""
    try:
        return codec.loads(text, depth=50)
    except ValueError as error:
        raise CaptureError(f"{where} is not JSON: {error}.") from None
