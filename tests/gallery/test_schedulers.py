"""The frameworks' own cosine schedules, at every step, against the certified decay."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from refkernels import schedule_ref
from refkernels.frameworks import environments
from refkernels.gallery import schedulers
from refkernels.gallery.schedulers import FRAMEWORKS, SchedulersError

QUESTION: dict[str, Any] = {"min_lr": 0.0, "max_lr": 1e-5, "decay_steps": 2000}
STEPS = np.arange(2001)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_schedule_leaves_its_range_on_a_cpu(framework: str) -> None:
    try:
        environments.find(framework)
    except environments.NotInstalled as error:
        if framework in environments.required():
            pytest.fail(str(error))
        pytest.skip(str(error))
    schedules = schedulers.rates(framework, **QUESTION)
    assert len(schedules) >= 2
    for name, rates in schedules.items():
        examined = schedule_ref.examine(rates, STEPS, **QUESTION)
        assert (examined.below, examined.above, examined.negative) == (0, 0, 0), name
        # A step too early or too late would be an error of pi / 2 / 2000.
        assert examined.max_error < (1e-12 if rates.dtype == np.float64 else 1e-6), name
        assert rates.dtype in (np.float32, np.float64)


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
    here = environments.find("numpy")
    broken = replace(here, python=python)
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
    try:
        environments.find("paddle")
    except environments.NotInstalled as error:
        pytest.skip(str(error))
    with pytest.raises(SchedulersError, match=r"no schedule within 0\.01 s"):
        schedulers.rates("paddle", **QUESTION, timeout=0.01)
