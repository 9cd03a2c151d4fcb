"""Schedules with warm-up compared with mpmath; conventions distinguished."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.schedule_ref import Schedule, conventions, rate

STEPS = np.arange(121)
BASE = Schedule(1e-3, "linear", decay_steps=90, warmup_steps=10)


RATES = st.floats(0.0, 1.0, allow_subnormal=False)


def holds(rates: Enclosure, index: int, value: Any) -> bool:
    hi, lo, radius = (mpmath.mpf(float(part[index])) for part in (rates.hi, rates.lo, rates.radius))
    power = mpmath.mpf(2) ** int(rates.scale[index])
    return bool(abs((hi + lo) * power - value) <= radius * power + abs(value) / 2**350)


def by_hand(t: int, schedule: Schedule) -> Any:
    top, low = mpmath.mpf(schedule.max_lr), mpmath.mpf(schedule.min_lr)
    if t < schedule.warmup_steps:
        f, risen = mpmath.mpf(schedule.warmup_factor), mpmath.mpf(t) / schedule.warmup_steps
        risen = mpmath.sin(mpmath.pi * risen / 2) ** 2 if schedule.cosine_warmup else risen
        return top * (f + (1 - f) * risen)
    u = max(t - schedule.warmup_steps - schedule.hold_steps, 0)
    part = mpmath.mpf(min(u, schedule.decay_steps)) / schedule.decay_steps
    if schedule.restarts:  # as SGDR: 1 + m + ... + m^(i - 1) first periods are over
        T, m = schedule.decay_steps, schedule.restarts
        starts = [T * sum(m**k for k in range(i)) for i in range(12)]
        i = max(i for i in range(12) if starts[i] <= u)
        part = mpmath.mpf(u - starts[i]) / (T * m**i)
    span, gamma = top - low, mpmath.mpf(schedule.gamma)
    return {
        "constant": lambda: top,
        "linear": lambda: top - span * part,
        "polynomial": lambda: low + span * (1 - part) ** mpmath.mpf(schedule.power),
        "cosine": lambda: low + span * (1 + mpmath.cos(mpmath.pi * part)) / 2,
        "step": lambda: (
            top * gamma ** sum(m <= u for m in schedule.milestones or range(30, u + 1, 30))
        ),
        "exponential": lambda: top * gamma**u,
        "inverse_sqrt": lambda: top / mpmath.sqrt(1 + mpmath.mpf(u) / schedule.decay_steps),
    }[schedule.decay]()


@pytest.mark.parametrize(
    "asked",
    [
        {"decay": "constant"},
        {"decay": "linear", "min_lr": 1e-5, "warmup_factor": 0.1},
        {"decay": "polynomial", "power": 2.5},
        {"decay": "polynomial", "power": 3.0, "min_lr": 1e-4},
        {"decay": "cosine", "min_lr": 1e-6, "warmup_factor": 1 / 3},
        {"decay": "step", "decay_steps": 30},
        {"decay": "exponential", "gamma": 0.97},
        {"decay": "inverse_sqrt", "decay_steps": 7},
        {"decay": "linear", "hold_steps": 40, "decay_steps": 50},
        {"decay": "cosine", "decay_steps": 13, "restarts": 2, "min_lr": 1e-6},
        {"decay": "linear", "decay_steps": 17, "restarts": 1, "clamped": False},
        {"decay": "step", "milestones": (7, 50, 90), "cosine_warmup": True, "warmup_factor": 0.04},
    ],
    ids=lambda options: options["decay"],
)
def test_rates_are_those_of_the_definition(asked: dict[str, Any]) -> None:
    schedule = replace(BASE, **asked)
    enclosure = rate(STEPS, schedule, certify=("ulp", "float64", 2.0**-40))
    with mpmath.workprec(500):
        assert all(holds(enclosure, t, by_hand(int(t), schedule)) for t in STEPS)
    assert np.all(enclosure.radius <= np.abs(enclosure.hi) * 2.0**-90)


@given(st.integers(1, 10**7), st.floats(0, 1.1), RATES, RATES)
def test_random_cosines_are_enclosed(count: int, part: float, a: float, b: float) -> None:
    for step in (int(count * part), count - 1, 1):
        schedule = Schedule(max(a, b), "cosine", count, min(a, b))
        enclosure = rate([step], schedule)
        with mpmath.workprec(500):
            assert holds(enclosure, 0, by_hand(step, schedule))
        assert enclosure.radius[0] <= 2.0**-100 * abs(enclosure.hi[0])


def test_every_convention_is_distinguished() -> None:
    schedule = replace(BASE, decay="cosine", decay_steps=100, min_lr=1e-5)
    changes: dict[str, dict[str, Any]] = {
        "as_asked": {},
        "one_step_late": {"late": 1},
        "one_step_early": {"late": -1},
        "warmup_from_first_step": {"first": 1},
        "decay_from_start": {"from_start": True},
        "not_clamped": {"clamped": False},
        "one_step_late and decay_from_start": {"late": 1, "from_start": True},
    }
    steps = np.arange(150)
    for name, change in changes.items():
        for dtype in (np.float32, np.float64):
            lr = np.asarray(rate(steps, replace(schedule, **change))).astype(dtype)
            first, second, *_ = conventions(lr, steps, schedule)
            assert first.name == name
            assert first.error < 2.0**-23 < 1e-3 < second.error


def test_a_decay_that_is_not_clamped_goes_on() -> None:
    late = np.array([110])
    assert np.asarray(rate(late, replace(BASE, clamped=False)))[0] < 0
    cosine = replace(BASE, decay="cosine")
    assert np.asarray(rate(late, cosine))[0] == 0
    assert np.asarray(rate(late, replace(cosine, clamped=False)))[0] > 1e-5


def test_wrong_schedules_are_refused() -> None:
    for change, says in (
        ({"decay": "cosin"}, "one of constant, linear"),
        ({"min_lr": 1.0}, "is more than max_lr"),
        ({"first": 2}, "first 0 or 1"),
        ({"restarts": -1}, "at least 0"),
        ({"decay": "polynomial", "power": 0.5, "clamped": False}, "beyond the end"),
    ):
        with pytest.raises(ValueError, match=says):
            replace(BASE, **change)
    with pytest.raises(ValueError, match="starts at step 0"):
        rate([-1], BASE)
    with pytest.raises(ValueError, match="one finite rate each"):
        conventions(np.array([np.nan]), [0], BASE)
