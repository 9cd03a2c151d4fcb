"""Adds an interpreter that the user names: it must start and import the framework first."""

from __future__ import annotations

import os
import shutil

from refkernels.frameworks import catalog, home, places
from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.environments import Interpreter
from refkernels.frameworks.gateway import START_SECONDS, Session
from refkernels.target_names import parse


def add(name: str, place: str, timeout: float = START_SECONDS) -> Interpreter:
    """Name the interpreter of a framework: a path, or an execnet spec (``ssh=...//python=...``).

    The interpreter is started first: it imports the framework and reports its version.  Raises
    `FrameworkError` where that fails, where the version is not the one of ``NAME==VERSION``, or
    where the name cannot be stored.
    """
    spec = catalog.get(name)
    places.check(place)
    if not places.is_spec(place):
        located = shutil.which(os.path.expanduser(place))
        if located is None:
            raise FrameworkError(
                f"{place!r} is not an interpreter that can be run: give the path of a Python "
                f"that has {spec}, or a place such as ssh=user@host//python=python3"
            )
        # A virtual environment's python must keep its own path: resolved, it is the base Python.
        place = os.path.abspath(located)
    with Session(spec, start_timeout=timeout, place=place) as session:
        if session.status != "ok":
            raise FrameworkError(str(session.reason))
        version = str(session.info["version"])
        python = str(session.info["environment"].get("python") or "")
    named = home.read_named()
    home.write_named({**named, str(spec): home.NamedEnvironment(place, version, python)})
    return Interpreter(spec, place, "named", version)


def forget(name: str) -> str | None:
    """Undo `add`: returns the place that was forgotten, None where the name had none."""
    spec = catalog.get(name)
    named = home.read_named()
    if str(spec) not in named:
        return None
    forgotten = named.pop(str(spec))
    home.write_named(named)
    return forgotten.place


def named(name: str) -> list[str]:
    """The names, NAME or NAME==VERSION, under which interpreters of this framework were added."""
    framework = catalog.get(name).name
    return [key for key in home.read_named() if parse(key).framework == framework]
