"""What the shell completes: ops, frameworks, dtypes, cases. Each answers while somebody waits."""

from __future__ import annotations

from collections.abc import Iterable


def ops(incomplete: str) -> list[str]:
    """The ops, read from NumPy's adapter: importing the oracles would take ten times as long."""
    from refkernels.frameworks import adapters, catalog

    names = adapters.ops_of(catalog.get("numpy").framework.adapter)
    return _begun(names, incomplete)


def frameworks(incomplete: str) -> list[str]:
    """The names of the catalog; after NAME== the versions that are here."""
    from refkernels.frameworks import catalog, environments

    if "==" not in incomplete:
        return _begun(catalog.names(), incomplete)
    here = environments.listing()
    return _begun((f"{one.name}=={one.version}" for one in here if one.version), incomplete)


def dtypes(incomplete: str) -> list[str]:
    """The four dtypes."""
    from refkernels.records.words import DTYPES

    return _begun(DTYPES, incomplete)


def levels(incomplete: str) -> list[str]:
    """The levels of --fail-on."""
    from refkernels.records.words import LEVELS

    return _begun(LEVELS[:-1], incomplete)  # every output is at the last one


def cases(incomplete: str) -> list[str]:
    """The ops' names up to the slash, then the cases of one op."""
    from refkernels import registry

    op, slash, _ = incomplete.partition("/")
    if not slash:
        return [f"{name}/" for name in ops(incomplete)]
    if op not in registry.ops():
        return []
    return _begun((case.name for case in registry.get(op).cases()), incomplete)


def _begun(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
