"""Rotary embedding: positions, its bound, refused arguments."""

from typing import Any

import numpy as np
import pytest

from refkernels.attention_ref import ROTARY, rotary

RNG = np.random.default_rng(21)
X, DY = (RNG.standard_normal((2, 4, 10)).astype(np.float32) for _ in range(2))
PLACES = np.array([0, 7, 4000, 1_000_003])


def test_positions_broadcast_against_leading_axes() -> None:
    whole = rotary(X, np.broadcast_to(PLACES, (2, 4)))
    np.testing.assert_array_equal(rotary(X, PLACES).hi, whole.hi)


def test_the_bound_of_a_kernel_in_float32_grows_with_the_position() -> None:
    """To about position 2^-22 for the fastest pair, and hardly for the slowest."""
    x, bounds = np.ones((1, 64), np.float32), {}
    for place in (0, 100, 10_000, 1_000_000):
        inputs = {"x": x, "position": np.array([place])}
        bounds[place] = ROTARY.bound("forward", inputs, {}, "float32")["y"][0]
    for place in (100, 10_000, 1_000_000):
        assert 0.1 < bounds[place][0] / (place * 2.0**-22) < 10.0
        assert bounds[place][31] < 2e-3 * bounds[place][0] + 1e-5
    assert bounds[0].max() < 2.0**-19


def test_a_kernel_with_angles_in_float32_keeps_to_the_bound() -> None:
    x = RNG.standard_normal((500, 64)).astype(np.float32)
    place = RNG.integers(0, 200_000, 500)
    frequency = np.float32(1) / np.float32(10000) ** (np.arange(0, 64, 2, dtype=np.float32) / 64)
    angles = place[:, None].astype(np.float32) * frequency.astype(np.float32)
    cosine, sine = np.cos(angles), np.sin(angles)
    a, b = x[:, :32], x[:, 32:]
    got = np.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=1)
    inputs = {"x": x, "position": place}
    exact = np.asarray(ROTARY.evaluate("forward", inputs, {})["y"])
    bound = ROTARY.bound("forward", inputs, {}, "float32")["y"]
    assert np.all(np.abs(got - exact) <= bound)
    assert np.abs(got - exact).max() > 1e-3  # where ulp alone would blame it


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"x": X[..., :9]}, ValueError, "an even number of at most 9, not 9"),
        ({"dim": 12}, ValueError, "an even number of at most 10, not 12"),
        ({"dim": 3}, ValueError, "not 3"),
        ({"dim": 4.0}, TypeError, "dim is 4.0"),
        ({"layout": "neox"}, ValueError, "one of half, interleaved"),
        ({"base": -1.0}, ValueError, "a finite number above 0"),
        ({"base": "10000"}, TypeError, "base"),
        ({"position": PLACES.astype(float)}, TypeError, "whole numbers"),
        ({"position": PLACES[:3]}, ValueError, "do not broadcast"),
        ({"position": np.array(2**60)}, ValueError, "beyond 2\\^53"),
        ({"x": np.float32(1)}, ValueError, "it must be x\\[\\.\\.\\. d\\]"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_in_a_sentence(
    given: Any, kind: Any, said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        rotary(**{"x": X, "position": PLACES, **given})
    assert "\n" not in str(caught.value)
