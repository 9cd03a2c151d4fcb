"""The inputs on which batch, group and instance norm are measured, by regime."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.op import DTYPES, Case
from refkernels.ops.cases import Arrays, case

Generator = np.random.Generator
Shape = tuple[int, ...]


def batch_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(_case, "batch_norm", running=True)
    return [
        *_common("batch_norm", {}, running=True),
        make("momentum", {"momentum": 0.3}, (4, 3, 5), params={"momentum": 0.3}),
        make("batch", {"n": 2}, (2, 16), params={"momentum": 0.1}),
        make("inference", {}, (4, 6, 5, 5), params={"training": False}),
        make("inference", {"mean": 100}, (8, 6, 7), mean=100.0, params={"training": False}),
        make("running_variance", {"of": "biased"}, (2, 3, 5), params={"biased": True}),
    ]


def group_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    return [
        *_common("group_norm", {"num_groups": 3}),
        _case("group_norm", "groups", {"num_groups": 1}, (4, 6, 5, 5), params={"num_groups": 1}),
        _case("group_norm", "groups", {"num_groups": 6}, (4, 6, 5, 5), params={"num_groups": 6}),
        _case("group_norm", "invariance", {"rows": 37}, (37, 6, 5, 5), params={"num_groups": 3}),
    ]


def instance_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    alone = _case("instance_norm", "invariance", {"rows": 37}, (37, 6, 5, 5))
    return [*_common("instance_norm", {}), alone]


def _common(op: str, params: dict[str, Any], running: bool = False) -> list[Case]:
    make = partial(_case, op, params=params, running=running)
    return [
        *(make("positions", {"s": s}, (4, 6, s)) for s in (3, 25, 1024)),
        make("images", {"n": 16}, (16, 6, 5, 5)),
        *(make("offset", {"mean": m}, (4, 6, 5, 5), mean=m) for m in (10.0, 1000.0)),
        make("scale", {"scale": 1e-3, "eps": 1e-5}, (4, 6, 5, 5), scale=1e-3),
        make("no_weight", {}, (4, 6, 5), affine=False),
        _case(op, "eps", {"eps": 0.1}, (4, 6, 25), params={**params, "eps": 0.1}, running=running),
        make("specials", {}, (3, 6, 5), specials=True, directions=("forward",)),
        make("offset", {"mean": 1e5}, (4, 6, 5, 5), mean=1e5, dtypes=("float32", "float64")),
    ]


def _case(
    op: str, regime: str, parameters: Any, shape: Shape, *, mean: float = 0.0, scale: float = 1.0,
    affine: bool = True, running: bool = False, specials: bool = False, params: Any = None,
    directions: Any = ("forward", "backward"), dtypes: Any = DTYPES,
) -> Case:  # fmt: skip
    def arrays(rng: Generator, dtype: str) -> Arrays:
        channels = shape[1]
        x = mean + scale * rng.standard_normal(shape)
        if specials:
            x[0, 1, 2], x[1, 2, 0], x[2, 5, 1] = np.nan, np.inf, -np.inf
        drawn = {"dy": rng.standard_normal(shape), "x": x}
        if affine:
            drawn["weight"] = 1.0 + 0.25 * rng.standard_normal(channels)
            drawn["bias"] = rng.standard_normal(channels)
        if running:
            drawn["running_mean"] = mean + rng.standard_normal(channels)
            drawn["running_var"] = rng.uniform(0.5, 2.0, channels)
        return drawn

    return case(op, regime, parameters, arrays, params, directions=directions, dtypes=dtypes)
