"""Finds where something changed in a series of versions, by bisection or one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

Usable = Callable[[str], bool]
Changed = Callable[[str, str], bool]


def boundaries(
    versions: Sequence[str], usable: Usable, changed: Changed, every: bool = False
) -> Iterator[tuple[str, str]]:
    """Pairs of neighbouring versions between which something changed, oldest first.

    `usable`: whether a version gives results; it is called once per version, and versions without
    results are skipped. `changed`: whether two usable versions differ. Bisection does not look
    inside a stretch whose ends are alike (n versions with one change: 2 + log2 n are used); `every`
    uses each version.
    """
    known: dict[str, bool] = {}

    def use(version: str) -> bool:
        if version not in known:
            known[version] = usable(version)
        return known[version]

    first = next((at for at, version in enumerate(versions) if use(version)), None)
    if first is None:
        return
    last = next(at for at in range(len(versions) - 1, first - 1, -1) if use(versions[at]))
    if every:
        inside = [version for version in versions[first : last + 1] if use(version)]
        yield from ((old, new) for old, new in itertools.pairwise(inside) if changed(old, new))
    else:
        yield from _halved(versions, first, last, use, changed)


def _halved(
    versions: Sequence[str], low: int, high: int, use: Usable, changed: Changed
) -> Iterator[tuple[str, str]]:
    if low == high or not changed(versions[low], versions[high]):
        return
    middle = (low + high) // 2
    inside = sorted(range(low + 1, high), key=lambda at: abs(at - middle))
    half = next((at for at in inside if use(versions[at])), None)
    if half is None:
        yield versions[low], versions[high]
        return
    yield from _halved(versions, low, half, use, changed)
    yield from _halved(versions, half, high, use, changed)
