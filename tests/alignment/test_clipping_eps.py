"""Whether a clip adds 1e-6 to the norm: read off the gradients before and after it."""

import numpy as np
import pytest

from refkernels.alignment.clipping import ADDED, Scaling, _factor, clipping
from refkernels.alignment.verdict import clips_differ

F = np.float32


def step(
    number: int, threshold: float, eps: float, floats: int = 0, plain: bool = False
) -> Scaling:
    """A step of a float32 kernel whose norm is off by some floats, or a plain sum's."""
    rng = np.random.default_rng(number)
    size = 300_000 if plain else 3000
    before = (rng.standard_normal(size) / size**0.5 * 2.2).astype(np.float32)
    norm = float(np.linalg.norm(before.astype(np.float64)))
    assert 2.0 < norm < 2.5
    computed = F(norm) + F(floats) * np.spacing(F(norm))
    if plain:
        computed = np.sqrt(np.cumsum(np.square(before), dtype=np.float32)[-1])
        assert abs(float(computed) / norm - 1.0) > 8 * 2.0**-24
    factor = F(threshold) / F(computed + F(eps)) if eps else F(threshold) / computed
    return Scaling(number, 0, "global", {"": _factor(before, before * factor)}, {"": norm},
                   sizes={"": before.size})  # fmt: skip


@pytest.mark.parametrize("threshold", [1.0, 0.25, 0.5])
@pytest.mark.parametrize("eps", ADDED)
def test_eps_is_known_where_the_threshold_is_a_number_as_people_write_it(
    threshold: float, eps: float
) -> None:
    for floats in (-1, 0, 1):
        found = clipping([step(number, threshold, eps, floats) for number in range(3)])
        assert found is not None
        assert [*found.thresholds] == [eps]


def test_clips_with_and_without_eps_differ() -> None:
    with_eps, without = (
        clipping([step(number, 1.0, eps) for number in range(3)]) for eps in (1e-6, 0.0)
    )
    assert clips_differ(with_eps, without)


def test_a_worse_norm_is_no_other_clip_and_another_threshold_is() -> None:
    right, half, worse, plain = (
        clipping([step(number, *how) for number in range(3)])
        for how in ((1.0, 0.0), (0.5, 0.0), (1.0, 0.0, 12), (1.0, 0.0, 0, True))
    )
    assert not clips_differ(right, worse)
    assert not clips_differ(right, plain)
    assert clips_differ(right, half)
    assert clips_differ(half, plain)


def test_eps_stays_open_where_the_threshold_may_be_any_number() -> None:
    found = clipping([step(number, 1.0372918, 1e-6) for number in range(3)])
    assert found is not None
    assert [*found.thresholds] == [*ADDED]


def test_one_clip_tells_no_eps_because_its_norm_may_be_off_by_as_much() -> None:
    right, off = (clipping([step(0, 1.0, 1e-6, floats)]) for floats in (0, -4))
    assert right is not None
    assert [*right.thresholds] == [*ADDED]
    assert all(high - low < 1e-5 for low, high in right.thresholds.values())
    assert not clips_differ(right, off)
