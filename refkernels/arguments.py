"""Checks callers' arguments before an interpreter is started: names, folders, numbers, mappings.

Each function returns a valid argument and refuses any other with a one-sentence error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast


class TextOrNumbers(str):
    """The default, a string, of a param that also takes numbers: padding="valid"."""

    __slots__ = ()


def as_names(value: Any, name: str) -> tuple[str, ...]:
    """A list, tuple or set of strings. Raises TypeError for anything else."""
    names = as_list(value, name)
    if strange := [item for item in names if not isinstance(item, str)]:
        raise TypeError(f"{name} holds a {type(strange[0]).__name__}, but it must hold strings.")
    return tuple(names)


def as_text(value: Any, name: str) -> str:
    """A string. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is of type {type(value).__name__}, but it must be a string.")
    return value


def as_mapping(value: Any, name: str) -> dict[str, Any]:
    """A mapping of names to anything; None gives an empty one. Raises TypeError otherwise."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must map names to values, and is of type {type(value).__name__}.")
    mapping = dict(value)
    if strange := [key for key in mapping if not isinstance(key, str)]:
        raise TypeError(
            f"{name} has a {type(strange[0]).__name__} among its keys, which must be strings."
        )
    return mapping


def as_list(value: Any, name: str) -> list[Any]:
    """The items of a list, tuple, set or range. Raises TypeError for anything else, including a
    single string, whose items would be its letters."""
    if isinstance(value, list | tuple | set | frozenset | range):
        return list(value)
    raise TypeError(f"{name} is of type {type(value).__name__}, but it must be a list.")


def as_flag(value: Any, name: str) -> bool:
    """True or False. Raises TypeError for anything else."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is of type {type(value).__name__}, not True or False.")
    return value


def as_function(value: Any, name: str) -> Callable[..., Any]:
    """Something that can be called. Raises TypeError for anything else."""
    if not callable(value):
        raise TypeError(f"{name} is of type {type(value).__name__}, but it must be a function.")
    return cast(Callable[..., Any], value)


def as_seconds(value: Any, name: str) -> float:
    """A number of seconds > 0. Raises TypeError for anything but a number, ValueError otherwise."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} is of type {type(value).__name__}, but it must be a number.")
    if not 0 < value < 2**31:
        raise ValueError(f"{name} must be a number of seconds above 0 and below 2^31.")
    return float(value)


def as_path(value: Any, name: str) -> Path:
    """A path. Raises TypeError for anything else."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} is of type {type(value).__name__}, but it must be a path.")
    return Path(value)


def as_settings(value: Any) -> dict[str, str]:
    """Environment variables and framework flags; None gives none. Raises TypeError for anything but
    a mapping of strings to strings."""
    settings = as_mapping(value, "settings")
    if not all(isinstance(text, str) for text in settings.values()):
        raise TypeError("settings must map strings to strings: {'OMP_NUM_THREADS': '1'}.")
    return settings
