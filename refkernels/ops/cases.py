"""Cases of ops that are defined by formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.op import DIRECTIONS, DTYPES, Case, Direction

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def case(
    op: str,
    regime: str,
    parameters: Mapping[str, int | float | str],
    arrays: Callable[[np.random.Generator, str], Arrays],
    params: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    dtypes: tuple[str, ...] = DTYPES,
    directions: tuple[Direction, ...] = DIRECTIONS,
) -> Case:
    """The case "op/regime[key=value,...,seed=0]". `arrays` draws the inputs and the cotangent in
    float64 from a generator, for a dtype. They are rounded once to that dtype; integers stay
    unchanged."""
    texts = (f"{x:g}" if isinstance(x, float) else str(x) for x in parameters.values())
    listed = ",".join(map("{}={}".format, parameters, texts))
    name = f"{op}/{regime}[{listed}{',' if listed else ''}seed={seed}]"
    build = partial(_build, arrays, dict(params or {}), seed)
    return Case(name, op, regime, dict(parameters), seed, build, dtypes, directions)


def listed(op: str, *described: Any, **shared: Any) -> Callable[[], list[Case]]:
    """The cases of an op, each by what `case` takes after the op's name; `shared`: by name. They
    are appended, never changed."""
    return lambda: [case(op, *arguments, **shared) for arguments in described]


def _build(
    arrays: Callable[[np.random.Generator, str], Arrays],
    params: dict[str, Any],
    seed: int,
    dtype: str,
) -> tuple[Arrays, dict[str, Any]]:
    drawn = arrays(np.random.default_rng(seed), dtype)
    inputs = {
        name: formats.round_to(array, dtype) if array.dtype == np.float64 else array
        for name, array in drawn.items()
    }
    return inputs, dict(params)


def drawn(**described: Any) -> Callable[[np.random.Generator, str], Arrays]:
    """Arrays by name: a shape of normal numbers, of the size NAME_size, or what a function of the
    generator gives."""

    def build(rng: np.random.Generator, dtype: str) -> Arrays:
        return {
            name: how(rng)
            if callable(how)
            else described.get(f"{name}_size", 1.0) * rng.standard_normal(how)
            for name, how in described.items()
            if not name.endswith("_size")
        }

    return build


def whole(least: int, most: int, shape: Any) -> Callable[[np.random.Generator], npt.NDArray[Any]]:
    """Whole numbers from `least` up to, and without, `most`."""
    return lambda rng: rng.integers(least, most, shape)


def with_specials(
    arrays: Callable[[np.random.Generator, str], Arrays], **specials: float
) -> Callable[[np.random.Generator, str], Arrays]:
    """With one number of each named array replaced."""

    def build(rng: np.random.Generator, dtype: str) -> Arrays:
        made = arrays(rng, dtype)
        for name, value in specials.items():
            made[name].flat[made[name].size // 2] = value
        return made

    return build
