"""The threshold of a clip, inferred from the gradients before and after it."""

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pytest

from refkernels.alignment.clipping import (
    Clipping,
    Scaling,
    clip_difference,
    clipping,
    factor_between,
)
from refkernels.reporting.alignment.page import _clip as clause
from refkernels.reporting.alignment.page import words_of

F = np.float32
Floats = np.ndarray
EN = words_of("en")
SQUARES: dict[str, Callable[[Floats], float]] = {
    "sequential": lambda x: float(np.cumsum(np.square(x), dtype=x.dtype)[-1]),
    "pairwise": lambda x: float(np.sum(np.square(x), dtype=x.dtype)),
    "wide": lambda x: float(np.sum(np.square(x.astype(np.float64)))),
}


def norm_of(parts: list[Floats], order: str) -> float:
    """As a kernel takes it, rounded to the gradients' format; "each": the norm of norms."""
    squares = SQUARES[order.removeprefix("each ")]
    own = parts[0].dtype.type
    if order.startswith("each "):
        norms = np.array([own(np.sqrt(own(squares(part)))) for part in parts])
        return float(own(np.sqrt(own(squares(norms)))))
    return float(own(np.sqrt(own(squares(np.concatenate(parts))))))


ORDERS = [f"{how}{order}" for how in ("", "each ") for order in SQUARES]


def gradients(number: int, size: float, count: int) -> list[Floats]:
    """Of a norm near `size`, of parameters of several sizes and scales."""
    rng = np.random.default_rng(number)
    shares = (0.5, 0.3, 0.15, 0.05)
    parts = [rng.standard_normal(max(int(count * share), 1)) for share in shares]
    parts = [part * rng.choice([0.3, 1.0, 3.0]) for part in parts]
    norm = np.sqrt(sum(float(np.sum(np.square(part))) for part in parts))
    scale = size * rng.uniform(0.7, 1.4) / norm
    return [(part * scale).astype(F) for part in parts]


def step(parts: list[Floats], scale: np.floating, number: int = 0) -> Scaling:
    before = np.concatenate(parts)
    norm = float(np.linalg.norm(before.astype(np.float64)))
    return Scaling(number, 0, "global", {"": factor_between(before, before * scale)}, {"": norm})


def made(scalings: list[Scaling]) -> Clipping:
    clip = clipping(scalings)
    assert clip is not None
    return clip


def kind(a: Clipping, b: Clipping) -> str:
    found = clip_difference(a, b)
    return found.kind if found else ""


def clips(
    threshold: float, eps: float, size: float = 2.5, *, order: str = "each pairwise",
    steps: int = 3, count: int = 3000, seed: int = 0,
) -> Clipping:  # fmt: skip
    drawn = [gradients(1000 * seed + number, size, count) for number in range(steps)]
    scales = [F(threshold / (norm_of(parts, order) + eps)) for parts in drawn]
    clip = made([step(*pair, k) for k, pair in enumerate(zip(drawn, scales, strict=True))])
    assert clip.threshold is not None
    assert clip.threshold[0] <= threshold <= clip.threshold[1]
    return clip


@pytest.mark.parametrize(("count", "times"), [(40, 9), (3000, 3), (100_000, 1)])
def test_a_threshold_is_known_in_every_order_of_summation(count: int, times: int) -> None:
    """With 1e-6 added to the norm and without; thresholds as people write them, and any."""
    rng = np.random.default_rng(count)
    for number, order in enumerate(ORDERS * times):
        threshold = float(rng.choice([1.0, 0.25, 0.1, 5.0, 0.3, rng.uniform(0.1, 2)]))
        two = [
            clips(
                threshold, eps, threshold * rng.choice([1.5, 2.2, 4.0, 30.0]), order=order,
                steps=int(rng.choice([1, 3])), count=count, seed=number,
            )
            for eps in (0.0, 1e-6)
        ]  # fmt: skip
        assert clip_difference(two[0], two[1]) is None
        assert kind(clips(0.99 * threshold, 0.0, 3.0 * threshold), two[0]) == "clip_threshold"


def test_a_run_whose_gradients_are_below_the_threshold_may_clip_as_the_other_does() -> None:
    clip = clips(1.0, 0.0)
    for norm, differs in ((0.9, False), (1.5, True)):
        plain = clipping([Scaling(0, 0, "none", received=norm)])
        assert (clip_difference(clip, plain) is not None) == differs


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("other", ["none", "another divisor"])
def test_a_divided_sum_over_parts_is_not_a_clip(steps: int, other: str) -> None:
    """Of 3 parts, beside their mean, or beside a sum of 6 parts that is divided by 6."""
    a, b = [], []
    for number in range(steps):
        parts = gradients(number, 2.0 + number, 300)
        norm = norm_of(parts, "wide")
        whole = [F(3) * part for part in parts]
        a.append(replace(step(whole, F(1 / 3), number), received=norm))
        mean = Scaling(number, 0, "none", received=norm)
        if other != "none":
            twice = [F(2) * part for part in whole]
            mean = replace(step(twice, F(1 / 6), number), received=norm)
        b.append(mean)
    assert clip_difference(clipping(a), clipping(b)) is None
    assert clip_difference(clipping(b), clipping(a)) is None


@pytest.mark.parametrize("parts", [2, 3, 4, 6, 7, 64])
@pytest.mark.parametrize("norms", [[34.29], [5.0, 5.0], [34.29, 2.0, 11.0]])
def test_a_division_is_reported_as_one(parts: int, norms: list[float]) -> None:
    """Of a sum over parts by their number: 34.29 / 3 is 11.43, at which nobody clips."""
    seeds = range(len(norms)) if len(set(norms)) > 1 else [0] * len(norms)
    sums = [gradients(seed, size, 300) for seed, size in zip(seeds, norms, strict=True)]
    clip = made([step(whole, F(1 / parts), number) for number, whole in enumerate(sums)])
    assert (clip.divisors, clip.threshold) == ((parts,), None)
    said = f"A divides them by {parts}, a number of parts or a loss scale"
    assert clause("A", asdict(clip), EN) == said


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [40, 3000, 30_000])
def test_a_clip_is_not_reported_as_a_division(seed: int, count: int) -> None:
    clip = clips(1.0, 1e-6, size=3.0, steps=1, count=count, seed=seed)
    assert (clip.divisors, clip.constant) == ((), None)
    assert "as clipping at 1 would" in clause("A", asdict(clip), EN)
