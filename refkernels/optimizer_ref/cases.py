"""The inputs on which optimizers are measured: one step, from a state, by regime.

A quarter of the parameters is 0 wherever possible: there the new parameter is the update itself,
with all of its digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.op import DTYPES, Case
from refkernels.ops.cases import Arrays, case

N = 203  # no multiple of a vector's length, so that there is a tail
_USUAL = ("bfloat16", "float32", "float64")
_SQUARES = ("v", "vmax", "accum")  # states that are never negative
Params = Mapping[str, Any]


def _arrays(
    states: tuple[str, ...], kind: str, scale: float, rng: np.random.Generator, dtype: str
) -> Arrays:
    """param, grad and the states."""
    param, grad, *drawn = rng.standard_normal((2 + len(states), N))
    param, grad = param * (np.arange(N) % 4 > 0), scale * grad
    arrays = {"param": param, "grad": grad}
    for name, state in zip(states, drawn, strict=True):
        arrays[name] = np.square(scale * state) if name in _SQUARES else scale * state
    if "mean" in arrays:  # the mean of numbers whose squares have the mean accum
        arrays["mean"] = 0.9 * np.sqrt(arrays["accum"])
    if kind == "zero state":
        arrays |= {name: np.zeros(N) for name in states}
    elif kind == "zero gradient":
        arrays["grad"] = np.zeros(N)
    elif kind == "large parameters":
        arrays["param"] = 30.0 * param
    elif kind == "extremes":
        format = formats.get(dtype)
        sizes = (format.min_subnormal, format.min_normal, format.max**0.5, format.max / 2)
        arrays["grad"] = rng.choice(sizes, N) * np.sign(grad)
    elif kind == "specials":
        arrays["grad"][[3, 50, 70]] = np.inf, -np.inf, np.nan
        arrays["param"][[5, 51]] = np.nan, np.inf
    elif kind.startswith("untouched"):  # an embedding with a third of its rows not looked up
        arrays = {name: array.reshape(-1, 7) for name, array in arrays.items()}
        arrays["grad"][1::3] = 0.0
    return arrays


def cases_of(
    op: str, states: str, shown: Params, more: tuple[tuple[str, str, Params], ...] = ()
) -> list[Case]:
    """The cases of one optimizer. `shown`: the params of its cases besides the defaults, except in
    its first step; `more`: regimes with other states and params. Appended, never changed."""
    first = {name: value for name, value in shown.items() if name != "step"}
    late = {**shown, "step": 1000} if "step" in shown else shown
    regimes = [
        ("first_step", "zero state", 1.0, states, first),
        ("later_step", "", 1.0, states, shown),
        ("late_step", "", 1.0, states, late),
        ("no_decay", "", 1.0, states, {**shown, "weight_decay": 0.0}),
        ("eps_visible", "", 2.0**-24, states, shown),
        ("zero_gradient", "zero gradient", 1.0, states, shown),
        ("large_parameters", "large parameters", 1.0, states, shown),
        ("extremes", "extremes", 1.0, states, shown),
        ("specials", "specials", 1.0, states, shown),
        ("invariance", "", 1.0, states, shown),
        *((regime, regime, 1.0, states, {**shown, **changes}) for regime, states, changes in more),
    ]
    return [
        case(op, regime, {"n": N}, partial(_arrays, tuple(states.split()), kind, scale), changes,
             dtypes=DTYPES if regime == "invariance" else _USUAL, directions=("forward",))
        for regime, kind, scale, states, changes in regimes
    ]  # fmt: skip
