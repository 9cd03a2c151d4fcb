"""Schedules from the frameworks' interpreters that fail; tests/schedule_ref examines the others."""

import sys
from dataclasses import replace
from typing import Any

import pytest
from presence import interpreter_of

from refkernels.frameworks import environments
from refkernels.gallery import schedulers
from refkernels.gallery.schedulers import SchedulersError

QUESTION: dict[str, Any] = {"min_lr": 0.0, "max_lr": 1e-5, "decay_steps": 2000}


def test_an_unknown_framework_is_refused() -> None:
    with pytest.raises(SchedulersError, match="choose from torch, paddle"):
        schedulers.rates("numpy", **QUESTION)


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("/no/such/python", "does not run"),
        ("ssh=user@host//python=python3", "another machine"),
        (sys.executable, r"ended with status 1: ModuleNotFoundError: .*torch"),
    ],
)
def test_a_framework_that_fails_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, python: str, said: str
) -> None:
    broken = replace(environments.find("numpy"), python=python)
    monkeypatch.setattr(environments, "find", lambda spec: broken)
    with pytest.raises(SchedulersError, match=said):
        schedulers.rates("torch", **QUESTION)


def test_a_missing_framework_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(spec: object) -> None:
        raise environments.NotInstalled("torch is not installed: refkernels env create torch")

    monkeypatch.setattr(environments, "find", missing)
    with pytest.raises(SchedulersError, match="env create torch"):
        schedulers.rates("torch", **QUESTION)


def test_a_schedule_that_takes_too_long_is_reported() -> None:
    interpreter_of("paddle")
    with pytest.raises(SchedulersError, match=r"no schedule within 0\.01 s"):
        schedulers.rates("paddle", **QUESTION, timeout=0.01)
