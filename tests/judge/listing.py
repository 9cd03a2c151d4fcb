"""The kernels of a folder: file, function and op. Those of `right` are listed when their files are
run: some are made there."""

from __future__ import annotations

import ast
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from refkernels import registry

HERE = Path(__file__).parent


def cheats() -> Iterator[tuple[Path, str, str]]:
    """The public functions that the files define, with the names of their ops."""
    for path in sorted((HERE / "cheats").glob("[!_]*.py")):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            name = getattr(statement, "name", "_")
            if name[0] != "_":
                yield path, name, op_of(name)


@functools.cache
def _made() -> dict[tuple[Path, str], Callable[..., Any]]:
    """The functions of `right`. Its modules import each other by names that others may have."""
    paths = sorted((HERE / "right").glob("[!_]*.py"))
    before = set(sys.modules)
    sys.path.insert(0, str(HERE / "right"))
    try:
        made = [(path, vars(importlib.import_module(path.stem))) for path in paths]
    finally:
        sys.path.remove(str(HERE / "right"))
        for name in {*sys.modules} - before & {"_ways", *(path.stem for path in paths)}:
            del sys.modules[name]
    return {
        (path, name): function
        for path, names in made
        for name, function in names.items()
        if callable(function) and name[0] != "_"
    }


def right() -> Iterator[tuple[Path, str, str]]:
    """Kernels whose names end with their op's."""
    for path, name in _made():
        if op := op_of(name):
            yield path, name, op


def kernel(path: Path, name: str) -> Callable[..., Any]:
    """A right kernel."""
    return _made()[path, name]


def op_of(function: str) -> str:
    """The op that a function's name is, or ends with."""
    ops = [op for op in registry.ops() if f"_{function}".endswith(f"_{op}")]
    return max(ops, key=len, default="")
