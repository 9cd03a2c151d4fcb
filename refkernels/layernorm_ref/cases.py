"""The inputs on which LayerNorms are measured, by regime. A case's name includes its seed; cases
are appended, never changed. Values are drawn in float64 and rounded once to the dtype."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.op import DTYPES, Case

Generator = np.random.Generator
Values = npt.NDArray[np.float64]
Inputs = dict[str, npt.NDArray[Any]]
_WIDE = ("bfloat16", "float32", "float64")  # where 1e6 does not overflow
SEED_ROW = (-1.83965693, -1.82964566)


def cases() -> list[Case]:
    """All cases, regime by regime."""
    return [
        *_mean_over_std(),
        *_row_length(),
        *_eps(),
        *_constant_rows(),
        *_tiny_variance(),
        *_overflow(),
        *_seed_rows(),
        *_special_shapes(),
        _invariance(),
    ]


def _case(
    regime: str,
    parameters: Mapping[str, int | float | str],
    make: Callable[[Generator, str], dict[str, Values]],
    params: Mapping[str, Any],
    seed: int = 0,
    dtypes: tuple[str, ...] = DTYPES,
) -> Case:
    listed = ",".join(f"{key}={_short(value)}" for key, value in parameters.items())
    name = f"layernorm/{regime}[{listed}{',' if listed else ''}seed={seed}]"
    build = functools.partial(_build, make, dict(params), seed)
    return Case(name, "layernorm", regime, dict(parameters), seed, build, dtypes)


def _short(value: int | float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _build(
    make: Callable[[Generator, str], dict[str, Values]],
    params: dict[str, Any],
    seed: int,
    dtype: str,
) -> tuple[Inputs, dict[str, Any]]:
    arrays = make(np.random.default_rng(seed), dtype)
    return {name: formats.round_to(value, dtype) for name, value in arrays.items()}, dict(params)


def _rows(n: int) -> int:
    return int(np.clip(8192 // n, 1, 32))


def _affine(rng: Generator, x: Values) -> dict[str, Values]:
    n = x.shape[-1]
    return {
        "dy": rng.standard_normal(x.shape),
        "x": x,
        "weight": np.add(1.0, 0.25 * rng.standard_normal(n)),
        "bias": np.multiply(0.5, rng.standard_normal(n)),
    }


def _params(eps: float, *shape: int) -> dict[str, Any]:
    return {"eps": eps, "normalized_shape": shape}


def _shifted(n: int, ratio: float) -> Callable[[Generator, str], dict[str, Values]]:
    return lambda rng, _: _affine(rng, ratio + rng.standard_normal((_rows(n), n)))


def _mean_over_std() -> list[Case]:
    grid = [(n, ratio) for n in (2, 8, 768) for ratio in (0.0, 1.0, 1e2, 1e4, 1e6)]
    grid += [(4096, 1e2), (4096, 1e4)]
    return [
        _case(
            "mean_over_std",
            {"n": n, "ratio": ratio, "eps": 1e-5},
            _shifted(n, ratio),
            _params(1e-5, n),
            seed=101,
            dtypes=_WIDE if ratio > 1e4 else DTYPES,
        )
        for n, ratio in grid
    ]


def _invariance() -> Case:
    """A row length and a number of rows that leave remainders in blocks of any size."""
    return _case(
        "invariance",
        {"rows": 37, "n": 257},
        lambda rng, _: _affine(rng, 1.0 + rng.standard_normal((37, 257))),
        _params(1e-5, 257),
        seed=110,
    )


def _row_length() -> list[Case]:
    return [
        _case("row_length", {"n": n}, _shifted(n, 0.0), _params(1e-5, n), seed=102)
        for n in (1, 2, 3, 8, 17, 256, 768, 4096, 65536)
    ]


def _eps() -> list[Case]:
    def small(rng: Generator, _: str) -> dict[str, Values]:
        return _affine(rng, 0.01 * rng.standard_normal((32, 17)))

    return [
        _case("eps", {"eps": eps}, small, _params(eps, 17), seed=103)
        for eps in (1e-12, 1e-6, 1e-5, 0.1)
    ]


def _constant_rows() -> list[Case]:
    def constant(rng: Generator, _: str) -> dict[str, Values]:
        values = np.array([0.0, 1.0, -0.1, 3.14159, 1e4, 1e-3, -77.7, 0.3])
        return _affine(rng, np.repeat(values[:, None], 7, axis=1))

    return [
        _case("constant_rows", {"eps": eps}, constant, _params(eps, 7), seed=104)
        for eps in (1e-12, 1e-5)
    ]


def _tiny_variance() -> list[Case]:
    """Rows that differ from a constant only in the last place."""

    def steps(rng: Generator, dtype: str) -> dict[str, Values]:
        target = formats.get(dtype)
        base = np.array([1.0, 3.0, 100.0, 16384.0])[:, None]
        ulp = 2.0 ** (np.floor(np.log2(base)) - target.p + 1)
        return _affine(rng, base + ulp * rng.integers(0, 2, (4, 64)))

    return [
        _case("tiny_variance", {"eps": eps}, steps, _params(eps, 64), seed=105)
        for eps in (1e-12, 1e-5)
    ]


def _overflow() -> list[Case]:
    """Rows whose sum, or whose squares, exceed the dtype's largest number; finite answers."""

    def large(fraction: float, power: float) -> Callable[[Generator, str], dict[str, Values]]:
        def make(rng: Generator, dtype: str) -> dict[str, Values]:
            top = formats.get(dtype).max ** power * fraction
            return _affine(rng, top * rng.uniform(0.5, 1.0, (4, 16)))

        return make

    return [
        _case("overflow", {"of": "sum"}, large(0.9, 1.0), _params(1e-5, 16), seed=106),
        _case("overflow", {"of": "squares"}, large(1.0, 0.75), _params(1e-5, 16), seed=106),
    ]


def _seed_rows() -> list[Case]:
    """The row of OneFlow's pull request 6149, with dy = 1: dx is exactly 0."""

    def row(affine: bool) -> Callable[[Generator, str], dict[str, Values]]:
        def make(rng: Generator, _: str) -> dict[str, Values]:
            x = np.array(SEED_ROW).reshape(1, 1, 1, 2)
            arrays = {"dy": np.ones_like(x), "x": x}
            if affine:
                arrays["weight"] = np.array([1.5, -0.5]).reshape(1, 1, 2)
                arrays["bias"] = np.array([0.25, 2.0]).reshape(1, 1, 2)
            return arrays

        return make

    return [
        _case(
            "seed_layernorm",
            {"affine": "yes" if affine else "no", "eps": eps},
            row(affine),
            _params(eps, 1, 1, 2),
        )
        for affine in (False, True)
        for eps in (1e-5, 0.1)
    ]


def _special_shapes() -> list[Case]:
    def gradients(rng: Generator, _: str) -> dict[str, Values]:
        # dweight and dbias of different size and sign in each column: a swap shows at once
        x = rng.standard_normal((5, 4))
        columns = np.array([1.0, -2.0, 3.0, 5.0])
        return {
            "dy": columns * (1.0 + rng.uniform(0.0, 1.0, x.shape)),
            "x": x,
            "weight": np.array([0.5, -1.5, 2.0, 4.0]),
            "bias": np.array([10.0, 20.0, -30.0, 40.0]),
        }

    def last_axes(rng: Generator, _: str) -> dict[str, Values]:
        x = rng.standard_normal((3, 5, 7)) + 2.0
        return {"dy": rng.standard_normal(x.shape), "x": x}

    def specials(rng: Generator, _: str) -> dict[str, Values]:
        x = rng.standard_normal((6, 5))
        x[1, 2], x[2, 0], x[3, 4] = np.nan, np.inf, -np.inf
        x[4, 1], x[4, 3] = np.inf, -np.inf
        return {"dy": rng.standard_normal(x.shape), "x": x}

    return [
        _case("affine_gradients", {}, gradients, _params(1e-5, 4), seed=107),
        _case("last_axes", {}, last_axes, _params(1e-5, 5, 7), seed=108),
        _case("specials", {}, specials, _params(1e-5, 5), seed=109),
    ]
