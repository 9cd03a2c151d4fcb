"""Finds each framework's interpreter, makes it, or says how to get it.

The search order is: an interpreter that the user named (`addition`); the running one, if it can
import the framework; a managed environment in the user's cache folder (`create`).  All state lies
under one folder, `home.home()`: ``interpreters.json`` and ``environments/NAME-VERSION``.  For an
emulated machine (`emulation`) there are only managed environments: ``NAME@MACHINE-VERSION``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from refkernels.frameworks import catalog, creation, emulation, home, places, versions
from refkernels.frameworks.catalog import FrameworkError, Spec
from refkernels.frameworks.creation import Progress
from refkernels.suggestion import did_you_mean, quoted
from refkernels.target_names import parse

_AT_A_TIME = 4  # environments made in parallel


class NotInstalled(FrameworkError):
    """No interpreter has the framework; the message is one sentence with a suggested fix."""


@dataclass(frozen=True)
class Interpreter:
    """A Python that has (or should have) the framework of `spec`.

    python    a path, or an execnet spec such as ``ssh=user@host//python=python3.10``
    source    "named", "running" or "managed"
    emulator  the name and version of the program that emulates its machine, "" for this machine
    """

    spec: Spec
    python: str
    source: str
    version: str = ""
    emulator: str = ""

    @property
    def local(self) -> bool:
        """Whether the interpreter runs on this machine."""
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
    fix: str = ""


@dataclass(frozen=True)
class CreationOutcome:
    """The result of `create_all` for one framework: an interpreter, or a reason in one sentence."""

    name: str
    interpreter: Interpreter | None
    reason: str | None


def required() -> frozenset[str]:
    """The frameworks that $REFKERNELS_REQUIRE lists: missing ones are failures, not skips."""
    listed = os.environ.get("REFKERNELS_REQUIRE", "")
    return frozenset(name.strip() for name in listed.split(",") if name.strip())


def find(name: str | Spec, machine: str = "") -> Interpreter:
    """The interpreter for a framework or a kernel, on this machine or an emulated one; raise
    `NotInstalled` with a suggested fix."""
    spec, machine = catalog.get(name), emulation.foreign(machine)
    if spec.framework.kernel is not None:
        return _of_kernel(spec, machine)
    interpreters = list(
        _managed_interpreters(spec, machine) if machine else _all_interpreters(spec)
    )
    for interpreter in interpreters:
        if not spec.version or (
            interpreter.version and versions.fits(interpreter.version, spec.version)
        ):
            return interpreter
    # A recorded version may lack the local label, or be older than the last upgrade: the session
    # checks the version that the framework itself reports.
    for interpreter in interpreters:
        if interpreter.source == "named" or versions.may_fit(interpreter.version, spec.version):
            return interpreter
    raise NotInstalled(_suggested_fix(spec, machine))


def _of_kernel(spec: Spec, machine: str) -> Interpreter:
    """The interpreter that a kernel's name asks for: a framework's, a path, or the running one. On
    an emulated machine it is a framework's: NumPy's if the name asks for none."""
    python = spec.framework.python or ("numpy" if machine else sys.executable)
    if python.partition("==")[0] in catalog.names():
        return replace(find(python, machine), spec=spec, version="")
    if machine:
        raise FrameworkError(
            f"{python} is an interpreter of this machine: for {machine} name a framework, such as "
            "--python numpy"
        )
    if not places.is_spec(python) and shutil.which(python) is None:
        raise FrameworkError(
            f"{quoted(python)} is neither the path of an interpreter nor a framework: "
            f"{did_you_mean(python, catalog.names())}"
        )
    return Interpreter(spec, python, "named" if spec.framework.python else "running")


def create(
    name: str | Spec, progress: Progress = lambda line: None, machine: str = ""
) -> Interpreter:
    """Make the managed environment of a framework, for this machine or an emulated one, unless it
    exists.

    Idempotent, and safe while another process does the same.  Raises `CreationFailed`.
    """
    spec, machine = catalog.get(name), emulation.foreign(machine)
    framework = spec.framework
    if not machine and (framework.in_system or (framework.on_host and not spec.version)):
        return find(spec)
    version = spec.version or framework.machines.get(machine) or framework.version
    owner = _owner(spec.name, machine)
    for _, existing in _managed(owner):
        recorded = _recorded_version(existing)
        if recorded and version and versions.fits(recorded, version):
            return _interpreter_in(existing, spec)
    environment = _folder(owner, version)
    if machine:
        emulation.build(spec, version, environment, machine, progress)
    else:
        creation.build(spec, version, environment, progress)
    return _interpreter_in(environment, spec)


def create_all(
    names: Iterable[str], progress: Progress = lambda line: None, machine: str = ""
) -> list[CreationOutcome]:
    """`create` each, several in parallel, because half the time is spent waiting for network and
    disk. A failure is reported, and the others continue."""

    def create_one(name: str) -> CreationOutcome:
        try:
            return CreationOutcome(name, create(name, progress, machine), None)
        except FrameworkError as error:
            progress(f"{name}: {error}")
            return CreationOutcome(name, None, str(error))

    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        return list(threads.map(create_one, names))


def managed(name: str, machine: str = "") -> list[Path]:
    """The folders of a framework's managed environments, complete or not: all for ``NAME``, those
    of one version for ``NAME==VERSION``; those for an emulated machine apart."""
    spec = catalog.get(name)
    return [
        environment
        for version, environment in _managed(_owner(spec.name, emulation.foreign(machine)))
        if versions.fits(version, spec.version)
        or versions.fits(_recorded_version(environment), spec.version)
    ]


def delete(environment: Path) -> None:
    """Erase a managed environment; raise `FrameworkError` if that fails."""
    try:
        creation.erase(environment)
        (environment.parent / f"{environment.name}.lock").unlink(missing_ok=True)
    except OSError as error:
        raise FrameworkError(f"{environment} cannot be deleted ({error.strerror})") from None


def listing() -> list[Listed]:
    """Every framework of the catalog, and every version of it that is named, running or managed."""
    lines = []
    for framework in catalog.frameworks():
        own_lines = list(_lines(Spec(framework)))
        if not any(line.state == "ready" for line in own_lines):
            fix = _suggested_fix(Spec(framework))
            own_lines.append(
                Listed(framework.name, framework.version, "", "", "", "not installed", fix)
            )
        lines.extend(own_lines)
    return lines


def _lines(spec: Spec) -> Iterator[Listed]:
    for key, named in home.read_named().items():
        name = parse(key)
        if name.framework == spec.name:
            gone = not places.is_spec(named.place) and not os.path.exists(named.place)
            fix = f"{named.place} is gone: `refkernels env remove {key}`" if gone else ""
            state = "broken" if gone else "ready"
            version = named.version or name.version
            yield Listed(spec.name, version, named.python, named.place, "named", state, fix)
    if running := _running(spec):
        python_version = sys.version.split()[0]
        yield Listed(spec.name, running.version, python_version, running.python, "running", "ready")
    for machine in ("", *emulation.MACHINES):
        for version, environment in _managed(_owner(spec.name, machine)):
            yield _line_of(spec, version, environment, machine)


def _line_of(spec: Spec, version: str, environment: Path, machine: str) -> Listed:
    """The line of a managed environment."""
    name = _target(spec.name, machine)
    content = creation.marker(environment)
    if content is None:
        arguments = _create_arguments(f"{spec.name}=={version}", machine)
        fix = f"its creation was interrupted: `refkernels env create {arguments}`"
        return Listed(name, version, "", str(environment), "managed", "broken", fix)
    version, python = content.get("version", version), content.get("python", "")
    path = str(creation.python_of(environment))
    return Listed(name, version, python, path, "managed", "ready")


def _all_interpreters(spec: Spec) -> Iterator[Interpreter]:
    """Every interpreter that has the framework, in any version. For a spec without a version, only
    those that the bare name means."""
    if spec.framework.python:
        yield Interpreter(spec, spec.framework.python, "named", spec.version)
    named = home.read_named()
    for key in sorted(named, key=lambda key: key != str(spec)):
        name = parse(key)
        if name.framework == spec.name and (spec.version or not name.version):
            yield Interpreter(spec, named[key].place, "named", named[key].version or name.version)
    if running := _running(spec):
        yield running
    yield from _managed_interpreters(spec, "")


def _managed_interpreters(spec: Spec, machine: str) -> Iterator[Interpreter]:
    """Those of managed environments for a machine, that of the default version first."""
    default = spec.framework.machines.get(machine) or spec.framework.version
    folders = _managed(_owner(spec.name, machine))
    for version, environment in sorted(folders, key=lambda entry: entry[0] != default):
        if _recorded_version(environment) and (spec.version or version == (default or version)):
            yield _interpreter_in(environment, spec)


def _interpreter_in(environment: Path, spec: Spec) -> Interpreter:
    """The interpreter of a managed environment."""
    content = creation.marker(environment) or {}
    python, version = str(creation.python_of(environment)), _recorded_version(environment)
    return Interpreter(spec, python, "managed", version, content.get("emulator", ""))


def _running(spec: Spec) -> Interpreter | None:
    """The running interpreter, if it has the framework; this does not import the framework."""
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


def _owner(name: str, machine: str) -> str:
    """The first part of the name of a managed environment's folder."""
    return f"{name}@{machine}" if machine else name


def _target(name: str, machine: str) -> str:
    return f"{name}@{emulation.SETTING}={machine}" if machine else name


def _create_arguments(name: str, machine: str) -> str:
    """The words that name an environment to `refkernels env create`."""
    return name + (f" --machine {machine}" if machine else "")


def _folder(name: str, version: str) -> Path:
    return home.home() / "environments" / f"{name}-{version or 'newest'}"


def _managed(name: str) -> list[tuple[str, Path]]:
    """(version, folder) of the managed environments of a framework, complete or not."""
    folder = home.home() / "environments"
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    parts = [(*entry.name.rpartition("-"), entry) for entry in entries if entry.is_dir()]
    return [(version, entry) for owner, _, version, entry in parts if owner == name]


def _recorded_version(environment: Path) -> str:
    """The framework's version in a complete environment, "" for an incomplete one."""
    content = creation.marker(environment)
    return "" if content is None else content.get("version", environment.name.rpartition("-")[2])


def _suggested_fix(spec: Spec, machine: str = "") -> str:
    default_version = spec.framework.machines.get(machine) or spec.framework.version
    interrupted = [
        environment
        for version, environment in _managed(_owner(spec.name, machine))
        if version == (spec.version or default_version)
    ]
    problem = "its creation was interrupted" if interrupted else "is not installed"
    target, arguments = _target(str(spec), machine), _create_arguments(str(spec), machine)
    fix = f"{target} {problem}: run `refkernels env create {arguments}`"
    if machine:
        return fix
    return f"{fix}, or name a Python that has it with `refkernels env add {spec} PYTHON`"
