"""Rotary embedding: positions, scaling, bound; attention as models have it."""

from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.attention_ref import ROTARY, rotary

RNG = np.random.default_rng(21)
X = RNG.standard_normal((2, 4, 10)).astype(np.float32)
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


LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


def llama3_frequencies() -> Any:
    """As models compute them: three branches, by the wave length."""
    plain = 1 / (np.float32(5e5) ** (np.arange(0, 64, 2, dtype=np.float32) / np.float32(64)))
    lengths = np.float32(2 * np.pi) / plain
    smooth = (np.float32(8192) / lengths - 1) / np.float32(3)
    between = (1 - smooth) * plain / 8 + smooth * plain
    return np.where(lengths > 8192, plain / 8, np.where(lengths < 2048, plain, between))


@pytest.mark.parametrize("cause", [None, "frequencies_unscaled", "frequencies_all_divided"])
def test_frequencies_scaled_as_in_llama_3(cause: str | None) -> None:
    plain = 1 / (np.float32(5e5) ** (np.arange(0, 64, 2, dtype=np.float32) / np.float32(64)))
    frequencies = {
        None: llama3_frequencies(), "frequencies_unscaled": plain,
        "frequencies_all_divided": plain / 8,
    }[cause]  # fmt: skip
    rng = np.random.default_rng(5)
    x = rng.standard_normal((4, 64)).astype(np.float32)
    position = np.array([1, 900, 8000, 130000])
    angles = position[:, None].astype(np.float32) * frequencies
    (a, b), cos, sin = np.split(x, 2, axis=-1), np.cos(angles), np.sin(angles)
    y = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).astype(np.float32)
    inputs, params = {"x": x, "position": position}, {"base": 5e5, "scaling": LLAMA3}
    found = refkernels.explain("rotary", inputs, y, params)
    assert found.cause == cause
    assert found.verdict == ("exceeds_bound" if cause else "rounding")


def test_a_sink_a_window_and_a_softcap_that_a_kernel_leaves_out_are_named() -> None:
    rng = np.random.default_rng(6)
    q, k, v = (rng.standard_normal((1, 2, 12, 8)).astype(np.float32) for _ in range(3))
    inputs = {"q": 3 * q, "k": k, "v": v, "sinks": np.array([0.5, 2.0], np.float32)}
    params = {"causal": "top_left", "window": [4, 0], "softcap": 3.0}

    def kernel(sinks: Any = inputs["sinks"], window: int = 4, softcap: float = 3.0) -> Any:
        s = inputs["q"] @ np.swapaxes(k, -1, -2) / np.float32(8**0.5)
        s = s if np.isinf(softcap) else np.float32(softcap) * np.tanh(s / np.float32(softcap))
        away = np.arange(12)[:, None] - np.arange(12)
        e = np.where((away >= 0) & (away <= window), np.exp(s), np.float32(0))
        total = e.sum(-1, keepdims=True)
        return (e / (total if sinks is None else total + np.exp(sinks)[:, None, None])) @ v

    assert refkernels.explain("attention", inputs, kernel(), params).verdict == "rounding"
    for cause, wrong in (
        ("sinks_ignored", kernel(sinks=None)), ("mask_too_wide", kernel(window=5)),
        ("function_missing", kernel(softcap=np.inf)),
    ):  # fmt: skip
        found = refkernels.explain("attention", inputs, wrong, params)
        assert (found.cause, found.confidence) == (cause, "proven")
