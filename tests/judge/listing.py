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
    """Files named after an op have its kernels; the others have kernels of several ops, whose names
    end with them."""
    paths = sorted(p for p in (HERE / "right").glob("*.py") if p.stem[0] != "_")
    several = [path.stem for path in paths if path.stem not in registry.ops()]
    command = [sys.executable, "-c", _NAMES, str(HERE / "right"), *several]
    made = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    listed = []
    for path in paths:
        if path.stem in made:
            listed += [(path, name, op) for name in made[path.stem] if (op := _op_of(name))]
        else:
            listed += [(path, name, path.stem) for name in functions(path)]
    return tuple(listed)


def _op_of(function: str) -> str:
    ops = [op for op in registry.ops() if function.endswith(f"_{op}")]
    return max(ops, key=len, default="")
