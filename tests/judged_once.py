"""Runs that many tests compare with are judged once, and so are the ops that runs share. NumPy
reads their formulas: to compile kernels of them, as tests of large arrays do, takes longer. One
process of torch compares the calls of all of them: its import takes longer than a comparison."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from once import once
from plain_interpreter import PlainInterpreter, in_one_process

import refkernels.alignment.align  # noqa: F401
from refkernels.alignment import local
from refkernels.ops import draft
from refkernels.profiling import program


def _run(arguments: tuple[Any, ...]) -> Any:
    run, chosen, *_ = arguments
    return str(run.folder), chosen


def _output(arguments: tuple[Any, ...]) -> Any:
    problem, output, *_ = arguments
    return id(problem), output  # of one_kernel, whose problems are kept


def _cause(arguments: tuple[Any, ...]) -> Any:
    problem, _, odd, own = arguments
    return id(problem), *odd, *own  # other frameworks' forms explain the same answer otherwise


_KEPT: dict[Any, Any] = {}
_RUN = once(local.judge_run, _KEPT, _run)
_ONCE = {
    "one_kernel": once(local.one_kernel, _KEPT),
    "fit": once(local.fit, _KEPT, _output),
    "_explained": once(local._explained, _KEPT, _cause),
}


def install(
    monkeypatch: pytest.MonkeyPatch, interpreter: Callable[[str], PlainInterpreter]
) -> None:
    """For a test whose runs do not change."""
    monkeypatch.setattr(program, "subprocess", in_one_process(interpreter))
    monkeypatch.setattr(draft, "GENERATED", 1 << 40)
    monkeypatch.setattr(sys.modules["refkernels.alignment.align"], "judge_run", _RUN)
    for name, function in _ONCE.items():
        monkeypatch.setattr(local, name, function)
