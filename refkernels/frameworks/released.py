"""The released versions of a framework, as pip lists them under the user's configuration."""

from __future__ import annotations

import re
import subprocess
import sys

from packaging.version import InvalidVersion, Version

from refkernels.frameworks.catalog import FrameworkError, Spec
from refkernels.frameworks.creation import clean_environment

_LISTED = re.compile(r"Available versions:\s*(.+)")


def versions(spec: Spec, wanted: str) -> list[str]:
    """The versions that `wanted` names, oldest first.

    wanted  "1.9..2.13", the releases of the package index from 1.9 to any 2.13; "1.9.0,2.6.0",
            exactly these; either side of the dots may be empty

    Raises FrameworkError if `wanted` is malformed, if the index does not answer and if it has
    fewer than two such versions.
    """
    first, dots, last = (part.strip() for part in wanted.partition(".."))
    try:
        if dots:
            ends = [Version(end) if end else None for end in (first, last)]
            parsed = [version for version in _released(spec) if _within(version, *ends)]
        else:
            parsed = [Version(part.strip()) for part in wanted.split(",")]
    except InvalidVersion as error:
        raise FrameworkError(
            f"--versions {wanted!r}: {error}: write 1.9..2.13, or 1.9.0,2.6.0"
        ) from None
    releases = [str(version) for version in sorted(set(parsed))]
    if len(releases) < 2:
        meaning = releases[0] if releases else "none"
        raise FrameworkError(
            f"--versions {wanted!r} means {meaning} of the versions of {spec.name}: at least two "
            "are needed"
        )
    return releases


def _within(version: Version, first: Version | None, last: Version | None) -> bool:
    above = first is None or version >= first
    if last is None:
        return above
    return above and (version <= last or version.release[: len(last.release)] == last.release)


def _released(spec: Spec) -> list[Version]:
    """The final releases for this Python and platform. Those that pip would compile count only
    where there are no others: each takes minutes, and most of them fail."""
    distribution = spec.framework.distributions[0]
    command = [sys.executable, "-m", "pip", "index", "versions", distribution]
    command.append("--disable-pip-version-check")
    for words in ([*command, "--only-binary", ":all:"], command):
        completed = subprocess.run(
            words, capture_output=True, text=True, errors="replace", env=clean_environment()
        )
        if match := _LISTED.search(completed.stdout):
            releases = [Version(part.strip()) for part in match[1].split(",")]
            return [version for version in releases if not version.is_prerelease]
    last_line = (completed.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    raise FrameworkError(
        f"`pip index versions {distribution}` lists nothing ({last_line}): name the versions, "
        "such as --versions 1.9.0,2.6.0"
    )
