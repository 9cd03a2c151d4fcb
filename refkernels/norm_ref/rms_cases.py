"""The inputs on which rms_norm is measured, by regime."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.op import Case
from refkernels.ops.cases import Arrays, case

Generator = np.random.Generator
Make = Callable[[Generator, str], Arrays]
_case = partial(case, "rms_norm")


def cases() -> list[Case]:
    """All cases. Appended, never changed."""
    return [
        *(
            _case("row_length", {"n": n}, _normal(int(np.clip(8192 // n, 2, 32)), n))
            for n in (1, 2, 3, 8, 17, 256, 768, 4096, 65536)
        ),
        *(
            _case("scale", {"scale": scale, "eps": 1e-5}, _normal(32, 17, scale))
            for scale in (1e-4, 1e-2, 1e2)
        ),
        *(
            _case("eps", {"eps": eps}, _normal(32, 17, 0.01), {"eps": eps})
            for eps in (1e-12, 1e-6, 0.1)
        ),
        _case("offset", {"mean": 100}, _offset),
        _case("constant_rows", {}, _constant),
        _case("parallel_cotangent", {"eps": 1e-12}, _parallel, {"eps": 1e-12}),
        *(_case("overflow", {"of": "squares", "power": p}, _large(p)) for p in (0.55, 0.75)),
        _case("no_weight", {}, lambda rng, _: _rows(rng.standard_normal((3, 5, 7)), rng, False)),
        _case("weight_gradient", {}, _columns),
        _case("specials", {}, _specials),
        _case("invariance", {"rows": 37, "n": 257}, _normal(37, 257)),
    ]


def _rows(x: Any, rng: Generator, affine: bool = True) -> Arrays:
    arrays = {"dy": rng.standard_normal(x.shape), "x": x}
    return arrays | ({"weight": 1.0 + 0.25 * rng.standard_normal(x.shape[-1])} if affine else {})


def _normal(rows: int, n: int, scale: float = 1.0) -> Make:
    return lambda rng, _: _rows(scale * rng.standard_normal((rows, n)), rng)


def _offset(rng: Generator, dtype: str) -> Arrays:
    return _rows(100.0 + rng.standard_normal((32, 64)), rng)


def _constant(rng: Generator, dtype: str) -> Arrays:
    """Constant rows, one of zeros, where y is 0."""
    values = np.array([0.0, 1.0, -0.1, 3.14159, 1e4, 1e-3, -77.7])
    return _rows(np.repeat(values[:, None], 7, axis=1), rng)


def _parallel(rng: Generator, dtype: str) -> Arrays:
    """dy in the direction of x: without eps, dx would be 0."""
    x = np.round(4.0 * rng.standard_normal((8, 16)))
    return {"dy": 2.0 * x, "x": x}


def _large(power: float) -> Make:
    def make(rng: Generator, dtype: str) -> Arrays:
        return _rows(formats.get(dtype).max ** power * rng.uniform(0.5, 1.0, (4, 16)), rng)

    return make


def _columns(rng: Generator, dtype: str) -> Arrays:
    """dweight differs in size and sign from column to column."""
    columns = np.array([1.0, -2.0, 3.0, 5.0])
    x = rng.standard_normal((5, 4))
    dy = columns * (1.0 + rng.uniform(0.0, 1.0, x.shape))
    return {"dy": dy, "x": x, "weight": np.array([0.5, -1.5, 2.0, 4.0])}


def _specials(rng: Generator, dtype: str) -> Arrays:
    x = rng.standard_normal((5, 5))
    x[1, 2], x[2, 0], x[3, 4] = np.nan, np.inf, -np.inf
    return _rows(x, rng)
