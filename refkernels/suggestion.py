"""Suggests the known name that a mistyped word was meant to be."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable

_ALIKE = 0.8  # of difflib's ratio: 'torhc' is near 'torch', 'float8' is not near 'float64'
_PREFIX = 3
_LONGEST, _LONGEST_PATH = 120, 300  # characters
_LISTED = 30  # names, in at most _LETTERS characters: a longer list is too long for a sentence
_LETTERS, _FEW = 400, 5


def quoted(word: str) -> str:
    """A user's word as an error quotes it; the middle of a long word is left out."""
    text = repr(word)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}...{text[-9:]}"


def path_shown(path: str | os.PathLike[str]) -> str:
    """A path as an error shows it: whole, unless a line has no room for it or cannot hold it."""
    name = os.fspath(path)
    return name if name.isprintable() and len(name) <= _LONGEST_PATH else quoted(name)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name in `known` that is nearest to `word`, None if none is near."""
    folded = {_folded(name): name for name in known}
    typed = _folded(word)
    if close := difflib.get_close_matches(typed, folded, 1, _ALIKE):
        return folded[close[0]]
    prefixed = [n for key, n in folded.items() if _begins(typed, key) or _begins(key, typed)]
    return prefixed[0] if prefixed else None


def did_you_mean(word: str, known: Iterable[str], choose: str = "choose one of") -> str:
    """The end of a sentence that refuses `word`: ``did you mean 'sin'? Choose one of sin, cos``."""
    names = list(known)
    if not names:
        return "there is none"
    if len(names) > _LISTED or sum(len(name) + 2 for name in names) > _LETTERS:
        close = difflib.get_close_matches(_folded(word), names, _FEW, 0.0)
        listed = f"the nearest of {len(names)} are {', '.join(close)}"
        rest = f"It is one of {len(names)}"
    else:
        listed = f"{choose} {', '.join(names)}"
        rest = f"{listed[0].upper()}{listed[1:]}"
    suggested = nearest(word, names)
    return listed if suggested is None else f"did you mean {suggested!r}? {rest}"


def _folded(name: str) -> str:
    return str(name).casefold().replace("-", "_")


def _begins(short: str, long: str) -> bool:
    return len(short) >= _PREFIX and long.startswith(short)
