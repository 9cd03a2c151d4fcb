"""The kernels of a folder: file, function and op. Those of `right` are listed when their files are
run: some are made there."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.judging.examination import Examinations
from refkernels.judging.questions import KernelDomain
from refkernels.judging.standard import RANGE

HERE = Path(__file__).parent
SEED = 11  # of all judgements, which share their truths (conftest)


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


@with_default_fenv
def faults(
    path: Path, name: str, op: str, examinations: Examinations, seed: int, dtype: str = "float32"
) -> tuple[int, list[Any]]:
    """The challenges of a first round, without long rows, that a kernel answers; its faults."""
    kernel = _made()[path, name]
    known, taken = registry.get(op), inspect.signature(kernel).parameters
    left_out = frozenset(known.optional) - taken.keys()
    examination = examinations.of(known, "forward", dtype, seed, KernelDomain(left_out))
    answered, found = 0, []
    for challenge in examination.round(0):
        params = {name: value for name, value in challenge.params.items() if name in taken}
        declined = {**known.params, **params} != challenge.params
        if declined or challenge.family in ("long", "wide") or not challenge.has_answer:
            continue
        try:
            answer = kernel(**challenge.inputs, **params)
        except (ArithmeticError, IndexError, NotImplementedError, TypeError, ValueError):
            continue
        parts = answer if isinstance(answer, tuple) else (answer,)
        outputs = zip(known.outputs, parts, strict=False)
        fault = challenge.fault({n: np.asarray(a) for n, a in outputs if a is not None})
        found += [(challenge.name, fault)] if fault is not None and fault.kind not in RANGE else []
        answered += 1
    return answered, found


def op_of(function: str) -> str:
    """The op that a function's name is, or ends with."""
    ops = [op for op in registry.ops() if f"_{function}".endswith(f"_{op}")]
    return max(ops, key=len, default="")
