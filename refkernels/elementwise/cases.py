"""Cases of elementwise functions: `make`, and the regimes that every function needs.

Each builds x and a cotangent dy in the given dtype; random numbers come from the seed in the name.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.kernels.real_function import Array, Doubles
from refkernels.op import DIRECTIONS, DTYPES, Case, Direction

_SEED = 0
# (format, generator) -> x, or (x, dy); float64, rounded to the format afterwards.
Points: TypeAlias = Callable[[Format, np.random.Generator], Any]


def make(
    op: str,
    regime: str,
    parameters: dict[str, int | float | str],
    points_of: Points,
    dtypes: tuple[str, ...] = DTYPES,
    directions: tuple[Direction, ...] = DIRECTIONS,
) -> Case:
    """The case "op/regime[key=value,...,seed=0]" with these points."""
    shown = [_shown(key, value) for key, value in parameters.items()]
    label = f"{op}/{regime}[{','.join([*shown, f'seed={_SEED}'])}]"
    return Case(
        label, op, regime, parameters, _SEED, partial(_build, points_of), dtypes, directions
    )


def _shown(key: str, value: int | float | str) -> str:
    return f"{key}={value}" if isinstance(value, str) else f"{key}={value:g}"


def _build(points_of: Points, dtype: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """x rounded to the dtype and its own dy, or a normally distributed one."""
    format = formats.get(dtype)
    generator = np.random.default_rng(_SEED)
    points = points_of(format, generator)
    x, dy = (
        points if isinstance(points, tuple) else (points, generator.standard_normal(points.size))
    )
    return {"x": formats.round_to(x, format), "dy": formats.round_to(dy, format)}, {}


def log_uniform(
    low: float, high: float, n: int, format: Format, generator: np.random.Generator
) -> Doubles:
    """n numbers, log-uniform in [low, high] or up to the format's maximum, both signs."""
    exponents = generator.uniform(math.log2(low), math.log2(min(high, format.max)), n)
    return np.exp2(exponents) * generator.choice([-1.0, 1.0], n)


def binades(low: int, high: int, n: int, format: Format, generator: np.random.Generator) -> Doubles:
    """About n numbers of both signs, as many from each binade 2^low .. 2^high of the format."""
    low, high = max(low, format.emin), min(high, format.emax)
    exponents = np.repeat(np.arange(low, high + 1), max(n // (high - low + 1), 1))
    fractions = 1.0 + generator.random(exponents.size)
    x = np.minimum(np.ldexp(fractions, exponents), format.max)
    return x * generator.choice([-1.0, 1.0], x.size)


def subnormals(n: int, format: Format, generator: np.random.Generator) -> Doubles:
    """n subnormals and smallest normals of both signs, log-uniform."""
    exponents = generator.uniform(format.emin - format.p + 1, format.emin + 1, n)
    return np.ldexp(1 + generator.random(n), exponents.astype(np.int64)) * generator.choice(
        [-1.0, 1.0], n
    )


def specials(format: Format, generator: np.random.Generator) -> tuple[Doubles, Doubles]:
    """Each of ±0, ±inf, NaN, the extremes and 1 as x, with each of a few of them as dy."""
    edges = (0.0, format.min_subnormal, format.min_normal, 1.0, format.max, math.inf)
    x = [*edges, *(-edge for edge in edges), math.nan]
    dy = [0.0, -0.0, 1.0, -format.max, format.min_subnormal, math.inf, math.nan]
    grid = np.meshgrid(np.array(x), np.array(dy), indexing="ij")
    return grid[0].reshape(-1), grid[1].reshape(-1)
