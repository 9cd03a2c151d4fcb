"""The p-values of loss curves: exact where runs are exchangeable, and able to see a difference."""

import math

import numpy as np
import pytest

from refkernels.training import curves

EXPERIMENTS, STEPS = 500, 60
FALLING = 6.0 * np.exp(-np.arange(STEPS) / 40.0)


def walks(rng: np.random.Generator, runs: int) -> np.ndarray:
    """Losses that fall alike, and roundings that accumulate and grow."""
    noise = rng.standard_normal((runs, STEPS)) * 1e-6 * np.exp(np.arange(STEPS) / 30.0)
    return FALLING + np.cumsum(noise, axis=1)


def rate(values: list[float], level: float) -> float:
    return float(np.mean([value <= level for value in values]))


def room(level: float) -> float:
    """Five standard deviations of so many experiments: one suite in a million exceeds it."""
    return 5.0 * math.sqrt(level * (1.0 - level) / EXPERIMENTS)


def test_a_right_run_is_rarely_suspected() -> None:
    rng, pairs, normal, extreme = np.random.default_rng(1), [], [], 0
    for _ in range(EXPERIMENTS):
        runs = walks(rng, 22)
        comparison = curves.of_pair(runs[0], runs[1], runs[2:21])
        pairs.append(comparison.p)
        normal.append(comparison.p_normal)
        extreme += comparison.extreme
    for level in (0.05, 0.1, 0.25):
        assert rate(pairs, level) <= level + room(level)
        assert rate(normal, level) <= level + room(level)
    assert abs(extreme / EXPERIMENTS - 2 / 21) <= room(2 / 21)


def test_a_wrong_rate_above_the_least_detectable_one_is_seen() -> None:
    rng = np.random.default_rng(3)
    runs = walks(rng, 42)
    right = curves.of_pair(runs[0], runs[1], runs[2:])
    assert right.least_rate_change is not None
    time, change = np.arange(STEPS), 10.0 * right.least_rate_change
    moved = runs[1] + 6.0 * np.exp(-time * (1 + change) / 40.0) - FALLING
    wrong = curves.of_pair(runs[0], moved, runs[2:])
    assert not right.extreme
    assert wrong.extreme
    assert wrong.p <= 41 / 861  # no pair with the wrong run is less surprising than another
    assert wrong.p_normal is not None
    assert wrong.p_normal < 0.005
    assert right.growth == pytest.approx(1 / 30.0, rel=0.5)


def test_runs_that_a_level_needs() -> None:
    assert 2 / (curves.needed(0.005) + 2) < 0.005 <= 2 / (curves.needed(0.005) + 1)
    rng = np.random.default_rng(4)
    for runs, least in ((19, 1 / 210), (18, 1 / 190)):
        every = walks(rng, runs + 2)
        assert curves.of_pair(every[0], every[1], every[2:]).least_p == pytest.approx(least)


def test_nothing_is_decided_after_saturation() -> None:
    rng = np.random.default_rng(5)
    runs = walks(rng, 21)
    seeds = FALLING + 1e-5 * rng.standard_normal((8, STEPS))
    spread = np.std(runs, axis=0, ddof=1)
    first = int(np.nonzero(spread >= np.std(seeds, axis=0, ddof=1))[0][0])
    comparison = curves.of_pair(runs[0], runs[1], runs[2:], seeds=seeds)
    assert comparison.undecidable_after == first == comparison.steps
    runs[1, first:] += 1.0  # after that, nothing counts
    assert curves.of_pair(runs[0], runs[1], runs[2:], seeds=seeds).p == comparison.p


def test_a_loss_that_is_not_finite_ends_the_comparison() -> None:
    runs = walks(np.random.default_rng(6), 21)
    runs[1, 30:] = np.nan
    assert curves.of_pair(runs[0], runs[1], runs[2:]).steps == 30
    runs[1, 0] = np.inf
    with pytest.raises(ValueError, match="there is no curve"):
        curves.of_pair(runs[0], runs[1], runs[2:])


@pytest.mark.parametrize("size", [0.05, 0.3, 2.0])
def test_losses_on_the_grid_of_float32_raise_no_alarm(size: float) -> None:
    """Most null runs share their bits while rounding is below an ulp: no evidence against the rest.
    `size`: the noise, in ulps of the loss."""
    rng, comparisons = np.random.default_rng(9), []
    for _ in range(200):
        noise = rng.standard_normal((21, STEPS)) * size * 2.0**-21
        runs = (FALLING + noise).astype(np.float32)
        comparisons.append(curves.of_pair(*runs[:2].astype(float), runs[2:].astype(float)))
    few = 0.005 + 5 * math.sqrt(0.005 / 200)
    assert np.mean([comparison.p_normal < 0.005 for comparison in comparisons]) <= few
    assert np.mean([comparison.p < 0.005 for comparison in comparisons]) <= few


@pytest.mark.parametrize("wider", [1.0, 2.0, 4.0])
def test_on_the_grid_the_farthest_is_one_of_the_two_as_often_as_by_chance(wider: float) -> None:
    """Null runs with the same bits have no width, and no multiple of it."""
    rng, extremes, count = np.random.default_rng(10), [], 200
    sizes = np.where(np.arange(21) < 2, wider, 1.0)[:, None]
    for _ in range(count):
        noise = sizes * np.cumsum(rng.standard_normal((21, STEPS)), axis=1) * 1e-8
        runs = (FALLING + noise).astype(np.float32).astype(float)
        extremes.append(curves.of_pair(runs[0], runs[1], runs[2:], wider=wider).extreme)
    level = 2.0 / 21.0
    assert np.mean(extremes) <= level + 5.0 * math.sqrt(level * (1.0 - level) / count)
