"""Facts read from an adapter's source without running it: the framework need not be installed."""

from __future__ import annotations

import ast
import functools
import threading
from pathlib import Path

# Python 3.11 shares one depth counter among all threads that build trees (python/cpython#106905):
# building two at a time occasionally raises SystemError.
_ONE_TREE = threading.Lock()


@functools.cache
def flags_of(adapter: Path) -> frozenset[str]:
    """The keys of the adapter's FLAGS."""
    return frozenset(str(key) for key, _ in _table(adapter, "FLAGS"))


@functools.cache
def ops_of(adapter: Path) -> dict[str, str | None]:
    """The adapter's ops, each with the reason why the framework lacks it (None: it has it)."""
    reasons: dict[str, str | None] = {}
    for name, value in _table(adapter, "OPS"):
        second = value.elts[1] if isinstance(value, ast.Tuple) and len(value.elts) > 1 else None
        constant = second.value if isinstance(second, ast.Constant) else None
        reasons[name] = constant if isinstance(constant, str) else None
    return reasons


def _table(adapter: Path, name: str) -> list[tuple[str, ast.expr]]:
    """The literal keys of one of the module's dicts, with their values."""
    source = adapter.read_text(encoding="utf-8")
    with _ONE_TREE:
        tree = ast.parse(source, str(adapter))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if names == [name]:
                pairs = zip(node.value.keys, node.value.values, strict=True)
                return [
                    (str(key.value), value) for key, value in pairs if isinstance(key, ast.Constant)
                ]
    return []
