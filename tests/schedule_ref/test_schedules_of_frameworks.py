"""The frameworks' own schedules, at every step: their range, their conventions, their decays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plain_interpreter import PlainInterpreter

from refkernels import schedule_ref
from refkernels.gallery import schedulers
from refkernels.schedule_ref import Schedule, conventions

HIGH = 2.0**-10
STEPS = np.arange(101)
RATES = "import runpy, sys\nrunpy.run_path(sys.argv[1])['main'](*sys.argv[2:])"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(framework, marks=pytest.mark.framework(framework))
        for framework in schedulers.FRAMEWORKS
    ],
)
def framework(
    request: pytest.FixtureRequest, plain: Callable[[str], PlainInterpreter]
) -> Iterator[str]:
    """A framework, whose one process answers all questions of these tests. That a process is
    started for each otherwise, the gallery's tests see."""
    name: str = request.param
    interpreter = plain(name)

    def ask(command: list[str], framework: str, timeout: float) -> None:
        assert (command[1], framework) == (str(schedulers._SOURCE), name)
        interpreter.run(RATES, *command[1:])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedulers, "_run", ask)
        yield name


def test_no_schedule_leaves_its_range_on_a_cpu(framework: str) -> None:
    question: dict[str, Any] = {"min_lr": 0.0, "max_lr": 1e-5, "decay_steps": 2000}
    schedules = schedulers.rates(framework, **question)
    assert len(schedules) >= 2
    for name, rates in schedules.items():
        examined = schedule_ref.examine(rates, np.arange(2001), **question)
        assert (examined.below, examined.above, examined.negative) == (0, 0, 0), name
        # A step too early or too late would be an error of pi / 2 / 2000.
        assert examined.max_error < (1e-12 if rates.dtype == np.float64 else 1e-6), name
        assert rates.dtype in (np.float32, np.float64)


def test_step_exponential_and_polynomial_decays_start_at_step_0(framework: str) -> None:
    """In every framework: rate(step 0) is the highest, and the first drop is at step_size."""
    numbers = {"gamma": 0.75, "power": 2.0}
    rates = schedulers.decays(framework, max_lr=HIGH, decay_steps=100, step_size=30, **numbers)
    asked = (
        Schedule(HIGH, "step", decay_steps=30, **numbers),
        Schedule(HIGH, "exponential", decay_steps=90, **numbers),
        Schedule(HIGH, "polynomial", decay_steps=100, **numbers),
    )
    for lr, schedule in zip(rates.values(), asked, strict=True):
        first, second, *_ = conventions(lr, STEPS, schedule)
        assert first.name == "as_asked"
        assert first.error < 1e-6 < 1e-3 < second.error


OWN: dict[str, dict[str, Any]] = {
    "torch SequentialLR": {"warmup_factor": 0.125},
    "paddle LinearWarmup": {},
    "oneflow WarmUpLR, prefix": {},
    "mindspore WarmUpLR": {"decay": "constant"},
}


def test_the_frameworks_have_the_stated_conventions(framework: str) -> None:
    question: dict[str, Any] = {"min_lr": 0.0, "max_lr": HIGH, "decay_steps": 100}
    rates = schedulers.rates(framework, **question, warmup_steps=10)
    compared = 0
    for name, lr in rates.items():
        change = OWN.get(f"{framework} {name}")
        if change is None:
            assert name == "WarmUpLR"  # OneFlow's, which rises to the rate of the decay
            assert lr[10] == pytest.approx(0.9 * HIGH, rel=1e-12)
            assert lr[1] == pytest.approx(0.09 * HIGH, rel=1e-12)
            continue
        schedule = Schedule(HIGH, decay_steps=90, warmup_steps=10, **{"decay": "linear", **change})
        first, second, *_ = conventions(lr, STEPS, schedule)
        assert first.name == "as_asked"
        assert first.error < 1e-6 < 1e-3 < second.error
        compared += 1
    assert compared == 1
