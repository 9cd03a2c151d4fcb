"""PEP 440's comparison of versions: 2.13.0 means each of its builds, 2.13.0+cpu only that build."""

from __future__ import annotations


def fits(installed: str, wanted: str) -> bool:
    """Whether the version `installed` is one that `wanted` means.

    Every version fits a `wanted` of ""; the unknown version "" fits nothing else.  A version
    outside PEP 440 fits only itself.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    if not wanted or installed == wanted:
        return True
    try:
        return SpecifierSet(f"=={wanted}").contains(installed, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def may_fit(recorded: str, wanted: str) -> bool:
    """Whether an installation recorded as `recorded` may report a version that fits.

    A package's metadata often lacks the local label that the package itself reports: torch's wheel
    2.13.0 on PyPI reports 2.13.0+cu126.  An unrecorded version ("") may be any.
    """
    unlabelled = "+" not in recorded and fits(recorded, wanted.partition("+")[0])
    return not recorded or unlabelled or fits(recorded, wanted)
