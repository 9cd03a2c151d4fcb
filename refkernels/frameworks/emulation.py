"""Makes an environment of another machine: its Python and a framework's wheels, under QEMU.

    environment/machine/       Debian's Python of that machine, its libraries and the wheels
    environment/bin/python     starts that Python under `qemu-aarch64`

apt downloads Debian's packages, with a state of its own; they are unpacked, not installed. pip
chooses the wheels as it would on that machine. Nothing needs root. From outside, the environment is
like any other. Programs in it give that machine's bits, about fifty times more slowly.
"""

from __future__ import annotations

import json
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from refkernels.frameworks import creation
from refkernels.frameworks.catalog import FrameworkError, Spec
from refkernels.frameworks.creation import CreationFailed, NoFittingPython, Progress
from refkernels.suggestion import did_you_mean

SETTING = "machine"  # of a target: torch@machine=aarch64
SLOWDOWN = 50  # of the emulator: importing torch takes 1.2 s, and 66 s emulated


@dataclass(frozen=True)
class Machine:
    """A machine that QEMU emulates.

    name      as `platform.machine()` and wheels give it
    debian    as Debian's packages give it
    """

    name: str
    debian: str

    @property
    def emulator(self) -> str:
        """The program that runs one program of the machine."""
        return f"qemu-{self.name}"


MACHINES = {machine.name: machine for machine in (Machine("aarch64", "arm64"),)}
_PACKAGES = ("python3", "libgomp1", "libstdc++6")  # the last two are needed by wheels
_QEMU = "Debian: apt install qemu-user"
_OLDEST_GLIBC = 17  # of wheels' tags: manylinux_2_17, which is manylinux2014
_VERSIONS = (
    "import json, os, platform; "
    "print(json.dumps([platform.python_version(), os.confstr('CS_GNU_LIBC_VERSION').split()[1]]))"
)
# Runs pip as on that machine: the conditions in requirements query `platform`.
_PIP = """
import platform, runpy, sys
machine, version, *arguments = sys.argv[1:]
platform.machine, platform.python_version = lambda: machine, lambda: version
platform.python_version_tuple = lambda: tuple(version.split("."))
sys.argv = ["pip", *arguments]
runpy.run_module("pip", run_name="__main__")
"""


def foreign(name: str) -> str:
    """The machine of that name, "" for this machine; raise `FrameworkError` for one that cannot be
    emulated."""
    if not name or name == platform.machine():
        return ""
    if name not in MACHINES:
        machines = [*MACHINES, platform.machine()]
        raise FrameworkError(
            f"no machine is named {name!r}: {did_you_mean(name, machines, 'the machines are')}"
        )
    return name


def build(spec: Spec, version: str, environment: Path, machine: str, progress: Progress) -> None:
    """Make `environment` with `spec`'s framework at `version` for `machine`; raise
    `CreationFailed`."""
    with creation.locked(environment, progress):
        if creation.marker(environment) is not None:
            return
        started = time.monotonic()
        try:
            creation.erase(environment)
            _Build(spec, environment, MACHINES[machine], progress).run(version)
        except OSError as error:
            raise creation.unwritten(spec, environment, error) from error
        progress(f"{spec} on {machine}: ready after {time.monotonic() - started:.0f} s")


@dataclass(frozen=True)
class _Build:
    spec: Spec
    environment: Path
    machine: Machine
    progress: Progress

    @property
    def root(self) -> Path:
        return self.environment / "machine"

    def run(self, version: str) -> None:
        emulator = self._program(self.machine.emulator, f"install it ({_QEMU})")
        on_debian = "make the environment on Debian or Ubuntu, whose packages it is made of"
        apt, unpack = self._program("apt-get", on_debian), self._program("dpkg-deb", on_debian)
        self.root.mkdir(parents=True)
        self._report(f"downloading Debian's Python for {self.machine.debian}")
        downloads = self.environment / "debian"
        for package in self._download(apt, downloads):
            self._run("dpkg-deb --extract", [unpack, "--extract", str(package), str(self.root)])
        shutil.rmtree(downloads)
        wrapper = self._write_wrapper(emulator)
        versions = self._run(self.machine.emulator, [wrapper, "-c", _VERSIONS])
        python, glibc = json.loads(versions.splitlines()[-1])
        self._check_python(python, version)
        self._install(python, glibc, version)
        self._report(f"importing {self.spec.framework.module}: a minute or two, emulated")
        content = creation.verify(self.spec, wrapper)
        if self.spec.framework.in_system:
            content["version"] = glibc
        # It prints `qemu-aarch64 version 7.2.22 (Debian ...)`.
        name, _, release, *_ = self._run("--version", [emulator, "--version"]).split()
        about = {"machine": self.machine.name, "emulator": f"{name} {release}"}
        creation.write_marker(self.environment, {**content, **about})

    def _report(self, text: str) -> None:
        self.progress(f"{self.spec} on {self.machine.name}: {text}")

    def _program(self, program: str, fix: str) -> str:
        path = shutil.which(program)
        if path is None:
            raise CreationFailed(
                f"{self.spec} on {self.machine.name} needs {program}, which is not on the PATH: "
                f"{fix}"
            )
        return path

    def _run(
        self, step: str, command: list[str], variables: Mapping[str, str] | None = None
    ) -> str:
        """The output of a step; if it fails, raise one sentence with the line that names the
        cause."""
        clean = {**creation.clean_environment(), **(variables or {})}
        name = self.machine.name
        return creation.checked(command, self.spec, self.progress, clean, step, name)

    def _download(self, apt: str, folder: Path) -> list[Path]:
        """The packages and all that they depend on, with a state of apt's own, so that the
        machine's is neither locked nor changed."""
        for part in ("lists/partial", "archives/partial"):
            (folder / part).mkdir(parents=True)
        (folder / "status").touch()
        (folder / "apt.conf").write_text(
            f'APT::Architecture "{self.machine.debian}";\n'
            f'APT::Architectures {{ "{self.machine.debian}"; }};\n'
            f'Dir::State "{folder}";\nDir::State::lists "{folder}/lists";\n'
            f'Dir::State::status "{folder}/status";\nDir::Cache "{folder}";\n'
            f'Dir::Cache::archives "{folder}/archives";\nDebug::NoLocking "true";\n'
            'APT::Sandbox::User "";\nAcquire::Languages "none";\n',
            encoding="utf-8",
        )
        configured = {"APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}
        self._run("apt-get update", [apt, "--quiet", "update"], configured)
        install = [apt, "--quiet", "--yes", "--download-only", "--no-install-recommends", "install"]
        self._run("apt-get install --download-only", [*install, *_PACKAGES], configured)
        return sorted((folder / "archives").glob("*.deb"))

    def _write_wrapper(self, emulator: str) -> str:
        """Write the environment's interpreter, a script; returns its path."""
        python = next(iter(sorted((self.root / "usr/bin").glob("python3.*[0-9]"))), None)
        if python is None:
            raise CreationFailed(f"Debian's python3 for {self.machine.debian} holds no interpreter")
        if not (self.root / "lib").exists():  # Debian 13 leaves this link to another package
            (self.root / "lib").symlink_to("usr/lib")
        path = creation.python_of(self.environment)
        path.parent.mkdir()
        words = " ".join(map(shlex.quote, [emulator, "-L", str(self.root), str(python)]))
        program = shlex.quote(emulator)
        path.write_text(
            f"#!/bin/sh\n[ -x {program} ] || "
            f'{{ echo "{emulator} is not there: install it ({_QEMU})" >&2; exit 127; }}\n'
            f'export QEMU_CPU="${{QEMU_CPU:-max}}"\nexec {words} "$@"\n',
            encoding="utf-8",
        )
        path.chmod(0o755)
        return str(path)

    def _check_python(self, python: str, version: str) -> None:
        from packaging.specifiers import SpecifierSet

        needed = self.spec.framework.pin(version).python
        if not SpecifierSet(needed).contains(python, prereleases=True):
            raise NoFittingPython(
                f"{self.spec} needs Python {needed}, and Debian's for {self.machine.debian} is "
                f"{python}: name another version, such as {self.spec.name}==X.Y.Z"
            )

    def _install(self, python: str, glibc: str, version: str) -> None:
        requirements = self._requirements(version)
        self._report(f"pip install {' '.join(requirements)}")
        minor = int(glibc.split(".")[1])
        tags = [f"manylinux_2_{n}_{self.machine.name}" for n in range(minor, _OLDEST_GLIBC - 1, -1)]
        tags.append(f"manylinux2014_{self.machine.name}")
        self._run(
            "pip install",
            [
                sys.executable, "-c", _PIP, self.machine.name, python,
                "install", "--no-compile", "--progress-bar", "off", "--no-input",
                "--target", str(self.root / "usr/lib/python3/dist-packages"),
                "--only-binary", ":all:", "--implementation", "cp",
                "--python-version", ".".join(python.split(".")[:2]),
                *(word for tag in tags for word in ("--platform", tag)), *requirements,
            ],
        )  # fmt: skip

    def _requirements(self, version: str) -> tuple[str, ...]:
        framework = self.spec.framework
        if framework.in_system:
            return ("numpy",)
        return framework.pip_requirements(version)


def described(environment: Mapping[str, object], emulator: str) -> dict[str, object]:
    """A record's environment; an emulated processor has no name of its own, only the host's."""
    if not emulator:
        return dict(environment)
    cpu = f"emulated by {emulator} on {environment['cpu']}"
    return {**environment, "cpu": cpu, "emulator": emulator}
