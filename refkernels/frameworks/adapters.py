"""An adapter's source, and facts read from it without running it: the framework need not be
installed."""

from __future__ import annotations

import ast
import functools
import re
import threading
from collections.abc import Iterator
from pathlib import Path

# Python 3.11 shares one depth counter among all threads that build trees (python/cpython#106905):
# building two at a time occasionally raises SystemError.
_ONE_TREE = threading.Lock()


_SHARED = Path(__file__).parent / "remote" / "shared.py"
_IMPORT = re.compile(r"^from shared import (\([^)]*\)|.*)$", re.MULTILINE)


def source_of(adapter: Path) -> str:
    """The adapter in one text: with what it shares with others in the place of its import."""
    text = adapter.read_text(encoding="utf-8")
    return _IMPORT.sub(lambda _: _SHARED.read_text(encoding="utf-8"), text, count=1)


@functools.cache
def flags_of(adapter: Path) -> frozenset[str]:
    """The keys of the adapter's FLAGS."""
    return frozenset(table_of(adapter, "FLAGS"))


@functools.cache
def ops_of(adapter: Path) -> dict[str, str | None]:
    """The adapter's ops, each with the reason why the framework lacks it (None: it has it)."""
    reasons: dict[str, str | None] = {}
    for name, value in table_of(adapter, "OPS").items():
        second = value.elts[1] if isinstance(value, ast.Tuple) and len(value.elts) > 1 else None
        constant = second.value if isinstance(second, ast.Constant) else None
        reasons[name] = constant if isinstance(constant, str) else None
    return reasons


def table_of(adapter: Path, name: str) -> dict[str, ast.expr]:
    """The literal keys of one of the module's dicts, with their values, and the entries that a call
    in it makes of the words of its last argument."""
    source = adapter.read_text(encoding="utf-8")
    with _ONE_TREE:
        tree = ast.parse(source, str(adapter))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if names == [name]:
                pairs = zip(node.value.keys, node.value.values, strict=True)
                return dict(entry for pair in pairs for entry in _entries(*pair))
    return {}


def _entries(key: ast.expr | None, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(key, ast.Constant):
        yield str(key.value), value
    elif isinstance(value, ast.Call):
        kind, *first, words = map(ast.unparse, (value.func, *value.args))
        for name in ast.literal_eval(words).split():
            call = f"lambda x: {first[0]}.{name}(x)" if kind == "named" else f"{kind}({name!r})"
            yield name, ast.parse(f"('y', {call})", mode="eval").body
