"""The kernels of a folder: file, function and op. Those of `right` are listed by the files
themselves, in another process: some are made when a file is run."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from refkernels import registry

HERE = Path(__file__).parent
_NAMES = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
named = {}
for name in sys.argv[2:]:
    made = vars(importlib.import_module(name)).items()
    named[name] = [key for key, value in made if callable(value) and key[0] != "_"]
print(json.dumps(named))
"""


def functions(path: Path) -> list[str]:
    """The public functions that a file defines."""
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    return [f.name for f in statements if isinstance(f, ast.FunctionDef) and f.name[0] != "_"]


def cheats() -> Iterator[tuple[Path, str, str]]:
    """One function in each file, with its op's name."""
    for path in sorted((HERE / "cheats").glob("[!_]*.py")):
        for function in functions(path):
            yield path, function, function


@functools.cache
def right() -> tuple[tuple[Path, str, str], ...]:
    """Kernels whose names end with their op's."""
    paths = sorted(p for p in (HERE / "right").glob("*.py") if p.stem[0] != "_")
    command = [sys.executable, "-c", _NAMES, str(HERE / "right"), *(path.stem for path in paths)]
    made = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return tuple(
        (path, name, op) for path in paths for name in made[path.stem] if (op := _op_of(name))
    )


def _op_of(function: str) -> str:
    ops = [op for op in registry.ops() if function.endswith(f"_{op}")]
    return max(ops, key=len, default="")
