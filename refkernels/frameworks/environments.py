"""Where each framework's interpreter is: found, made, named by the user, or missing with the cure.

An interpreter is looked for in this order: named by the user (`add`); the running one, where it can
import the framework; a managed environment in the user's cache folder (`create`).  All state lies
under one folder, `home()`: ``interpreters.json`` and ``environments/NAME-VERSION``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from refkernels.frameworks import catalog, creation
from refkernels.frameworks.catalog import FrameworkError, Spec
from refkernels.frameworks.creation import CreationFailed, Progress

__all__ = [
    "CreationFailed", "FrameworkError", "Interpreter", "Listed", "NotInstalled", "Outcome",
    "add", "create", "create_all", "find", "home", "listing", "remove", "required",
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
        return "=" not in self.python.split("//")[0] or self.python.startswith("popen")


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


def home() -> Path:
    """Where everything kept between runs lies: $REFKERNELS_HOME, or the user's cache folder."""
    if chosen := os.environ.get("REFKERNELS_HOME"):
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("refkernels"))


def required() -> frozenset[str]:
    """The frameworks that $REFKERNELS_REQUIRE lists: missing ones are failures, not skips."""
    listed = os.environ.get("REFKERNELS_REQUIRE", "")
    return frozenset(name.strip() for name in listed.split(",") if name.strip())


def find(name: str | Spec) -> Interpreter:
    """The interpreter for a framework; raise `NotInstalled` with the cure."""
    spec = catalog.get(name)
    for found in _everywhere(spec):
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
    environment = _folder(spec.name, version)
    creation.build(spec, version, environment, progress)
    content = creation.marker(environment) or {}
    python = str(creation.python_of(environment))
    return Interpreter(spec, python, "managed", content.get("version", version))


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


def add(name: str, python: str) -> Interpreter:
    """Name the interpreter of a framework: a path, or an execnet spec (``ssh=...//python=...``)."""
    spec = catalog.get(name)
    interpreter = Interpreter(spec, python, "named")
    if interpreter.local and "=" not in python:
        located = shutil.which(os.path.expanduser(python))
        if located is None:
            raise FrameworkError(
                f"{python!r} is not an interpreter that can be run: give the path of a Python "
                f"that has {spec}, or an execnet spec such as ssh=user@host//python=python3"
            )
        # A virtual environment's python must keep its own path: resolved, it is the base Python.
        interpreter = Interpreter(spec, os.path.abspath(located), "named")
    _write_named({**_named(), str(spec): interpreter.python})
    return interpreter


def remove(name: str) -> list[str]:
    """Forget the named interpreter and erase the managed environments of a framework.

    ``NAME`` removes every managed version of it, ``NAME==VERSION`` that one.  Returns what was
    removed; raises `NotInstalled` where there was nothing.
    """
    spec = catalog.get(name)
    removed = []
    named = _named()
    if str(spec) in named:
        removed.append(named.pop(str(spec)))
        _write_named(named)
    for version, environment in _managed(spec.name):
        if spec.version in ("", version):
            creation.erase(environment)
            (environment.parent / f"{environment.name}.lock").unlink(missing_ok=True)
            removed.append(str(environment))
    if not removed:
        raise NotInstalled(f"there is nothing to remove for {spec}: see `refkernels env list`")
    return removed


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
    for key, python in _named().items():
        if key.partition("==")[0] == spec.name:
            version = key.partition("==")[2]
            local = Interpreter(spec, python, "named").local
            gone = local and "=" not in python and not os.path.exists(python)
            cure = f"{python} is gone: `refkernels env remove {key}`" if gone else ""
            yield Listed(
                spec.name, version, "", python, "named", "broken" if gone else "ready", cure
            )
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
    if spec.framework.python:
        yield Interpreter(spec, spec.framework.python, "named", spec.version)
    if python := _named().get(str(spec)):
        yield Interpreter(spec, python, "named", spec.version)
    if running := _running(spec):
        yield running
    for version, environment in _managed(spec.name):
        wanted = spec.version or spec.framework.version
        content = creation.marker(environment)
        if content is not None and version == (wanted or version):
            found = content.get("version", version)
            yield Interpreter(spec, str(creation.python_of(environment)), "managed", found)


def _running(spec: Spec) -> Interpreter | None:
    """The running interpreter, if it has the wanted version; the framework is not imported."""
    from packaging.specifiers import SpecifierSet

    try:
        located = importlib.util.find_spec(spec.framework.module)
    except (ImportError, ValueError):
        return None
    if located is None or located.origin is None:
        return None
    if spec.framework.in_system:
        # There is one, whatever version was asked for: its session compares them.
        return Interpreter(spec, sys.executable, "running")
    for distribution in spec.framework.distributions:
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        wanted = SpecifierSet(f"=={spec.version}" if spec.version else "")
        if wanted.contains(version, prereleases=True):
            return Interpreter(spec, sys.executable, "running", version)
    return None


def _folder(name: str, version: str) -> Path:
    return home() / "environments" / f"{name}-{version or 'newest'}"


def _managed(name: str) -> list[tuple[str, Path]]:
    """(version, folder) of the managed environments of a framework, complete or not."""
    prefix = f"{name}-"
    folder = home() / "environments"
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [
        (entry.name[len(prefix) :], entry)
        for entry in entries
        if entry.is_dir() and entry.name.startswith(prefix)
    ]


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


def _named() -> dict[str, str]:
    path = home() / "interpreters.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise FrameworkError(f"{path} cannot be read ({error}): mend it or delete it") from None
    return {str(key): str(value) for key, value in content.items()}


def _write_named(named: dict[str, str]) -> None:
    path = home() / "interpreters.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    aside.write_text(json.dumps(named, indent=1, sort_keys=True), encoding="utf-8")
    os.replace(aside, path)
