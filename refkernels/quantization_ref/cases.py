"""The inputs on which casts and quantizers are measured, by regime; appended, never changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import ml_dtypes
import numpy as np

from refkernels.op import Case
from refkernels.ops.cases import Arrays, case, listed, with_specials

Generator = np.random.Generator
Build = Callable[[Generator, str], Arrays]


def _x(*shape: int, size: float = 1.0, nan: bool = False, **others: float) -> Build:
    """x of many magnitudes, one of them NaN; `others`: constant arrays."""

    def build(rng: Generator, dtype: str) -> Arrays:
        x = size * rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 3, shape)
        x.flat[x.size // 2] = np.nan if nan else -0.0
        return {"x": x, **{name: np.asarray(value) for name, value in others.items()}}

    return build


def _ties(rng: Generator, dtype: str) -> Arrays:
    """Midpoints of e4m3's numbers, and numbers just beside them, which bfloat16 rounds to them."""
    middle = np.ldexp(2.0 * rng.integers(8, 16, 400) + 1.0, rng.integers(-6, 3, 400))
    beside = middle * (1.0 + rng.choice([-1.0, 0.0, 1.0], 400) * 2.0**-10)
    return {"x": beside * rng.choice([-1.0, 1.0], 400)}


def _drawn(rng: Generator, dtype: str) -> Arrays:
    return {**_x(600, size=8.0)(rng, dtype), "draws": rng.integers(0, 128, 600) / 128.0}


def _special(rng: Generator, dtype: str) -> Arrays:
    x = np.resize([0.0, -0.0, 1.0, 448.0, 460.0, 470.0, 6e4, np.inf, -np.inf, np.nan], 64)
    return {"x": x}


def cast_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "cast", directions=("forward",))
    some, saturate = _x(700, size=8.0), {"overflow": "saturate"}
    narrow = (
        "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e3m2fn", "float4_e2m1fn",
        "int8", "int4",
    )  # fmt: skip
    return [
        make("size", {"size": 8}, some),
        make("size", {"size": 1e3}, _x(700, size=1e3)),
        make("subnormal", {"size": 2**-9}, _x(700, size=2.0**-9)),
        make("ties", {"between": "e4m3fn"}, _ties),
        *(make("formats", {"to": to}, some, {"to": to, **saturate}) for to in narrow),
        make("away", {"to": "int8"}, some, {"to": "int8", "ties": "away", **saturate}),
        make("stochastic", {"draws": 128}, _drawn),
        make("overflow", {"to": "e4m3fn"}, _x(700, size=300.0)),
        make("specials", {"to": "e4m3fn"}, _special),
        make("specials", {"overflow": "saturate"}, _special, saturate),
        make("invariance", {"elements": 259}, _x(259, size=8.0)),
    ]


def _scaled(shape: tuple[int, ...], scales: tuple[int, ...], size: float, points: int = 0) -> Build:
    def build(rng: Generator, dtype: str) -> Arrays:
        arrays: Arrays = {
            "x": rng.standard_normal(shape),
            "scale": size * rng.uniform(0.5, 1.5, scales),
        }
        return {**arrays, "zero_point": rng.integers(0, points, scales)} if points else arrays

    return build


def _low(
    of: str, shape: tuple[int, ...], scales: tuple[int, ...], points: int = 0, special: bool = False
) -> Build:
    def build(rng: Generator, dtype: str) -> Arrays:
        kind = np.dtype(getattr(ml_dtypes, of, of))
        x = 3.0 * rng.standard_normal(shape)
        x[..., :3] = [np.inf, -np.inf, np.nan] if special else x[..., :3]
        arrays: Arrays = {"x": x.astype(kind), "scale": rng.uniform(0.01, 0.1, scales)}
        if points:
            arrays["zero_point"] = rng.integers(-(points // 2), points // 2 + 1, scales)
        return arrays

    return build


def block_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "block_quantize", directions=("forward",))
    mx = {"block": 32, "scales": "float8_e8m0fnu", "rule": "floor"}
    nvfp4 = {"to": "float4_e2m1fn", "block": 16, "scales": "float8_e4m3fn"}
    return [
        make("row", {"to": "e4m3fn"}, _x(6, 96)),
        make("row", {"to": "int8"}, _x(6, 96), {"to": "int8"}),
        make("block", {"of": 64, "eps": 1e-4}, _x(6, 128), {"block": 64, "eps": 1e-4}),
        *(
            make("mx", {"to": to}, _x(6, 96), {**mx, "to": to})
            for to in (
                "float8_e4m3fn",
                "float8_e5m2",
                "float6_e2m3fn",
                "float6_e3m2fn",
                "float4_e2m1fn",
            )
        ),
        make("ceil", {"to": "e4m3fn"}, _x(6, 96), {**mx, "rule": "ceil"}),
        make("nvfp4", {"tensor_scale": 0.25}, _x(6, 96, tensor_scale=0.25), nvfp4),
        make("zeros", {"to": "e4m3fn"}, _x(4, 96, size=0.0)),
        make("specials", {}, _x(6, 96, nan=True)),
        make("invariance", {"rows": 37}, _x(37, 32)),
    ]


quantize_cases = listed(
    "quantize",
    ("tensor", {"to": "int8"}, _scaled((37, 24), (), 0.05)),
    ("tensor", {"to": "e4m3fn"}, _scaled((37, 24), (), 0.05), {"to": "float8_e4m3fn"}),
    ("row", {"to": "int8"}, _scaled((37, 24), (37, 1), 0.05)),
    ("blocks", {"to": "int4"}, _scaled((12, 64), (12, 4), 0.3), {"to": "int4"}),
    ("blocks", {"to": "e2m1fn"}, _scaled((12, 64), (3, 4), 0.3), {"to": "float4_e2m1fn"}),
    ("zero_point", {"to": "uint8"}, _scaled((12, 64), (12, 1), 0.05, 256), {"to": "uint8"}),
    ("zero_point", {"to": "uint4"}, _scaled((12, 64), (12, 4), 0.3, 16), {"to": "uint4"}),
    ("away", {"to": "int8"}, _scaled((12, 24), (), 0.25), {"ties": "away"}),
    ("specials", {"to": "e4m3fn"}, _x(12, 14, nan=True, scale=0.05), {"to": "float8_e4m3fn"}),
    ("invariance", {"elements": 37}, _scaled((37,), (37,), 0.05)),
    directions=("forward",),
)


def _by_table(numbers: int, rows: int, b: int, rng: Generator, dtype: str) -> Arrays:
    """A table without order, with 0; and a block of zeros."""
    x = rng.standard_normal((rows, b))
    x[2] = 0.0
    return {"x": x, "table": rng.permutation(np.append(rng.uniform(-1, 1, numbers - 2), [0, 1]))}


table_cases = listed(
    "table_quantize",
    ("numbers", {"of": 16}, partial(_by_table, 16, 7, 64)),
    ("codes", {"of": 256}, partial(_by_table, 256, 3, 256)),
    ("specials", {"nan": 1}, with_specials(partial(_by_table, 16, 40, 8), x=np.nan)),
    ("invariance", {"rows": 37}, partial(_by_table, 16, 37, 8)),
    directions=("forward",),
)
dequantize_cases = listed(
    "dequantize",
    ("tensor", {"of": "int8"}, _low("int8", (37, 24), ())),
    ("row", {"of": "e4m3fn"}, _low("float8_e4m3fn", (37, 24), (37, 1))),
    ("blocks", {"of": "e2m1fn"}, _low("float4_e2m1fn", (12, 64), (12, 4))),
    ("zero_point", {"of": "int4"}, _low("int4", (12, 64), (12, 4), 15)),
    ("zero_point", {"of": "int8"}, _low("int8", (12, 64), (12, 1), 255)),
    ("specials", {"of": "e5m2"}, _low("float8_e5m2", (12, 24), (), special=True)),
    ("invariance", {"elements": 37}, _low("int8", (37,), (37,))),
    directions=("forward",),
)
