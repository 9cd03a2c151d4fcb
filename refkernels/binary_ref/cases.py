"""The inputs on which functions of two numbers are measured, by regime; appended, never changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.op import Case
from refkernels.ops.cases import Arrays, case

N = 2003
SPECIALS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -0.5, np.inf, -np.inf, np.nan)


def _arrays(rng: np.random.Generator, **pair: Any) -> Arrays:
    return {"dy": rng.standard_normal(next(iter(pair.values())).shape), **pair}


def _specials(first: str, second: str) -> Any:
    def build(rng: np.random.Generator, _: str) -> Arrays:
        a, b = (grid.reshape(-1) for grid in np.meshgrid(SPECIALS, SPECIALS))
        return _arrays(rng, **{first: a, second: b})

    return build


def cases_of_pow() -> list[Case]:
    def make(regime: str, pair: Any, parameters: Any = None, n: int = N) -> Case:
        def build(rng: np.random.Generator, dtype: str) -> Arrays:
            x, exponent = pair(rng, formats.get(dtype), n)
            return _arrays(rng, x=x, exponent=exponent)

        return case("pow", regime, parameters or {}, build)

    def normal(rng: Any, _: Any, n: int) -> Any:
        return rng.lognormal(0, 1, n), 2.0 * rng.standard_normal(n)

    def integers(rng: Any, _: Any, n: int) -> Any:
        return 3.0 * rng.standard_normal(n), rng.integers(-4, 5, n).astype(float)

    def beside_one(rng: Any, format: Any, n: int) -> Any:
        x = 1.0 + rng.integers(-64, 65, n) * 2.0 ** (1 - format.p)
        largest = min(format.emax * 2.0 ** (format.p - 7), format.max / 4)
        return x, rng.uniform(-1, 1, n) * largest

    def full_range(rng: Any, format: Any, n: int) -> Any:
        x = 2.0 ** rng.uniform(format.emin + 1, format.emax - 1, n)
        return x, rng.uniform(format.emin, format.emax, n) / np.log2(x)

    def exact(rng: Any, format: Any, n: int) -> Any:
        m, e = rng.integers(1, 10, n).astype(float), rng.integers(-3, 4, n)
        return np.ldexp(m, 2 * e) ** 2, rng.choice([0.5, 1.0, 1.5, 2.0, 2.5], n)

    return [
        make("normal", normal),
        make("integers", integers),
        make("beside_one", beside_one),
        make("full_range", full_range),
        make("exact", exact),
        case("pow", "specials", {}, _specials("x", "exponent")),
        make("invariance", normal, n=259),
    ]


def cases_of_plane(op: str) -> list[Case]:
    """The cases of atan2 or hypot."""

    def make(regime: str, pair: Any, n: int = N) -> Case:
        def build(rng: np.random.Generator, dtype: str) -> Arrays:
            a, b = pair(rng, formats.get(dtype), n)
            return _arrays(rng, a=a, b=b)

        return case(op, regime, {}, build)

    def normal(rng: Any, _: Any, n: int) -> Any:
        return rng.standard_normal((2, n))

    def far_apart(rng: Any, format: Any, n: int) -> Any:
        return rng.standard_normal(n), rng.standard_normal(n) * 2.0 ** rng.uniform(-12, 12, n)

    def binades(rng: Any, format: Any, n: int) -> Any:
        size = 2.0 ** rng.uniform(format.emin - format.p + 2, format.emax - 1, n)
        return rng.uniform(-1, 1, n) * size, rng.uniform(-1, 1, n) * size

    def triangles(rng: Any, _: Any, n: int) -> Any:
        m, k = rng.integers(1, 8, (2, n))
        return (m * m - k * k).astype(float), rng.choice([-2.0, 2.0], n) * m * k

    return [
        make("normal", normal),
        make("far_apart", far_apart),
        make("binades", binades),
        make("triangles", triangles),
        case(op, "specials", {}, _specials("a", "b")),
        make("invariance", normal, 259),
    ]
