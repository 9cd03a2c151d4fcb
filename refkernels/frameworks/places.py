"""The place of an interpreter: the path of a local Python, or an execnet spec.

/home/me/venv/bin/python
ssh=me@host//python=python3.10
popen//python=python3.10
"""

from __future__ import annotations

import re
import shlex

from refkernels.frameworks.catalog import FrameworkError

_SPEC = re.compile(r"[a-z_]+(=|//|$)")
_KINDS = ("popen", "ssh")
_KEYS = (*_KINDS, "python", "chdir", "nice")


def is_spec(place: str) -> bool:
    """Whether `place` is an execnet spec; a path otherwise."""
    word = _SPEC.match(place)
    return word is not None and (word[0].endswith(("=", "//")) or place in _KINDS)


def is_local(place: str) -> bool:
    """Whether the interpreter runs on this machine."""
    return not is_spec(place) or place.split("//")[0].partition("=")[0] == "popen"


def check(place: str) -> None:
    """Raise `FrameworkError` if a spec is malformed, or would pass an option to ssh."""
    if not is_spec(place):
        return
    pairs = [part.partition("=") for part in place.split("//")]
    keys = [key for key, _, _ in pairs]
    wrong = [key for key in keys if key not in _KEYS and not key.startswith("env:")]
    if wrong or len(set(keys)) < len(keys) or sum(key in _KINDS for key in keys) != 1:
        raise FrameworkError(
            f"{place!r} does not name an interpreter: write ssh=USER@HOST//python=PYTHON, or the "
            "path of a Python here (put other settings of ssh into ~/.ssh/config)"
        )
    settings = {key: value for key, _, value in pairs}
    command(settings.get("python"))
    host = settings.get("ssh")
    # ssh takes every word that begins with a dash as an option, and some options run commands.
    if host is not None and (not host or host.startswith("-") or re.search(r"\s|@-", host)):
        raise FrameworkError(
            f"{host!r} is not a host for ssh: write ssh=USER@HOST, without options "
            "(put a port, a key or a proxy into ~/.ssh/config)"
        )


def command(python: str | None) -> list[str]:
    """The words that start the interpreter of a spec; raise `FrameworkError` if the first is an
    option, which ssh would take as its own, or if there is none."""
    try:
        words = shlex.split("python3" if python is None else python)
    except ValueError:  # a quotation without an end
        words = []
    if not words or words[0].startswith("-"):
        raise FrameworkError(f"{python!r} is not an interpreter: write python=PYTHON as in a shell")
    return words
