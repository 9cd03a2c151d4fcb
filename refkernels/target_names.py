"""Target names: a framework or kernel, with its version, its settings and its device.

    torch    torch==2.6.0    torch==2.13.0+cpu              a framework, in a version
    torch@ATEN_CPU_CAPABILITY=avx2,num_threads=1            under settings
    paddle:gpu:0                                            on a device
    torch==2.6.0@OMP_NUM_THREADS=1:cuda:0                   all of them, in this order
    ./my_kernels.py:layernorm    C:\\kernels\\mine.py:f       a kernel: a function of a file

    target   = (framework ["==" version] | file ":" function) ["@" settings] [":" device]
    settings = name "=" value {"," name "=" value}          each name once
    device   = kind [":" index]                             kind in lower case: cpu, cuda:0, gpu:1

A setting in lower case is a flag of the framework's adapter, any other an environment variable.
Versions follow PEP 440. Files end in .py, .so, .dylib or .dll. Within a value, % , : and @ are
written %25 %2C %3A %40, and an = at the start or after another = is written %3D. Within a file's
name, % and @ are written likewise, and every colon except a drive's. `parse(str(name)) == name`
for every name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import quote, unquote

EXAMPLES = "torch, torch==2.6.0, torch@OMP_NUM_THREADS=1, paddle:gpu:0 or ./kernels.py:layernorm"
_FILE = r"\.(?:py|so(?:\.\d+)*|dylib|dll)"
_KERNEL = re.compile(rf"(.+?{_FILE})(?::([^:@]*))?(?=[:@]|$)(.*)", re.IGNORECASE | re.DOTALL)
_FRAMEWORK = re.compile(r"[^@:=/\\%\x00-\x1f]+")
_SET = re.compile(r"[^@:/\\]*@\s*[^\W\d][\w.]*\s*=")  # framework[==version]@name=
_SETTING = re.compile(r"[^\W\d][\w.]*")
_DEVICE = re.compile(r"[a-z][a-z0-9_]*(?::\d+)?", re.ASCII)
_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/])")


class TargetNameError(ValueError):
    """The name of a target is malformed; the message is one sentence with a suggested fix."""


@dataclass(frozen=True)
class KernelPath:
    """A function in a file: ./my_kernels.py:layernorm."""

    file: str
    function: str

    def __str__(self) -> str:
        drive = _DRIVE.match(self.file)
        root = drive[0] if drive else ""
        return f"{root}{_quoted(self.file[len(root) :], '%@:')}:{self.function}"


@dataclass(frozen=True)
class TargetName:
    """The parts of a target's name, of which either `framework` or `kernel` is set; "" is open.

    The version is normalized (PEP 440) and the settings are sorted by name, so two names of one
    target are equal. Raises TargetNameError for parts that no target's name can have.
    """

    framework: str = ""
    version: str = ""
    kernel: KernelPath | None = None
    settings: tuple[tuple[str, str], ...] = ()
    device: str = ""

    def __post_init__(self) -> None:
        if (self.kernel is None) == (not self.framework):
            raise TargetNameError(f"a target is a framework or a kernel: {EXAMPLES}")
        if self.kernel is None:
            _check_framework(self.framework)
        else:
            _check_kernel(self.kernel, self.version)
        version = _normalized_version(self.framework, self.version) if self.version else ""
        object.__setattr__(self, "version", version)
        _check_settings(self.settings)
        object.__setattr__(self, "settings", tuple(sorted(self.settings)))
        if self.device and not _DEVICE.fullmatch(self.device):
            raise TargetNameError(
                f"{self.device!r} is not a device: write a kind in lower case, perhaps with an "
                "index, such as cpu, cuda:0 or gpu:1 (a ':' in a setting's value is written %3A)"
            )

    @property
    def anywhere(self) -> TargetName:
        """The name without its device, which names the target's interpreter."""
        return replace(self, device="")

    def __str__(self) -> str:
        head = self.framework if self.kernel is None else str(self.kernel)
        version = f"=={self.version}" if self.version else ""
        settings = ",".join(f"{name}={_escaped_value(value)}" for name, value in self.settings)
        device = f":{self.device}" if self.device else ""
        return head + version + (f"@{settings}" if settings else "") + device


def parse(text: str) -> TargetName:
    """Parse a name. Raises TargetNameError, with one sentence, for any other text."""
    text = text.strip()
    if not text:
        raise TargetNameError(f"the name of a target is empty: write {EXAMPLES}")
    if not text.isprintable():
        raise TargetNameError(f"{text!r} has a character that cannot be printed: write it as %XX")
    parts = None if _SET.match(text) else _KERNEL.fullmatch(text)
    if parts is not None and (parts[2] is not None or _looks_like_a_path(parts[1])):
        if not parts[2]:
            raise TargetNameError(f"{text!r} names no function: write {parts[1]}:FUNCTION")
        settings, device = _after_the_target(text, parts[3])
        return TargetName(
            kernel=KernelPath(unquote(parts[1]), parts[2].strip()), settings=settings, device=device
        )
    return _framework(text)


def framework_of(text: str) -> str:
    """The framework in a name; the text itself if it is neither a target's name nor a kernel's."""
    try:
        return parse(text).framework or text
    except TargetNameError:
        return text


def is_kernel(text: str) -> bool:
    """Whether a name is a kernel's."""
    try:
        return parse(text).kernel is not None
    except TargetNameError:
        return False


@lru_cache(maxsize=1 << 10)
def short(text: str) -> str:
    """A name as tables show it: a kernel's without its abi, which says only how to call it."""
    try:
        name = parse(text)
    except TargetNameError:
        return text
    shown_settings = tuple(setting for setting in name.settings if setting[0] != "abi")
    return text if name.kernel is None else str(replace(name, settings=shown_settings))


def _framework(text: str) -> TargetName:
    head = re.split("[@:]", text, maxsplit=1)[0]
    settings, device = _after_the_target(text, text[len(head) :])
    name, equals, version = (part.strip() for part in head.partition("=="))
    if equals and not version:
        raise TargetNameError(f"{text!r} names no version: write {name}==X.Y.Z, or {name} alone")
    if not equals and "=" in name:
        name, _, version = name.partition("=")
        raise TargetNameError(f"{text!r} has one '=': write {name}=={version or 'X.Y.Z'}")
    if not name:
        raise TargetNameError(f"{text!r} names no framework: write {EXAMPLES}")
    return TargetName(name, version, settings=settings, device=device)


def _after_the_target(text: str, tail: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """The settings and the device of "", "@...", ":..." or "@...:..."."""
    settings, colon, device = tail.partition(":")
    if "@" in device:
        raise TargetNameError(
            f"{text!r} has its device before its settings: write the settings first, as in "
            "torch@OMP_NUM_THREADS=1:cuda:0"
        )
    if colon and not device.strip():
        raise TargetNameError(
            f"{text!r} ends in a colon: a device follows it, such as cpu or cuda:0"
        )
    if settings and not settings[1:].strip():
        raise TargetNameError(f"{text!r} has no settings after its '@': NAME=VALUE follows it")
    return tuple(_settings(text, settings[1:])) if settings else (), device.strip()


def _settings(text: str, settings: str) -> Iterator[tuple[str, str]]:
    for part in settings.split(","):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise TargetNameError(
                f"{part.strip()!r} in {text!r} is not a setting: write NAME=VALUE, with commas "
                "between several (a ',' in a value is written %2C)"
            )
        if "@" in value:
            raise TargetNameError(
                f"{text!r} has a second '@': several settings are separated by commas, and an '@' "
                "in a value is written %40"
            )
        if value.startswith("=") or "==" in value:
            raise TargetNameError(
                f"{text!r} has its version after its settings: write the version first, as in "
                "torch==2.6.0@OMP_NUM_THREADS=1 (a second '=' in a value is written %3D)"
            )
        yield name.strip(), unquote(value.strip())


def _check_framework(name: str) -> None:
    if _FRAMEWORK.fullmatch(name) and name == name.strip() and not _looks_like_a_path(name):
        return
    raise TargetNameError(
        f"{name!r} is neither a framework's name nor FILE.py:FUNCTION: write {EXAMPLES}"
    )


def _check_kernel(kernel: KernelPath, version: str) -> None:
    if version:
        raise TargetNameError(f"{kernel} is a kernel, and a kernel has no version: leave it out")
    if not kernel.function.isidentifier():
        raise TargetNameError(
            f"{kernel.function!r} is not the name of a function: write FILE.py:FUNCTION"
        )
    if not _looks_like_a_path(kernel.file) or kernel.file != kernel.file.strip():
        raise TargetNameError(
            f"{kernel.file!r} is not a file of kernels: its name ends in .py, .so, .dylib or .dll"
        )
    _check_text(kernel.file)


def _check_settings(settings: tuple[tuple[str, str], ...]) -> None:
    names = [name for name, _ in settings]
    if invalid := [name for name in names if not _SETTING.fullmatch(name)]:
        raise TargetNameError(
            f"{invalid[0]!r} is not the name of an environment variable or flag: write letters, "
            "digits, underscores and dots"
        )
    if repeated := [name for name in names if names.count(name) > 1]:
        raise TargetNameError(f"{repeated[0]} is set twice: leave one of them out")
    for _, value in settings:
        _check_text(value)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TargetNameError(f"{text!r} is not Unicode text: rename it") from None


def _looks_like_a_path(text: str) -> bool:
    return re.search(rf".{_FILE}$", text, re.IGNORECASE | re.DOTALL) is not None


def _normalized_version(framework: str, version: str) -> str:
    from packaging.version import InvalidVersion, Version

    try:
        return str(Version(version))
    except InvalidVersion:
        raise TargetNameError(
            f"'{framework}=={version}' names no version: write {framework}==X.Y.Z, or {framework} "
            "alone"
        ) from None


def _escaped_value(value: str) -> str:
    """A setting's value, escaped as the module's docstring says."""
    quoted = _quoted(value, "%,:@")
    return re.sub("^=|(?<==)=", "%3D", quoted)


def _quoted(text: str, special: str) -> str:
    """The text with %XX for special and unprintable characters, and for spaces at its ends."""
    last = len(text) - 1
    return "".join(
        quote(character, safe="")
        if character in special
        or not character.isprintable()
        or (character == " " and place in (0, last))
        else character
        for place, character in enumerate(text)
    )


def merged(settings: Mapping[str, str], name: TargetName) -> dict[str, str]:
    """The settings for all targets, overridden by those in this name."""
    return {**settings, **dict(name.settings)}


def with_setting(name: TargetName, key: str, value: str | None) -> TargetName:
    """The name with one more setting, unless it already has that setting or `value` is None."""
    if value is None or key in dict(name.settings):
        return name
    return replace(name, settings=(*name.settings, (key, value)))
