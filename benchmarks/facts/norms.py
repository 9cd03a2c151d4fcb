"""Sections 0 and 4: norms, attention, GELU, embedding."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from facts.asked import Array, Fact, errors, explained, gives, printed, refused, ulps

ALL = ("torch", "paddle", "oneflow", "mindspore")
RNG = np.random.default_rng(40)
IMAGE = {
    "x": RNG.standard_normal((6, 5, 3)),
    "weight": RNG.uniform(0.5, 2, 5),
    "bias": RNG.standard_normal(5),
    "running_mean": RNG.standard_normal(5),
    "running_var": RNG.uniform(0.5, 2, 5),
}
QKV = {name: RNG.standard_normal((2, 3, 6, 4)).astype("f4") for name in "qkv"}
KEEP = np.broadcast_to(np.arange(6)[:, None] != 2, (2, 3, 6, 6)).copy()


def _single(arrays: dict[str, Array], dtype: str = "float32") -> dict[str, Array]:
    return {name: array.astype(dtype) for name, array in arrays.items()}


def _gelu(dtype: str, draw: int) -> Any:
    """The error of GELU at 20,001 points, or at as many that are drawn from -3 on."""
    x = np.linspace(-3, 6, 20001)
    if draw:
        x = np.random.default_rng([40, draw]).uniform(-3, 6, 20001)
    return errors("gelu", {"x": x.astype(dtype)}, {}, "y")


NORMS = [
    Fact("0.10" if name == "paddle" else "4", name, "batch_norm's running variance",
         "biased" if name == "paddle" else "unbiased",
         explained("batch_norm", _single(IMAGE), {},
                   *(["biased_running_variance"] if name == "paddle" else [])))
    for name in ALL
]  # fmt: skip
MASKED = [
    Fact("4", "torch", "attention: a fully masked row is 0", "0",
         gives("attention", {**QKV, "keep": KEEP}, {}, [0.0] * 4, places=slice(8, 12))),
    Fact("4", "paddle", "attention: a fully masked row is NaN", "NaN",
         explained("attention", {**QKV, "keep": KEEP}, {}, "masked_rows_nan")),
    Fact("4", "oneflow", "attention of its ops: a fully masked row is NaN", "NaN",
         explained("attention", {**QKV, "keep": KEEP}, {}, "masked_rows_nan")),
    Fact("4", "mindspore", "attention of its ops: a fully masked row is 0", "0",
         gives("attention", {**QKV, "keep": KEEP}, {}, [0.0] * 4, places=slice(8, 12))),
]  # fmt: skip
RMS = {"x": RNG.standard_normal((8, 16)).astype("f4"), "weight": np.ones(16, "f4")}
KERNELS = [
    Fact("4", "mindspore", "rms_norm has no CPU kernel", "none", refused("rms_norm", RMS, {})),
    Fact("4", "torch", "RMSNorm's eps None is finfo.eps", "1.1920929e-07", printed(
        "import torch\n"
        "y = torch.nn.RMSNorm(1)(torch.tensor([[2.0**-12]]))\n"
        "print([float(y[0, 0])])", [2.0**-12 / (2.0**-24 + 2.0**-23) ** 0.5], 6)),
]  # fmt: skip
GELU = [
    Fact("4", name, f"erf GELU, x > -3, {dtype}", f"{figure:.3g} ulp",
         ulps(_gelu(dtype, 0), figure, partial(_gelu, dtype)),
         "a maximum over other points: 1 + erf cancels towards -3, and the survey's were not kept")
    for name, figure, dtype in (
        ("torch", 1320, "float32"), ("paddle", 218, "float32"), ("oneflow", 92, "float32"),
        ("mindspore", 92, "float32"),
    )
]  # fmt: skip
TANH = [
    Fact("4", "oneflow", "float64 tanh GELU has constants of float32", "4e6 eps",
         explained("gelu_tanh", {"x": np.linspace(-3, 3, 1001)}, {}, "float32_constants")),
    Fact("4", "mindspore", "float64 tanh GELU has constants of few decimals", "4e3 eps",
         explained("gelu_tanh", {"x": np.linspace(-3, 3, 1001)}, {}, "rounded_constants")),
    Fact("0.1", "mindspore", "float64 LayerNorm is computed in float32", "float32-accurate",
         explained("layernorm", {"x": RNG.standard_normal((8, 32)), "weight": np.ones(32),
                                 "bias": np.zeros(32)}, {},
                   "float32_cast", "float32_statistics")),
]  # fmt: skip
DY = RNG.standard_normal((1000, 2)).astype("f4")
TABLE = {"dy": DY, "weight": np.zeros((3, 2), "f4"), "indices": np.ones(1000, np.int64)}
SEQUENTIAL = np.add.accumulate(DY, axis=0, dtype="f4")[-1].tolist()
EMBEDDING = [
    Fact("4", name, "the gradient of 1,000 equal indices is added in index order", "equal bits",
         gives("embedding", TABLE, {}, SEQUENTIAL, direction="backward", digits=12,
               places=slice(2, 4)))
    for name in ALL
]  # fmt: skip
FACTS = [*NORMS, *MASKED, *KERNELS, *GELU, *TANH, *EMBEDDING]
