"""The inputs on which scans are measured, by regime; appended, never changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refkernels.ops.cases import Arrays, listed, with_specials

Generator = np.random.Generator
Build = Callable[[Generator, str], Arrays]


def _drawn(
    leading: tuple[int, ...], t: int, d: int, e: int, *gates: str, forget: float = 0.5
) -> Build:
    """States forget about `forget` of themselves at a step."""

    def build(rng: Generator, dtype: str) -> Arrays:
        arrays = {
            "dy": rng.standard_normal((*leading, t, e)),
            "q": rng.standard_normal((*leading, t, d)),
            "k": rng.standard_normal((*leading, t, d)),
            "v": rng.standard_normal((*leading, t, e)),
            "g": -forget * rng.exponential(size=(*leading, t)),
            "gk": -forget * rng.exponential(size=(*leading, t, d)),
            "initial_state": rng.standard_normal((*leading, d, e)),
        }
        return {name: arrays[name] for name in ("dy", "q", "k", "v", *gates)}

    return build


def _special(rng: Generator, dtype: str) -> Arrays:
    """NaN and infinity in steps in the middle, and a gate that forgets everything."""
    arrays = _drawn((4,), 5, 4, 3, "g")(rng, dtype)
    arrays["q"][0, 2, 1], arrays["k"][1, 2, 0] = np.nan, np.inf
    arrays["v"][2, 2, 1], arrays["g"][3, 2] = np.nan, -np.inf
    return arrays


def _corrected(leading: tuple[int, ...], t: int, *gates: str, forget: float = 0.5) -> Build:
    """Keys of unit length, as models have them."""

    def build(rng: Generator, dtype: str) -> Arrays:
        arrays = _drawn(leading, t, 4, 3, *gates, forget=forget)(rng, dtype)
        arrays["k"] /= np.linalg.norm(arrays["k"], axis=-1, keepdims=True)
        return {**arrays, "beta": rng.random((*leading, t))}

    return build


DELTA = listed(
    "gated_delta_rule",
    ("steps", {"t": 7}, _corrected((2, 3), 7)),
    ("steps", {"t": 1}, _corrected((2,), 1, "g")),
    ("decay", {"of": "step"}, _corrected((2,), 9, "g")),
    ("state", {"t": 5}, _corrected((2,), 5, "g", "initial_state")),
    ("chunks", {"t": 66}, _corrected((2,), 66, "g", forget=0.02)),
    ("specials", {}, with_specials(_corrected((4,), 5, "g"), v=np.nan)),
    ("invariance", {"rows": 37}, _corrected((37,), 5, "g")),
)


def _model(
    leading: tuple[int, ...], t: int, h: int, p: int, g: int, n: int, *given: str,
    step: float = 0.5,
) -> Build:  # fmt: skip
    """Rates A from -1 to -16, and time steps of about `step`, as in Mamba 2."""

    def build(rng: Generator, dtype: str) -> Arrays:
        arrays = {
            "dy": rng.standard_normal((*leading, t, h, p)),
            "x": rng.standard_normal((*leading, t, h, p)),
            "dt": step * rng.exponential(size=(*leading, t, h)),
            "A": -rng.uniform(1.0, 16.0, h),
            "B": rng.standard_normal((*leading, t, g, n)),
            "C": rng.standard_normal((*leading, t, g, n)),
            "D": rng.standard_normal(h),
            "dt_bias": rng.exponential(size=h),
            "initial_state": rng.standard_normal((*leading, h, p, n)),
        }
        return {name: arrays[name] for name in ("dy", "x", "dt", "A", "B", "C", *given)}

    return build


def _special_model(rng: Generator, dtype: str) -> Arrays:
    arrays = _model((3,), 5, 2, 2, 1, 3)(rng, dtype)
    arrays["x"][0, 2, 1, 0], arrays["B"][1, 2, 0, 1], arrays["dt"][2, 2, 1] = np.nan, np.inf, np.inf
    return arrays


linear_attention_cases = listed(
    "linear_attention",
    ("steps", {"t": 7}, _drawn((2, 3), 7, 4, 3)),
    ("steps", {"t": 1}, _drawn((2,), 1, 4, 3)),
    ("decay", {"of": "step"}, _drawn((2,), 7, 4, 3, "g")),
    ("decay", {"of": "channel"}, _drawn((2,), 7, 4, 3, "gk")),
    ("decay", {"of": "both"}, _drawn((2,), 8, 4, 3, "g", "gk")),
    ("state", {"t": 5}, _drawn((2,), 5, 4, 3, "g", "initial_state")),
    ("chunks", {"t": 66}, _drawn((2,), 66, 3, 2, "g", forget=0.02)),
    ("scale", {"scale": 1.0}, _drawn((2,), 7, 4, 3, "g"), {"scale": 1.0}),
    ("specials", {}, _special),
    ("invariance", {"rows": 37}, _drawn((37,), 5, 4, 3, "g")),
)


selective_scan_cases = listed(
    "selective_scan",
    ("steps", {"t": 7}, _model((2,), 7, 4, 3, 2, 2)),
    ("groups", {"g": 1, "h": 4}, _model((2,), 6, 4, 2, 1, 3)),
    ("skip", {"t": 6}, _model((2,), 6, 2, 3, 1, 3, "D")),
    ("softplus", {"bias": True}, _model((2,), 6, 2, 3, 1, 3, "dt_bias"), {"dt_softplus": True}),
    ("state", {"t": 5}, _model((2,), 5, 2, 3, 1, 3, "D", "dt_bias", "initial_state")),
    ("chunks", {"t": 66}, _model((2,), 66, 2, 2, 1, 2, "D", step=0.02)),
    ("specials", {}, _special_model),
    ("invariance", {"rows": 37}, _model((37,), 5, 2, 2, 1, 3, "D")),
)
