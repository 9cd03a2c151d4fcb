"""Where each framework's interpreter is: found, made, named by the user, or missing with the cure.

An interpreter is looked for in this order: named by the user (`addition`); the running one, where
it can import the framework; a managed environment in the user's cache folder (`create`).  All state
lies under one folder, `home.home()`: ``interpreters.json`` and ``environments/NAME-VERSION``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from refkernels.frameworks import catalog, creation, home, places, versions
from refkernels.frameworks.catalog import FrameworkError, Spec
from refkernels.frameworks.creation import CreationFailed, Progress
from refkernels.seat_names import parse

__all__ = [
    "CreationFailed", "FrameworkError", "Interpreter", "Listed", "NotInstalled", "Outcome",
    "create", "create_all", "delete", "find", "listing", "managed", "required",
]  # fmt: skip

_AT_A_TIME = 4  # environments that are being made


class NotInstalled(FrameworkError):
    """No interpreter has the framework; the message is one sentence with the cure."""


@dataclass(frozen=True)
class Interpreter:
    """A Python that has (or should have) the framework of `spec`.

    python  a path, or an execnet spec such as ``ssh=user@host//python=python3.10``
    source  "named", "running" or "managed"
    """

    spec: Spec
    python: str
    source: str
    version: str = ""

    @property
    def local(self) -> bool:
        """Whether it runs on this machine."""
        return places.is_local(self.python)


@dataclass(frozen=True)
class Listed:
    """One line of `refkernels env list`; `state` is "ready", "not installed" or "broken"."""

    name: str
    version: str
    python: str
    path: str
    source: str
    state: str
    cure: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of one framework in `create_all`: an interpreter, or a reason in one sentence."""

    name: str
    interpreter: Interpreter | None
    reason: str | None


def required() -> frozenset[str]:
    """The frameworks that $REFKERNELS_REQUIRE lists: missing ones are failures, not skips."""
    listed = os.environ.get("REFKERNELS_REQUIRE", "")
    return frozenset(name.strip() for name in listed.split(",") if name.strip())


def find(name: str | Spec) -> Interpreter:
    """The interpreter for a framework; raise `NotInstalled` with the cure."""
    spec = catalog.get(name)
    there = list(_everywhere(spec))
    for found in there:
        if not spec.version or (found.version and versions.fits(found.version, spec.version)):
            return found
    # What was recorded may lack the local label, or be older than the last upgrade: the session
    # compares what the framework itself tells.
    for found in there:
        if found.source == "named" or versions.may_fit(found.version, spec.version):
            return found
    raise NotInstalled(_cure(spec))


def create(name: str | Spec, progress: Progress = lambda line: None) -> Interpreter:
    """Make the managed environment of a framework, where it is not there yet.

    Idempotent, and safe against another process that does the same.  Raises `CreationFailed`.
    """
    spec = catalog.get(name)
    if spec.framework.in_system or (spec.framework.on_host and not spec.version):
        return find(spec)
    version = spec.version or spec.framework.version
    for _, made in _managed(spec.name):
        if (told := _told(made)) and version and versions.fits(told, version):
            return Interpreter(spec, str(creation.python_of(made)), "managed", told)
    environment = _folder(spec.name, version)
    creation.build(spec, version, environment, progress)
    python = str(creation.python_of(environment))
    return Interpreter(spec, python, "managed", _told(environment) or version)


def create_all(names: Iterable[str], progress: Progress = lambda line: None) -> list[Outcome]:
    """`create` each, some at a time, for half of it is waiting for the network and the disk; one
    that fails is reported and the others go on."""

    def one(name: str) -> Outcome:
        try:
            return Outcome(name, create(name, progress), None)
        except FrameworkError as error:
            progress(f"{name}: {error}")
            return Outcome(name, None, str(error))

    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        return list(threads.map(one, names))


def managed(name: str) -> list[Path]:
    """The folders of the managed environments, complete or not: of ``NAME`` all, of
    ``NAME==VERSION`` those of that version."""
    spec = catalog.get(name)
    return [
        environment
        for version, environment in _managed(spec.name)
        if versions.fits(version, spec.version) or versions.fits(_told(environment), spec.version)
    ]


def delete(environment: Path) -> None:
    """Erase a managed environment; raise `FrameworkError` where that cannot be done."""
    try:
        creation.erase(environment)
        (environment.parent / f"{environment.name}.lock").unlink(missing_ok=True)
    except OSError as error:
        raise FrameworkError(f"{environment} cannot be deleted ({error.strerror})") from None


def listing() -> list[Listed]:
    """Every framework of the catalog, and every version of it that is named, running or managed."""
    lines = []
    for framework in catalog.frameworks():
        lines_of_it = list(_lines(Spec(framework)))
        if not any(line.state == "ready" for line in lines_of_it):
            cure = _cure(Spec(framework))
            lines_of_it.append(
                Listed(framework.name, framework.version, "", "", "", "not installed", cure)
            )
        lines.extend(lines_of_it)
    return lines


def _lines(spec: Spec) -> Iterator[Listed]:
    for key, one in home.read_named().items():
        name = parse(key)
        if name.framework == spec.name:
            gone = not places.is_spec(one.place) and not os.path.exists(one.place)
            cure = f"{one.place} is gone: `refkernels env remove {key}`" if gone else ""
            state = "broken" if gone else "ready"
            version = one.version or name.version
            yield Listed(spec.name, version, one.python, one.place, "named", state, cure)
    if running := _running(spec):
        python_version = sys.version.split()[0]
        yield Listed(spec.name, running.version, python_version, running.python, "running", "ready")
    for version, environment in _managed(spec.name):
        content = creation.marker(environment)
        if content is None:
            cure = f"its creation was interrupted: `refkernels env create {spec.name}=={version}`"
            yield Listed(spec.name, version, "", str(environment), "managed", "broken", cure)
        else:
            path = str(creation.python_of(environment))
            version = content.get("version", version)
            python_version = content.get("python", "")
            yield Listed(spec.name, version, python_version, path, "managed", "ready")


def _everywhere(spec: Spec) -> Iterator[Interpreter]:
    """Every interpreter that has the framework, whatever its version; those of a spec without one
    only where they are meant by the bare name."""
    if spec.framework.python:
        yield Interpreter(spec, spec.framework.python, "named", spec.version)
    named = home.read_named()
    for key in sorted(named, key=lambda key: key != str(spec)):
        name = parse(key)
        if name.framework == spec.name and (spec.version or not name.version):
            yield Interpreter(spec, named[key].place, "named", named[key].version or name.version)
    if running := _running(spec):
        yield running
    for version, environment in _managed(spec.name):
        found = _told(environment)
        if found and (spec.version or version == (spec.framework.version or version)):
            yield Interpreter(spec, str(creation.python_of(environment)), "managed", found)


def _running(spec: Spec) -> Interpreter | None:
    """The running interpreter, if it has the framework, which is not imported."""
    try:
        located = importlib.util.find_spec(spec.framework.module)
    except (ImportError, ValueError):
        return None
    if located is None or located.origin is None:
        return None
    if spec.framework.in_system:
        return Interpreter(spec, sys.executable, "running")
    for distribution in spec.framework.distributions:
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        return Interpreter(spec, sys.executable, "running", version)
    return None


def _folder(name: str, version: str) -> Path:
    return home.home() / "environments" / f"{name}-{version or 'newest'}"


def _managed(name: str) -> list[tuple[str, Path]]:
    """(version, folder) of the managed environments of a framework, complete or not."""
    folder = home.home() / "environments"
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    parts = [(*entry.name.rpartition("-"), entry) for entry in entries if entry.is_dir()]
    return [(version, entry) for owner, _, version, entry in parts if owner == name]


def _told(environment: Path) -> str:
    """The version that the framework of a complete environment tells, "" of an incomplete one."""
    content = creation.marker(environment)
    return "" if content is None else content.get("version", environment.name.rpartition("-")[2])


def _cure(spec: Spec) -> str:
    interrupted = [
        environment
        for version, environment in _managed(spec.name)
        if version == (spec.version or spec.framework.version)
    ]
    what = "its creation was interrupted" if interrupted else "is not installed"
    return (
        f"{spec} {what}: run `refkernels env create {spec}`, "
        f"or name a Python that has it with `refkernels env add {spec} PYTHON`"
    )
