"""The inputs on which reductions are measured, by regime."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from refkernels.op import DIRECTIONS, DTYPES, Case
from refkernels.ops.axes import axes_of
from refkernels.ops.cases import Arrays, case

Generator = np.random.Generator
Draw = Callable[[Generator], Any]
_LONG = {"float32", "float64"}
_WIDE = tuple(dtype for dtype in DTYPES if dtype in _LONG)
OFFSETS = ((0.0, 1.0), (100.0, 3.0))


def cases_of(op: str) -> Callable[[], list[Case]]:
    """The cases of one op. Appended, never changed."""
    return partial(_cases, op)


def _cases(op: str) -> list[Case]:
    make, ddof = partial(_case, op), {"ddof": 1} if op in ("var", "std") else {}
    spread = 0.01 if op == "prod" else 1.0  # products stay near 1
    centre = 1.0 if op == "prod" else 0.0
    rough = DIRECTIONS[:1] if op == "std" else DIRECTIONS  # its root has no slope at 0
    listed = [
        *(
            make(
                "row_length",
                {"n": n},
                _normal(int(np.clip(8192 // n, 2, 32)), n, centre, spread),
                directions=rough if n == 1 else DIRECTIONS,
            )
            for n in (1, 2, 3, 17, 257, 1000, 4096)
        ),
        *(
            make(
                "all",
                {"n": n, "mean": m},
                _normal(1, n, m + centre, s * spread),
                {"axis": None},
                _WIDE,
            )
            for n in ((10**4,) if op == "prod" else (10**5, 10**6))
            for m, s in OFFSETS[: 1 if op in ("prod", "max", "argmax") else 2]
        ),
        make(
            "axes",
            {"axis": "0,2"},
            _cube(centre, spread),
            {"axis": -2 if op in ("cumsum", "argmax") else [0, 2]},
        ),
        make("integers", {"n": 100}, lambda rng: rng.integers(-1, 2, (16, 100))),
        make("constant", {"n": 7}, _constant, directions=rough),
        make("specials", {}, _specials, directions=("forward",)),
        make("invariance", {"rows": 37, "n": 257}, _normal(37, 257, centre, spread)),
    ]
    if op in ("sum", "mean", "cumsum"):
        listed.append(make("cancelling", {"n": 1000}, _cancelling))
    if ddof:
        listed.append(make("ddof", {"ddof": 1, "n": 17}, _normal(32, 17, 0.0, 1.0), ddof))
        listed += [
            make("offset", {"offset": o, "n": 257}, _normal(32, 257, o, 1.0)) for o in (10.0, 1e3)
        ]
    if op == "norm":
        listed += [make("scale", {"power": p}, _scaled(p)) for p in (-0.75, 0.45, 0.75)]
        listed.append(make("small", {"scale": 1e-9, "n": 17}, _normal(32, 17, 0.0, 1e-9)))
    if op == "prod":
        listed.append(make("zeros", {"n": 7}, _zeros))
    if op not in ("prod", "max", "argmax"):
        power = 6 if op == "cumsum" else 7  # neither first nor last: not of the core
        listed += [
            make("elements", {"n": n}, _uniform(n), {"axis": None}, ("float32",), ("forward",))
            for n in (10**3, 10**4, 10**power, 10**5)
        ]
    if op in ("max", "argmax"):
        listed.append(make("ties", {"n": 7}, lambda rng: np.round(rng.uniform(-2, 2, (64, 7)))))
    return listed


def _case(
    op: str, regime: str, parameters: Any, draw: Draw, params: Any = None,
    dtypes: Any = DTYPES, directions: Any = DIRECTIONS,
) -> Case:  # fmt: skip
    axis = (params or {}).get("axis", -1)

    def arrays(rng: Generator, dtype: str) -> Arrays:
        x = np.asarray(draw(rng), np.float64)
        axes = axes_of(axis, x.shape)
        shape = x.shape if op == "cumsum" else np.delete(x.shape, axes)
        return {"x": x} if op == "argmax" else {"dy": rng.standard_normal(shape), "x": x}

    if op == "cumsum" and axis is None:
        params = {"axis": 0}
        flat = draw
        draw = lambda rng: flat(rng).reshape(-1)  # noqa: E731
    directions = DIRECTIONS[:1] if op == "argmax" else directions
    return case(op, regime, parameters, arrays, params, dtypes=dtypes, directions=directions)


def _normal(rows: int, n: int, mean: float, spread: float) -> Draw:
    return lambda rng: mean + spread * rng.standard_normal((rows, n))


def _cube(mean: float, spread: float) -> Draw:
    return lambda rng: mean + spread * rng.standard_normal((3, 50, 5))


def _uniform(n: int) -> Draw:
    return lambda rng: rng.random((1, n))


def _constant(rng: Generator) -> Any:
    return np.repeat(np.array([1.0, -0.1, 3.14159, 100.0])[:, None], 7, axis=1)


def _cancelling(rng: Generator) -> Any:
    """Pairs that add up to 0, and a small remainder in half of the rows."""
    half = rng.standard_normal((8, 500)) * 10.0 ** rng.uniform(-3, 3, (8, 500))
    x = rng.permuted(np.concatenate([half, -half], axis=1), axis=1)
    return np.concatenate([x, 1e-5 * (np.arange(8) % 2)[:, None]], axis=1)


def _scaled(power: float) -> Draw:
    """Squares that overflow or underflow where the norm does neither."""
    return lambda rng: 2.0 ** (power * 127) * rng.uniform(0.5, 1.0, (8, 16))


def _zeros(rng: Generator) -> Any:
    """No zero, one, and two of them."""
    x = rng.uniform(0.5, 2.0, (6, 7))
    x[2:, 3], x[4:, 5] = 0.0, 0.0
    return x


def _specials(rng: Generator) -> Any:
    x = 1.0 + rng.uniform(0.0, 1.0, (5, 5))
    x[1, 2], x[2, 0], x[3, 4] = np.nan, np.inf, -np.inf
    x[4, :2] = np.inf, -np.inf
    return x
