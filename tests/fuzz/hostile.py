"""Objects that fail in every approach, or answer it with a lie."""

import collections
import types
import unittest.mock
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class Raises:
    """An object whose every approach fails in a way of its own."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("mine")

    def __dlpack__(self, *_: Any, **__: Any) -> Any:
        raise KeyError("mine")

    def __float__(self) -> float:
        raise OSError("mine")

    def __index__(self) -> int:
        raise LookupError("mine")

    def __len__(self) -> int:
        raise ArithmeticError("mine")

    def __iter__(self) -> Iterator[Any]:
        raise RecursionError("mine")

    def __bool__(self) -> bool:
        raise StopIteration("mine")

    def __repr__(self) -> str:
        raise RuntimeError("mine")

    def __eq__(self, other: object) -> bool:
        raise EOFError("mine")

    def __hash__(self) -> int:
        raise NotImplementedError("mine")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name.startswith("__") else PermissionError("mine")


class Answers:
    """An object that says it is an array, and gives something else."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.value


class Exports:
    """An object that says it speaks DLPack, and does not."""

    def __dlpack__(self, **_: Any) -> Any:
        return object()

    def __dlpack_device__(self) -> Any:
        return "a device"


class Endless:
    """A sequence that says it has a billion items, and has them."""

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, index: Any) -> float:
        return 1.0


class Number:
    """What is asked for a number gives a text."""

    def __float__(self) -> Any:
        return "1.0"

    def __index__(self) -> Any:
        return "1"

    def __len__(self) -> int:
        return -1

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        raise ValueError  # without a sentence


class Mapping(collections.abc.Mapping):  # type: ignore[type-arg]
    """A mapping that has none of the keys that it says it has."""

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(["x", "y", "eps"])

    def __len__(self) -> int:
        return 3


class Int(int):
    """A number that cannot be computed with."""

    def _fails(self, *_: Any) -> Any:
        raise BufferError("mine")

    __float__ = __index__ = __int__ = __lt__ = __le__ = __gt__ = __ge__ = __abs__ = _fails


class Float(float):
    """A number that cannot be read."""

    def _fails(self, *_: Any) -> Any:
        raise BufferError("mine")

    __float__ = __int__ = __lt__ = __le__ = __gt__ = __ge__ = __abs__ = _fails


class Sequence(list):  # type: ignore[type-arg]
    """A list that cannot be gone through."""

    def __iter__(self) -> Any:
        raise OSError("mine")


class Pretends:
    """An object that says it is an int."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return int


class Array(np.ndarray):  # type: ignore[type-arg]
    """An array whose functions and conversions fail."""

    def __array_finalize__(self, other: Any) -> None:
        pass

    def astype(self, *_: Any, **__: Any) -> Any:
        raise OSError("mine")

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise OSError("mine")

    def __array_function__(self, *_: Any, **__: Any) -> Any:
        raise OSError("mine")


def with_path(value: Any) -> Any:
    """What `os.fspath` takes, and another thing comes out."""
    return types.SimpleNamespace(__fspath__=lambda: value)


HOSTILE: tuple[Callable[[], Any], ...] = (
    Raises, lambda: [Raises()], lambda: {"x": Raises()}, lambda: Answers(None),
    lambda: Answers(np.ones(3)), lambda: Answers("text"), lambda: Answers(Raises()),
    lambda: Answers(np.ma.masked_array([1.0, 2.0], [True, False])), Exports, Endless, Number,
    Mapping, lambda: Int(3), lambda: Float(1.5),
    lambda: Sequence([1.0, 2.0]), Pretends, unittest.mock.MagicMock, lambda: [Int(3), Float(1.5)],
    lambda: np.ones((2, 3)).view(Array), lambda: with_path(3), lambda: with_path("\0"),
    lambda: {Raises: 1}, lambda: (Raises(), Raises()), lambda: [Number(), 1.0],
)  # fmt: skip
