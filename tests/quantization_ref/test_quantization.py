"""Kernels that quantize: right ones in the narrow dtype itself, and wrong ones that are named."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from right_quantizers import KERNELS as KERNELS_OF_ANY_PARAMS

import refkernels
from refkernels import registry
from refkernels.judging.challenges import Drawer
from refkernels.testing import assert_kernel

F8 = ml_dtypes.float8_e4m3fn
RNG = np.random.default_rng(1)
X = (RNG.standard_normal(900) * 2.0 ** RNG.integers(-8, 7, 900)).astype(np.float32)
ROWS = RNG.standard_normal((16, 128)).astype(np.float32)
HALVES = {"x": (RNG.integers(-2000, 2000, 1000) / 8).astype(np.float32), "scale": np.float32(0.5)}
UNITS = HALVES["x"] / HALVES["scale"]
MX = {"block": 32, "scales": "float8_e8m0fnu", "rule": "floor"}


def mx(x: Any, scale: Any) -> dict[str, Any]:
    """MXFP8 by the usual code; `scale`: of the blocks' largest magnitudes."""
    blocks = x.reshape(16, -1, 32)
    scales = scale(np.abs(blocks).max(-1, keepdims=True))
    y = np.clip(blocks / scales, -448, 448).astype(F8).reshape(x.shape)
    return {"y": y, "scale": scales[..., 0].astype(ml_dtypes.float8_e8m0fnu)}


def int8(units: Any, least: int = -128) -> Any:
    return np.clip(units, least, 127).astype(np.int8)


DOWN = mx(ROWS, lambda largest: 2.0 ** np.floor(np.log2(largest)) / 256)
UP = mx(ROWS, lambda largest: 2.0 ** np.ceil(np.log2(largest / 448)))
CEIL = {**MX, "rule": "ceil"}
KERNELS: list[tuple[str, Mapping[str, Any], Any, dict[str, Any], str | None]] = [
    ("cast", {"x": X}, X.astype(F8), {}, None),
    ("quantize", HALVES, int8(np.rint(UNITS)), {}, None),
    ("block_quantize", {"x": ROWS}, DOWN, MX, None),
    ("block_quantize", {"x": ROWS}, UP, CEIL, None),
    ("cast", {"x": X}, X.astype(ml_dtypes.bfloat16).astype(F8), {}, "bf16_inputs"),
    ("cast", {"x": X}, X.astype(ml_dtypes.float8_e4m3fnuz), {}, "param_differs"),
    ("cast", {"x": 4 * X}, np.clip(4 * X, -240, 240).astype(F8), {}, "other_ends"),
    ("quantize", HALVES, int8(UNITS), {}, "rounded_otherwise"),
    ("quantize", HALVES, int8(np.floor(UNITS + 0.5)), {}, "rounded_otherwise"),
    ("quantize", HALVES, int8(np.rint(UNITS), -127), {}, "other_ends"),
    ("quantize", HALVES, np.rint(UNITS).astype(int).astype(np.int8), {}, "wraps_around"),
    ("quantize", HALVES, int8(np.rint(UNITS / 4)), {}, "factor_inverted"),
    ("block_quantize", {"x": ROWS}, UP, MX, "other_scale_rule"),
]


@pytest.mark.parametrize(("op", "inputs", "answer", "params", "cause"), KERNELS)
def test_numbers_of_the_format_are_judged_and_wrong_ones_named(
    op: str, inputs: Any, answer: Any, params: Any, cause: str | None
) -> None:
    with pytest.raises(AssertionError) if cause else nullcontext():
        assert_kernel(op, inputs, answer, params)
    assert refkernels.explain(op, inputs, answer, params).cause == cause


def test_an_end_that_two_formats_share_proves_neither() -> None:
    x = np.copysign(4.0 * np.abs(X) + 1.0, X)  # no number is so small that they differ
    found = refkernels.explain("cast", {"x": x}, np.clip(x, -240, 240).astype(F8))
    assert found.confidence == "consistent"


def test_where_a_quotient_may_cross_a_tie_a_kernel_may_round_either_way() -> None:
    """4.5 / 3 may be computed as 1.5 - 2^-23, by x (1 / 3); a power of two divides exactly."""
    op = registry.get("quantize")
    x = np.float32([4.5, np.nextafter(np.float32(4.5), 5), 4.75, 4.0])
    for scale, steps in ((3.0, [1, 1, 0, 0]), (1.0, [0, 0, 0, 0])):
        allowed = op.bound("forward", {"x": x, "scale": np.float32(scale)}, {}, "float32")["y"]
        np.testing.assert_allclose(allowed, steps, rtol=2.0**-40)


@pytest.mark.parametrize(("op", "kernel"), KERNELS_OF_ANY_PARAMS)
def test_right_kernels_are_right_on_all_inputs_of_the_judge(op: str, kernel: Any) -> None:
    rng, asked = np.random.default_rng(2), 0
    for challenge in Drawer(registry.get(op), "forward", "float32").round(rng, 0):
        inputs = {name: np.asarray(array) for name, array in challenge.inputs.items()}
        if sum(array.size for array in inputs.values()) < 1 << 16:
            with np.errstate(all="ignore"):
                got = kernel(**inputs, **challenge.params)
            assert challenge.standard().fault_of("y", got) is None, challenge.name
            asked += 1
    assert asked > 10


def test_the_places_of_a_table_in_any_order_are_right_and_codes_cut_down_are_named() -> None:
    positive = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4])
    table = np.append(positive, -positive).astype(np.float32)  # bitsandbytes' FP4: two zeros
    x = np.random.default_rng(8).standard_normal((9, 32)).astype(np.float32)
    scale = np.abs(x).max(-1)
    units = x / scale[:, None].astype(float)
    order = np.unique(table, return_index=True)[1]
    nearest = np.abs(units[..., None] - table).argmin(-1).astype(np.uint8)
    lesser = order[np.searchsorted(table[order], units, side="right") - 1].astype(np.uint8)
    inputs = {"x": x, "table": table}
    right, cut = (
        refkernels.explain("table_quantize", inputs, {"y": y, "scale": scale})
        for y in (nearest, lesser)
    )
    assert (right.cause, cut.cause, cut.confidence) == (None, "rounded_otherwise", "proven")
