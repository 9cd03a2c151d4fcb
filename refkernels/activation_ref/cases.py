"""The inputs on which activations are measured, by regime; appended, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.op import Case
from refkernels.ops.cases import Arrays, case, drawn, listed, with_specials

SPECIALS = (0.0, -0.0, np.inf, -np.inf, np.nan)


def cases_of(
    op: str, points: tuple[float, ...] = (), params: Mapping[str, Any] | None = None
) -> list[Case]:
    """The cases of one activation. `points`: its edges or zeros; `params`: params other than the
    defaults, for one more case."""
    shown = {k: v for k, v in (params or {}).items() if isinstance(v, int | float | str)}
    return [
        case(op, "range", {"size": 4}, _range(4.0)),
        case(op, "range", {"size": 40}, _range(40.0)),
        case(op, "range", {"size": 1000}, _range(1000.0)),
        case(op, "near_zero", {}, lambda rng, _: with_dy(rng, _signed(rng, -12.0, 0.0))),
        case(op, "binades", {}, binades),
        *(case(op, "around", {"x": x}, partial(around, x)) for x in points),
        case(op, "specials", {}, lambda rng, _: with_dy(rng, np.array([*SPECIALS, *points]))),
        *([case(op, "params", shown, _range(8.0), params)] if params else []),
        case(op, "invariance", {"n": 259}, lambda rng, _: with_dy(rng, rng.uniform(-4, 4, 259))),
    ]


def _range(size: float) -> Any:
    return lambda rng, _: with_dy(rng, rng.uniform(-size, size, 3000))


def _signed(rng: np.random.Generator, low: float, high: float) -> Any:
    """±2^e, e uniform."""
    return rng.choice([-1.0, 1.0], 3000) * 2.0 ** rng.uniform(low, high, 3000)


def with_dy(rng: np.random.Generator, x: Any) -> Arrays:
    return {"dy": rng.standard_normal(x.shape), "x": x}


def binades(rng: np.random.Generator, dtype: str) -> Arrays:
    format = formats.get(dtype)
    exponents = np.arange(format.emin - format.p + 1, format.emax + 1)
    sizes = np.ldexp(rng.uniform(1.0, 2.0 - 2.0**-7, (4, exponents.size)), exponents)
    return with_dy(rng, np.concatenate([sizes, -sizes], axis=1).reshape(-1))


def around(centre: float, rng: np.random.Generator, dtype: str) -> Arrays:
    ulp = 2.0 ** (np.floor(np.log2(abs(centre))) - formats.get(dtype).p + 1)
    return with_dy(rng, centre + ulp * np.arange(-64.0, 65.0))


def gated(op: str) -> list[Case]:
    """The cases of an activation of two inputs, a gate a and b."""

    def pair(size: float, n: int = 3000, tiny: float = 1.0) -> Any:
        return lambda rng, _: {
            "dy": rng.standard_normal(n),
            "a": tiny * rng.uniform(-size, size, n),
            "b": rng.standard_normal(n),
        }

    def specials(rng: np.random.Generator, _: str) -> Arrays:
        a, b = (grid.reshape(-1) for grid in np.meshgrid([*SPECIALS, 1.0], [*SPECIALS, -2.0]))
        return {"dy": rng.standard_normal(a.size), "a": a, "b": b}

    return [
        case(op, "range", {"size": 4}, pair(4.0)),
        case(op, "range", {"size": 40}, pair(40.0)),
        case(op, "range", {"size": 1000}, pair(1000.0)),
        case(op, "near_zero", {}, pair(1.0, tiny=2.0**-10)),
        case(op, "specials", {}, specials),
        case(op, "invariance", {"n": 259}, pair(4.0, 259)),
    ]


def _channels(*shape: int, weight: tuple[int, ...], size: float = 4.0) -> Any:
    return drawn(dy=shape, x=shape, x_size=size, weight=weight)


PRELU = listed(
    "prelu",
    ("one", {"size": 4}, _channels(700, weight=(1,))),
    ("channels", {"c": 3}, _channels(5, 3, 17, weight=(3,)), {"axis": 1}),
    ("channels", {"c": 9}, _channels(37, 9, weight=(9,))),
    ("specials", {}, with_specials(_channels(4, 3, weight=(3,)), x=np.nan, weight=-np.inf)),
    ("invariance", {"rows": 37}, _channels(37, 7, weight=(7,))),
)
