"""What an adapter's source says of it: the framework need not be there, and nothing is run."""

from __future__ import annotations

import ast
import functools
import threading
from pathlib import Path

# Python 3.11 counts the depth of trees that it builds once for all threads (python/cpython#106905):
# two at a time end in a SystemError now and then.
_ONE_TREE = threading.Lock()


@functools.cache
def flags_of(adapter: Path) -> frozenset[str]:
    """The keys of its FLAGS."""
    return frozenset(str(key) for key, _ in _table(adapter, "FLAGS"))


@functools.cache
def ops_of(adapter: Path) -> dict[str, str | None]:
    """Its ops, each with the reason why the framework does not have it, None where it does."""
    found: dict[str, str | None] = {}
    for name, value in _table(adapter, "OPS"):
        what = value.elts[1] if isinstance(value, ast.Tuple) and len(value.elts) > 1 else None
        reason = what.value if isinstance(what, ast.Constant) else None
        found[name] = reason if isinstance(reason, str) else None
    return found


def _table(adapter: Path, name: str) -> list[tuple[str, ast.expr]]:
    """The literal keys of a dict of the module, with their values."""
    source = adapter.read_text(encoding="utf-8")
    with _ONE_TREE:
        tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if names == [name]:
                pairs = zip(node.value.keys, node.value.values, strict=True)
                return [(str(k.value), v) for k, v in pairs if isinstance(k, ast.Constant)]
    return []
