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


_REMOTE = Path(__file__).parent / "remote"
_IMPORT = re.compile(r"^from shared import (\([^)]*\)|.*)$", re.MULTILINE)
_DEFINED = re.compile(r"^def (\w+)\(", re.MULTILINE)
_TABLE = "OPS = {}  # calls.txt\n"


def source_of(adapter: Path) -> str:
    """The adapter in one text: what it shares with others, and its ops, in the place of their
    names. It is read anew each time, because a user may be writing it."""
    return _whole(adapter.name, adapter.read_text(encoding="utf-8"))


@functools.cache
def _whole(name: str, text: str) -> str:
    shared = (_REMOTE / "shared.py").read_text(encoding="utf-8")
    text = _IMPORT.sub(lambda _: shared, text, count=1)
    if _TABLE not in text:
        return text
    calls = _calls(name.removesuffix("_adapter.py"), set(_DEFINED.findall(text)))
    return text.replace(_TABLE, "OPS = {\n" + "".join(calls) + "}\n")


def _calls(framework: str, defined: set[str]) -> Iterator[str]:
    """The entries of OPS for a framework, by `calls.txt`. `defined`: the adapter's functions."""
    table = (_REMOTE / "calls.txt").read_text(encoding="utf-8")
    modules, *blocks = re.sub(r"^ *#.*\n", "", table, flags=re.MULTILINE).split("\n", 1)
    own = dict(pair.split() for pair in modules.partition(": ")[2].split(", ")).get(framework, "")
    for block in re.split(r"\n(?! )", blocks[0].strip()):
        head, *rows = block.split("\n")
        ops, _, gives = head.partition(" -> ")
        output, _, taken = gives.partition(" ")
        for op in ops.split():
            call = op if op in defined else ""
            for row in rows:
                frameworks, kind, text = re.split(r"(: | = )", row.strip(), maxsplit=1)
                if framework in frameworks.split(", "):
                    plain = kind == " = " or text.startswith('"')
                    call = text if plain else f"lambda {taken[1:-1]}: {text}"
            for word, name in {"{own}": own, "{op}": op, "{Op}": op.capitalize()}.items():
                call = call.replace(word, name)
            if call:
                yield f'    "{op}": ("{output}", {call}),\n'


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
    """The literal keys of one of the module's dicts, with their values."""
    with _ONE_TREE:
        tree = ast.parse(source_of(adapter), str(adapter))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if names == [name]:
                pairs = zip(node.value.keys, node.value.values, strict=True)
                return {str(k.value): v for k, v in pairs if isinstance(k, ast.Constant)}
    return {}
