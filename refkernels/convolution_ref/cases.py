"""The inputs on which convolutions are measured, by regime."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.convolution_ref.geometry import axes_of
from refkernels.op import Case
from refkernels.ops.cases import Arrays, case

PARAMS = {"stride": 1, "padding": "valid", "dilation": 1, "groups": 1}


def cases(op: str, rank: int) -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(_case, op, rank)
    eight, nine = (8,) * rank, (9,) * rank
    one_sided = [0, 1] if rank == 1 else [0, 1, 1, 0]
    padded = {"padding": 1}
    return [
        *(
            make("products", {"products": c * 3**rank}, c=c, size=eight, params=padded)
            for c in (1, 4, 16, 64, 256)
        ),
        *(make("taps", {"taps": k}, k=k, params={"padding": "same"}) for k in (1, 2, 5, 7)),
        *(make("stride", {"stride": s}, params={"stride": s, **padded}) for s in (2, 3)),
        make("stride", {"stride": 2, "taps": 1}, k=1, params={"stride": 2}),
        make("dilation", {"dilation": 2}, params={"dilation": 2}),
        make("dilation", {"dilation": 3}, size=nine, params={"dilation": 3, "stride": 2}),
        make("groups", {"groups": 2}, c=6, o=4, params={"groups": 2}),
        make("groups", {"groups": 6}, c=6, o=12, params={"groups": 6, **padded}),
        make("padding", {"stride": 2}, size=eight, params={"stride": 2, "padding": "same"}),
        make("padding", {"sides": "one"}, params={"padding": one_sided}),
        make("padding", {"padding": 5}, size=(3,) * rank, params={"padding": 5}),
        *(make("offset", {"mean": m}, mean=m, params=padded) for m in (10.0, 1000.0)),
        make("cancelling", {"weights": "differences"}, mean=100.0, differences=True),
        make("scale", {"scale": 1e-18}, scale=1e-18),
        make("scale", {"range": "wide"}, wide=8.0, params=padded),
        make("bias", {"bias": 1000}, bias=1000.0, params=padded),
        make("bias", {"bias": "none"}, bias=None),
        make("bias", {"width": "channels"}, o=7, size=(7,) * rank, params=padded),
        make("layer", {"channels": 64}, n=1, c=64, o=64, size=(14,) * rank, params=padded),
        make("specials", {}, specials=True, directions=("forward",), params=padded),
        make("invariance", {"rows": 37}, n=37, params=padded),
    ]


def _case(
    op: str, rank: int, regime: str, parameters: Any, *, n: int = 2, c: int = 3, o: int = 4,
    size: tuple[int, ...] = (), k: int = 3, mean: float = 0.0, scale: float = 1.0,
    wide: float = 0.0, bias: float | None = 1.0, differences: bool = False, specials: bool = False,
    params: Any = None, directions: Any = ("forward", "backward"),
) -> Case:  # fmt: skip
    settings = PARAMS | (params or {})
    size = size or (6, 7)[2 - rank :]

    def arrays(rng: np.random.Generator, dtype: str) -> Arrays:
        groups = settings["groups"]
        taps = (k,) * rank
        grid = axes_of(size, taps, settings["stride"], settings["padding"], settings["dilation"])
        x = mean + scale * rng.standard_normal((n, c, *size))
        weight = rng.standard_normal((o, c // groups, *taps)) / np.sqrt(c // groups * k**rank)
        if wide:
            x = x * 10.0 ** rng.uniform(-wide / 2, wide / 2, x.shape)
        if differences:
            weight = weight - np.roll(weight, 1, axis=-1)
        if specials:
            x[0, 0, ..., 2], x[1, 1, ..., 0], x[1, 2, ..., 4] = np.nan, np.inf, -np.inf
        inputs = {"dy": rng.standard_normal((n, o, *grid.out)), "x": x, "weight": weight}
        if bias is not None:
            inputs["bias"] = bias * rng.standard_normal(o)
        return inputs

    return case(op, regime, parameters, arrays, params, directions=directions)
