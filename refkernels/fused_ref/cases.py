"""The inputs on which fusions are measured, by regime; appended, never changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from refkernels.activation_ref.cases import gated as gated_cases
from refkernels.fused_ref.activations import ACTIVATIONS
from refkernels.op import Case
from refkernels.ops.cases import Arrays, case, drawn, with_specials

Generator = np.random.Generator
Build = Callable[[Generator, str], Arrays]


def glu_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    others = [activation for activation in ACTIVATIONS if activation != "sigmoid"]
    pair = partial(drawn, a=(700,), b=(700,), dy=(700,))
    return [
        *gated_cases("glu"),
        *(
            case("glu", "activation", {"activation": of}, pair(a_size=4.0), {"activation": of})
            for of in others
        ),
    ]


def bias_gelu_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make, some = partial(case, "bias_gelu"), partial(drawn, x=(37, 17), bias=(17,), dy=(37, 17))
    tanh = {"approximate": "tanh"}
    return [
        make("size", {"size": 1}, some()),
        make("size", {"size": 8}, some(x_size=8.0, bias_size=2.0)),
        make("approximate", {"approximate": "tanh"}, some(x_size=3.0), tanh),
        make("cancelling", {"size": 100}, _cancelling),
        make("specials", {}, with_specials(some(), x=np.nan, bias=np.inf)),
        make("invariance", {"rows": 37}, some(x_size=2.0)),
    ]


def _cancelling(rng: Generator, dtype: str) -> Arrays:
    """x + bias is much smaller than either."""
    bias = 100.0 * rng.standard_normal(17)
    return {
        "x": rng.standard_normal((9, 17)) - bias, "bias": bias, "dy": rng.standard_normal((9, 17)),
    }  # fmt: skip


def add_rms_norm_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "add_rms_norm")

    def rows(m: int, n: int, **how: Any) -> Build:
        return drawn(x=(m, n), residual=(m, n), weight=(n,), dy=(m, n), **how)

    return [
        make("row_length", {"n": 8}, rows(5, 8)),
        make("row_length", {"n": 768}, rows(8, 768)),
        make("residual", {"size": 100}, rows(7, 64, residual_size=100.0)),
        make("eps", {"eps": 1e-6}, rows(7, 17, x_size=0.01, residual_size=0.01), {"eps": 1e-6}),
        make("specials", {}, with_specials(rows(5, 5), x=np.nan)),
        make("invariance", {"rows": 37, "n": 65}, rows(37, 65)),
    ]


def lora_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "lora_linear")

    def layer(m: int, k: int, n: int, r: int, **how: Any) -> Build:
        return drawn(
            x=(m, k), weight=(n, k), lora_a=(r, k), lora_b=(n, r), bias=(n,), dy=(m, n), **how
        )

    return [
        make("rank", {"r": 1}, layer(5, 7, 6, 1), {"scale": 2.0}),
        make("rank", {"r": 8}, layer(9, 64, 16, 8, lora_b_size=0.1), {"scale": 2.0}),
        make("update", {"size": 100}, layer(5, 16, 7, 4, lora_b_size=100.0), {"scale": 0.25}),
        make("specials", {}, with_specials(layer(5, 7, 6, 3), x=np.nan)),
        make("invariance", {"rows": 37}, layer(37, 16, 7, 3)),
    ]


def linear_cross_entropy_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "linear_cross_entropy")

    def logits(
        rows: int, d: int, n: int, size: float, each: bool = False, drop: bool = False
    ) -> Build:
        def build(rng: Generator, dtype: str) -> Arrays:
            target = rng.integers(0, n, rows)
            target[: rows // 3 if drop else 0] = -100
            return {
                "dloss": rng.standard_normal(rows) if each else np.asarray(1.0),
                "x": rng.standard_normal((rows, d)),
                "weight": size * rng.standard_normal((n, d)),
                "target": target,
            }

        return build

    each_row = {"reduction": "none"}
    return [
        make("classes", {"n": 7}, logits(6, 8, 7, 0.5)),
        make("classes", {"n": 300}, logits(5, 16, 300, 0.2)),
        make("size", {"size": 10}, logits(6, 8, 7, 10.0), {"reduction": "sum"}),
        make("ignored", {"rows": 9}, logits(9, 8, 7, 0.5, drop=True)),
        make("specials", {}, with_specials(logits(5, 4, 6, 1.0, True), x=np.nan), each_row),
        make("invariance", {"rows": 37}, logits(37, 8, 11, 0.5, True), each_row),
        make(
            "combined",
            {"softcap": 30},
            logits(9, 8, 7, 3.0, drop=True),
            {"softcap": 30.0, "z_loss": 1e-4, "label_smoothing": 0.1},
        ),
    ]
