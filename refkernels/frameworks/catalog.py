"""The catalog of frameworks: their names, and the pins with which each version works.

A framework is one adapter file and one :class:`Framework` record.  The records come from

* this package (`BUILTIN`, from `builtin.json`);
* an entry point of group ``refkernels.frameworks`` in any installed distribution, whose object is a
  `Framework` or a function that returns one (no change to this package is needed)::

      [project.entry-points."refkernels.frameworks"]
      myframework = "mypackage.refkernels_support:FRAMEWORK"

* `register`, for the running process (tests plant faulty frameworks this way).

Names on the command line are ``NAME`` or ``NAME==VERSION``; where a framework is run, settings and
a device may follow (`target_names`).  Several targets of one framework may be measured side by
side. 2.13.0 means any build of that version, 2.13.0+cpu only that build (`versions`)."""

from __future__ import annotations

import functools
import importlib.metadata
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from refkernels.frameworks import kernels
from refkernels.frameworks.adapters import flags_of, source_of
from refkernels.suggestion import did_you_mean, quoted
from refkernels.target_names import TargetName, TargetNameError, parse, short

REMOTE = Path(__file__).parent / "remote"
ENTRY_POINT_GROUP = "refkernels.frameworks"


class FrameworkError(Exception):
    """A problem with a framework that the user can solve: one sentence, with a suggested fix."""


class UnknownFramework(FrameworkError, LookupError):
    """No framework of that name is in the catalog."""


@dataclass(frozen=True)
class Pin:
    """The needs of a range of versions: what it takes to install and import them.

    `versions` and `python` are PEP 440 specifiers; `requirements` are pip requirements in addition
    to the framework's own distribution.
    """

    versions: str = ""
    python: str = ">=3.8"
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Framework:
    """One framework: how to talk to it (`adapter`) and where it comes from.

    name          the name that the user types and that records hold
    adapter       the adapter file, sent to the framework's interpreter as source
    module        import name (default: name)
    distributions names on the package index: the first is what `create` installs, the others (a GPU
                  build, say) are accepted where they are already installed
    version       the version that `create` installs when the user names none; "" for the newest
    requirements  pip requirements in addition to the distribution (of every version)
    pins          the needs of ranges of versions; the first range that contains a version counts
    machines      {machine: version}: what `create` installs for an emulated machine that has no
                  usable wheel of `version`
    python        an interpreter's path or an execnet spec, which skips the search
    on_host       the host's own interpreter always has it (NumPy)
    in_system     no distribution: the machine has it, and so has every interpreter (libm)
    kernel        the facts that the adapter needs about a user's kernel (`kernels`)
    """

    name: str
    adapter: Path
    module: str = ""
    distributions: tuple[str, ...] = ()
    version: str = ""
    requirements: tuple[str, ...] = ()
    pins: tuple[Pin, ...] = ()
    machines: Mapping[str, str] = field(default_factory=dict, hash=False)
    python: str | None = None
    on_host: bool = False
    in_system: bool = False
    kernel: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.name and self.kernel is None:  # without one it gets the name of its entry point
            TargetName(self.name)  # raises for a name that no user could type
        object.__setattr__(self, "adapter", Path(self.adapter))
        if not self.module:
            object.__setattr__(self, "module", self.name)
        if not self.distributions:
            object.__setattr__(self, "distributions", (self.module,))

    def source(self) -> str:
        """The adapter, as it is sent to the interpreter."""
        text = source_of(self.adapter)
        return text if self.kernel is None else f"{text}\nbegin({dict(self.kernel)!r})\n"

    def pin(self, version: str) -> Pin:
        """The needs of `version`; "" is the newest, whose needs are those of the first pin."""
        from packaging.specifiers import SpecifierSet

        for pin in self.pins:
            if version and SpecifierSet(pin.versions).contains(version, prereleases=True):
                return pin
        return self.pins[0] if self.pins and not version else Pin()

    def pip_requirements(self, version: str) -> tuple[str, ...]:
        """The arguments of `pip install`: the distribution at `version`, and its requirements."""
        distribution = self.distributions[0] + (f"=={version}" if version else "")
        return (distribution, *self.requirements, *self.pin(version).requirements)


@dataclass(frozen=True)
class Spec:
    """A framework as the user named it, with a version or without ("")."""

    framework: Framework
    version: str = ""

    @property
    def name(self) -> str:
        return self.framework.name

    def __str__(self) -> str:
        return f"{self.name}=={self.version}" if self.version else self.name


def _built_in() -> Iterator[Framework]:
    """Those of `builtin.json`, by name; `about` says why an entry needs what it does."""
    table = json.loads((Path(__file__).parent / "builtin.json").read_text(encoding="utf-8"))
    for name, entry in table.items():
        pins = tuple(Pin(**_arguments(pin)) for pin in entry.pop("pins", ()))
        yield Framework(name, REMOTE / f"{name}_adapter.py", pins=pins, **_arguments(entry))


def _arguments(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in entry.items()
        if name != "about"
    }


BUILTIN = tuple(_built_in())
_registered: dict[str, Framework] = {}
_broken: dict[str, str] = {}  # entry points that cannot be loaded, each with the reason


def register(framework: Framework, *, replace_existing: bool = False) -> Framework:
    """Add `framework` to this process's catalog; raise `ValueError` if its name is taken."""
    if framework.name in _frameworks() and not replace_existing:
        raise ValueError(f"a framework named {framework.name!r} is already in the catalog")
    _registered[framework.name] = framework
    return framework


def unregister(name: str) -> None:
    """Undo `register`."""
    _registered.pop(name, None)


def frameworks() -> Iterator[Framework]:
    """Every framework of the catalog: built in, from entry points, registered."""
    yield from _frameworks().values()


def names() -> list[str]:
    return list(_frameworks())


def get(spec: str | Spec | Framework) -> Spec:
    """The framework that ``NAME`` or ``NAME==VERSION`` means; raise `UnknownFramework`, or
    `TypeError` for an argument that is not a name."""
    if isinstance(spec, Spec):
        return spec
    if isinstance(spec, Framework):
        return Spec(spec)
    framework, name = target(spec)
    machine = dict(name.settings).get("machine")
    if machine and len(name.settings) == 1 and not name.device:
        raise UnknownFramework(f"{quoted(spec)} is a target: write {framework} --machine {machine}")
    if name.settings or name.device:
        raise UnknownFramework(
            f"{quoted(spec)} is a target: give {framework} alone, without settings or device"
        )
    return framework


def target(text: str) -> tuple[Spec, TargetName]:
    """The framework that a target's name means, and the parsed name.

    A kernel is a framework of one op (`kernels`). Raises `UnknownFramework` for text that is not a
    name, for a framework that is not in the catalog and a kernel that cannot be run; TypeError for
    an argument that is not a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"a target's name is a string, not a {type(text).__name__}")
    try:
        name = parse(text)
    except TargetNameError as error:
        raise UnknownFramework(str(error)) from None
    if name.kernel is not None:
        kernel = _of_kernel(name)
        _check_flags(kernel, name)
        return Spec(kernel), name
    by_name = _frameworks()
    if name.framework not in by_name and name.framework in _broken:
        raise UnknownFramework(_broken[name.framework])
    if name.framework not in by_name:
        raise UnknownFramework(
            f"no framework is named {quoted(name.framework)}: "
            f"{did_you_mean(name.framework, by_name)} "
            f"(an entry point of group {ENTRY_POINT_GROUP!r} adds one)"
        )
    _check_flags(by_name[name.framework], name)
    return Spec(by_name[name.framework], name.version), name


def _check_flags(framework: Framework, name: TargetName) -> None:
    """Refuse a flag in a target's own name that only other frameworks have: it would be left out,
    and the name would be untrue. A flag that none has is refused where the session starts."""
    flags = [key for key, _ in name.settings if key == key.lower() and key != "machine"]
    own = flags_of(framework.adapter) if flags else frozenset()
    for key in flags:
        if key not in own and _is_flag_of_another(key):
            raise UnknownFramework(
                f"{short(str(name))}: {framework.name} has no flag {key} (its flags: "
                f"{', '.join(sorted(own)) or 'none'}); environment variables are in upper case"
            )


def _is_flag_of_another(key: str) -> bool:
    return any(key in flags_of(framework.adapter) for framework in frameworks())


def _of_kernel(name: TargetName) -> Framework:
    try:
        kernel = kernels.read(name)
    except kernels.KernelError as error:
        raise UnknownFramework(str(error)) from None
    adapter, python = REMOTE / "kernel_adapter.py", kernel.python or None
    return Framework(str(name.kernel), adapter, python=python, kernel=kernel.literals)


def _frameworks() -> dict[str, Framework]:
    return {
        framework.name: framework
        for framework in (*BUILTIN, *_from_entry_points(), *_registered.values())
    }


@functools.cache
def _from_entry_points() -> tuple[Framework, ...]:
    """The frameworks of installed packages. One that cannot be loaded does not stop the others; its
    reason is in `_broken`."""
    frameworks = []
    for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        try:
            target = entry.load()
            framework = target if isinstance(target, Framework) else target()
            frameworks.append(replace(framework, name=framework.name or entry.name))
        except Exception as error:
            line = (str(error).strip().splitlines() or [""])[0]
            package = entry.dist.name if entry.dist else "a package"
            _broken[entry.name] = (
                f"{entry.name} cannot be loaded from {package}'s entry point {entry.value} "
                f"({type(error).__name__}: {line}): repair or uninstall {package}"
            )
    return tuple(frameworks)
