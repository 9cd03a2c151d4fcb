"""Makes a managed environment: a virtual environment with one framework in it.

`venv` makes it and `pip` fills it, so the user's own pip configuration and mirrors apply.  A
virtual environment cannot be moved, so it is built where it will stay, and it counts as complete
only once its marker file exists.  The marker is written, whole, after the framework has been
imported, so that an interrupted creation is never taken for a complete one.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from refkernels.frameworks import signals
from refkernels.frameworks.catalog import FrameworkError, Spec
from refkernels.frameworks.locks import try_lock
from refkernels.records.files import write_whole

MARKER = "refkernels-complete.json"
Progress = Callable[[str], None]
_ERRORS = ("error", "e: ")  # how pip's and apt's begin, in lower case
_LEAST_FREE = 1 << 20  # bytes: a disk with less is full
_LINES_SHOWN = 200  # lines of a step that failed


class CreationFailed(FrameworkError):
    """An environment could not be made; the message is one sentence with a suggested fix."""


class NoFittingPython(CreationFailed):
    """This machine has no Python that fits the framework's wheels."""


class NoDistribution(CreationFailed):
    """The package index has no build of the framework for this Python and machine."""


def python_of(environment: Path) -> Path:
    """The interpreter of the virtual environment at `environment`."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def marker(environment: Path) -> dict[str, str] | None:
    """The marker of a complete environment; None where it is missing or was interrupted."""
    try:
        content = json.loads((environment / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if python_of(environment).exists() else None


def build(spec: Spec, version: str, environment: Path, progress: Progress) -> None:
    """Make `environment` with `spec`'s framework at `version`; raise `CreationFailed`.

    It takes the first fitting Python for which the package index has a build.
    """
    with locked(environment, progress):
        if marker(environment) is not None:
            return
        missing: NoDistribution | None = None
        for python in _fitting_pythons(spec.framework.pin(version).python):
            try:
                _build_with(python, spec, version, environment, progress)
            except NoDistribution as error:
                missing = missing or error
                continue
            return
        if missing is not None:
            raise missing
        raise NoFittingPython(
            f"no Python {spec.framework.pin(version).python} that runs was found for {spec}: "
            f"install one (with pyenv, uv or your system's packages), then run "
            f"`refkernels env create {spec}`"
        )


def erase(environment: Path) -> None:
    """Remove an environment, its marker first, so that a half removed one counts as missing."""
    with contextlib.suppress(FileNotFoundError):
        (environment / MARKER).unlink()
    if environment.exists():
        shutil.rmtree(environment)


def _build_with(
    python: str, spec: Spec, version: str, environment: Path, progress: Progress
) -> None:
    requirements = spec.framework.pip_requirements(version)
    started = time.monotonic()
    try:
        erase(environment)
        environment.parent.mkdir(parents=True, exist_ok=True)
        progress(f"{spec}: pip install {' '.join(requirements)} into {environment}, with {python}")
        checked([python, "-m", "venv", str(environment)], spec, progress)
        own_python = str(python_of(environment))
        # Most of its thousands of modules are never imported; Python compiles the others on import.
        install = ["-m", "pip", "install", "--no-compile", "--progress-bar", "off", "--no-input"]
        checked([own_python, *install, *requirements], spec, progress)
        write_marker(environment, verify(spec, own_python))
        progress(f"{spec}: ready after {time.monotonic() - started:.0f} s")
    except OSError as error:
        raise unwritten(spec, environment, error) from error
    except CreationFailed as error:  # `python -m venv` does not say that the disk is full
        if shutil.disk_usage(environment.parent).free < _LEAST_FREE:
            raise disk_full(spec) from error
        raise


def checked(
    command: list[str],
    spec: Spec,
    progress: Progress,
    environment: dict[str, str] | None = None,
    step: str = "",
    place: str = "",
) -> str:
    """Run a command and return its output; if it fails, raise one sentence with the line that names
    the cause. `step` and `place` name the command, and what it installs for, in that sentence; by
    default its first words, and its program."""
    completed = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment or clean_environment(),
    )
    if completed.returncode != 0:
        lines = [line for line in completed.stdout.splitlines() if line.strip()][-_LINES_SHOWN:]
        for line in lines:
            progress(f"{spec}: {line.rstrip()}")
        words = step or f"{' '.join(command[1:5])} ..."
        if completed.returncode < 0:
            ended = signals.name(-completed.returncode)
            raise CreationFailed(f"`{words}` for {spec} was ended by {ended}: try again")
        raise _failure(spec, words, place or command[0], lines)
    return completed.stdout


def _failure(spec: Spec, step: str, place: str, lines: list[str]) -> CreationFailed:
    text = "\n".join(lines)
    if "No space left on device" in text:
        return disk_full(spec)
    errors = [line for line in lines if line.lstrip().lower().startswith(_ERRORS)]
    last_line = (errors or lines or ["no output"])[-1].strip()
    if "No matching distribution" in text:
        return NoDistribution(
            f"pip found no build of {spec} for {place}: {last_line} (check the version, the index "
            "that pip uses, for PyPI has no builds with a label such as +cpu, and the network)"
        )
    return CreationFailed(f"`{step}` failed for {spec}: {last_line}")


def disk_full(spec: Spec) -> CreationFailed:
    return CreationFailed(
        f"the disk filled up while {spec} was installed: free some space (each framework takes 1 "
        "to 5 GB), or set REFKERNELS_HOME to a larger disk, and try again"
    )


def unwritten(spec: Spec, environment: Path, error: OSError) -> CreationFailed:
    """The failure to raise for an error of the file system."""
    if error.errno == errno.ENOSPC:
        return disk_full(spec)
    return CreationFailed(f"making {environment} failed: {error}")


def verify(spec: Spec, python: str) -> dict[str, str]:
    """Import the framework in its new environment; returns the versions that it reports."""
    module = spec.framework.module
    code = (
        f"import json, sys, {module} as m, numpy\n"
        "print('\\n' + json.dumps({'version': str(m.__version__), "
        "'python': sys.version.split()[0], 'numpy': numpy.__version__}))"
    )
    completed = subprocess.run(
        [python, "-c", code],
        capture_output=True,
        text=True,
        errors="replace",
        env=clean_environment(),
    )
    if completed.returncode != 0:
        last_line = (
            completed.stderr.strip().splitlines() or [f"exit status {completed.returncode}"]
        )[-1]
        raise CreationFailed(
            f"{spec} was installed but `import {module}` fails: {last_line} "
            f"(another version may work: `refkernels env create {spec.name}==VERSION`)"
        )
    content: dict[str, str] = json.loads(completed.stdout.strip().splitlines()[-1])
    return content


def write_marker(environment: Path, content: dict[str, str]) -> None:
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_whole(environment / MARKER, json.dumps({**content, "created": created}))


def clean_environment() -> dict[str, str]:
    """The user's environment without the variables that would let in another Python's packages,
    or prevent compiled modules from being kept."""
    dropped = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSTARTUP"}
    dropped.add("PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in dropped}


def _fitting_pythons(versions: str) -> Iterator[str]:
    """Interpreters that run, have venv and fit: one of each minor version, the best first.

    The running Python's base comes first (the user works with its version), then those that
    findpython finds, in its order.
    """
    from packaging.specifiers import SpecifierSet

    fits = SpecifierSet(versions)
    minors: set[str] = set()
    for candidate in _candidates():
        version = _version_if_usable(candidate)
        if version is None or not fits.contains(version, prereleases=True):
            continue
        minor = version.rpartition(".")[0]
        if minor not in minors:
            minors.add(minor)
            yield candidate


def _candidates() -> Iterator[str]:
    yield getattr(sys, "_base_executable", None) or sys.executable
    import findpython

    # findpython runs each to ask for its path, and skips those that do not run.
    for python in findpython.find_all():
        with contextlib.suppress(Exception):
            if python.is_valid():
                yield str(python.interpreter)


def _version_if_usable(python: str) -> str | None:
    """X.Y.Z of an interpreter that runs and can make virtual environments with pip."""
    code = "import sys, venv, ensurepip; print('%d.%d.%d' % sys.version_info[:3])"
    try:
        completed = subprocess.run(
            [python, "-c", code],
            capture_output=True,
            text=True,
            timeout=30,
            env=clean_environment(),
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip() if completed.returncode == 0 else None


@contextlib.contextmanager
def locked(environment: Path, progress: Progress) -> Iterator[None]:
    """Hold the environment's lock; the system releases it however the holder ends."""
    try:
        environment.parent.mkdir(parents=True, exist_ok=True)
        file = (environment.parent / f"{environment.name}.lock").open("a+b")
    except OSError as error:
        raise CreationFailed(
            f"{environment} cannot be made ({error.strerror}): make its folder writable, or set "
            "REFKERNELS_HOME to a writable folder"
        ) from None
    with file:
        if not try_lock(file.fileno()):
            progress(f"waiting for another process that is making {environment}")
            while not try_lock(file.fileno()):
                time.sleep(0.2)
        yield
