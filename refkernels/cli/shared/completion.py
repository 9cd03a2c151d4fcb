"""Shell completions of ops, frameworks, dtypes and cases. The user waits, so each is fast."""

from __future__ import annotations

from collections.abc import Iterable


def ops(incomplete: str) -> list[str]:
    """The ops, read from the adapters: importing the oracles would take ten times as long."""
    from refkernels.frameworks import adapters, catalog

    names = {op for framework in catalog.BUILTIN for op in adapters.ops_of(framework.adapter)}
    return _starting_with(sorted(names), incomplete)


def frameworks(incomplete: str) -> list[str]:
    """The names of the catalog; after NAME== the installed versions."""
    from refkernels.frameworks import catalog, environments

    if "==" not in incomplete:
        return _starting_with(catalog.names(), incomplete)
    lines = environments.listing()
    return _starting_with(
        (f"{line.name}=={line.version}" for line in lines if line.version), incomplete
    )


def dtypes(incomplete: str) -> list[str]:
    """The four dtypes."""
    from refkernels.records.words import DTYPES

    return _starting_with(DTYPES, incomplete)


def levels(incomplete: str) -> list[str]:
    """The levels of --fail-on."""
    from refkernels.records.words import LEVELS

    return _starting_with(LEVELS[:-1], incomplete)  # every output reaches the last level


def cases(incomplete: str) -> list[str]:
    """The ops' names up to the slash, then the cases of one op."""
    from refkernels import registry

    op, slash, _ = incomplete.partition("/")
    if not slash:
        return [f"{name}/" for name in ops(incomplete)]
    if op not in registry.ops():
        return []
    return _starting_with((case.name for case in registry.get(op).cases()), incomplete)


def _starting_with(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
