"""Versions as PEP 440 compares them: 2.13.0 means every build of it, 2.13.0+cpu that one alone."""

from __future__ import annotations


def fits(found: str, wanted: str) -> bool:
    """Whether `found` is a version that `wanted` means; "" wants any, and is fitted by none else.

    A version that is none of PEP 440's fits itself.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    if not wanted or found == wanted:
        return True
    try:
        return SpecifierSet(f"=={wanted}").contains(found, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def may_fit(recorded: str, wanted: str) -> bool:
    """Whether an installation that is recorded as `recorded` may tell a version that fits.

    A package's metadata often lacks the local label that the package itself tells: torch's wheel
    2.13.0 on PyPI says 2.13.0+cu126.  Nothing recorded ("") may be any version.
    """
    unlabelled = "+" not in recorded and fits(recorded, wanted.partition("+")[0])
    return not recorded or unlabelled or fits(recorded, wanted)
