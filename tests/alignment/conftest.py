"""Runs that many tests compare with are judged once."""

import sys
from typing import Any

import pytest

import refkernels.alignment.align  # noqa: F401
from refkernels.alignment.local import LocalTruth, judge_run
from refkernels.alignment.run import Run

_JUDGED: dict[tuple[str, Any], LocalTruth] = {}


def _once(run: Run, chosen: Any = None, progress: Any = None) -> LocalTruth:
    key = str(run.folder), chosen
    if key not in _JUDGED:
        _JUDGED[key] = judge_run(run, chosen)
    return _JUDGED[key]


@pytest.fixture
def judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests whose runs do not change."""
    monkeypatch.setattr(sys.modules["refkernels.alignment.align"], "judge_run", _once)
