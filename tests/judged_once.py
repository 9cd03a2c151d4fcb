"""Runs that many tests compare with are judged once, and so are the ops that runs share. NumPy
reads their formulas: to compile kernels of them, as tests of large arrays do, takes longer."""

import sys
from typing import Any

import pytest
from once import once

import refkernels.alignment.align  # noqa: F401
from refkernels.alignment import local
from refkernels.ops import draft


def _run(arguments: tuple[Any, ...]) -> Any:
    run, chosen, *_ = arguments
    return str(run.folder), chosen


def _output(arguments: tuple[Any, ...]) -> Any:
    problem, output, *_ = arguments
    return id(problem), output  # of one_kernel, whose problems are kept


_KEPT: dict[Any, Any] = {}
_RUN = once(local.judge_run, _KEPT, _run)
_ONCE = {
    "one_kernel": once(local.one_kernel, _KEPT),
    "fit": once(local.fit, _KEPT, _output),
    "_explained": once(local._explained, _KEPT, lambda arguments: id(arguments[0])),
}


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test whose runs do not change."""
    monkeypatch.setattr(draft, "GENERATED", 1 << 40)
    monkeypatch.setattr(sys.modules["refkernels.alignment.align"], "judge_run", _RUN)
    for name, function in _ONCE.items():
        monkeypatch.setattr(local, name, function)
