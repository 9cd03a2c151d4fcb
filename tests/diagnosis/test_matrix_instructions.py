"""Products that matrix instructions add are named to the bit, whatever the op around them."""

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from planting import named

from refkernels import explain

F16, BF16, F32 = np.float16, ml_dtypes.bfloat16, np.float32
E4M3, F8 = ml_dtypes.float8_e4m3fn, (32, 13, 14)


def cut(x: Any, digits: Any) -> Any:
    """x towards zero in units of 2^-digits."""
    return np.ldexp(np.trunc(np.ldexp(x, digits)), -digits)


def added(a: Any, b: Any, k: int, fraction: int, p: int = 24, total: Any = 0.0) -> Any:
    """a b by instructions of k products; independent of the package."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    total = np.zeros((len(a), b.shape[1])) + total
    for s in range(0, a.shape[1], k):
        left, right = a[:, s : s + k, None], b[None, s : s + k]
        sizes = np.frexp(left)[1] + np.frexp(right)[1] - 2 - 4000 * (left * right == 0)
        start = np.frexp(total)[1] - 1 - 4000 * (total == 0)
        unit = np.maximum(start, sizes.max(1))
        total = cut(total, fraction - unit) + cut(left * right, (fraction - unit)[:, None]).sum(1)
        total = cut(total, p - np.frexp(total)[1])
    return total.astype(F32)


def tf32(x: Any) -> Any:
    return (np.ascontiguousarray(x).view("u4") & np.uint32(0xFFFFE000)).view(F32)


def rounded(x: Any, to: Any = BF16) -> Any:
    return x.astype(to).astype(F32)


def pairs(a: Any, b: Any, taken: Any) -> Any:  # of parts that are multiplied, the largest last
    big = taken(a), taken(b)
    small = taken(a - big[0]), taken(b - big[1])
    return (small[0], big[1]), (big[0], small[1]), big


def bf16x3(a: Any, b: Any) -> Any:  # in blocks of 32, each from zero
    total = np.zeros((len(a), b.shape[1]), F32)
    for s in range(0, a.shape[1], 32):
        block = np.float64(0.0)
        for left, right in pairs(a, b, rounded):
            block = added(left[:, s : s + 32], right[s : s + 32], 16, 25, total=block)
        total = total + block
    return total


def in_ranges(a: Any, b: Any, stops: list[int], stored: Any = rounded, core: Any = (16, 25)) -> Any:
    """Added in float32, or as `stored` where that rounds each sum."""
    total = F32(0)
    for part in np.split(np.arange(a.shape[1]), stops):
        total = stored(total + stored(added(a[:, part], b[part], *core)))
    return total


@pytest.mark.parametrize(
    ("dtype", "multiply", "cause", "model"),
    [
        (F32, lambda a, b: added(tf32(a), tf32(b), 8, 25), "truncated_inputs", "Hopper"),
        (F32, lambda a, b: added(tf32(a), tf32(b), 4, 24), "truncated_inputs", "Ampere"),
        (F32, bf16x3, "bf16_parts", "bf16x3"),
        (F32, lambda a, b: sum(i @ j for i, j in pairs(a, b, rounded)), "bf16_parts", "None"),
        (BF16, partial(in_ranges, stops=[128]), "partial_sums_rounded", "K in ranges of 128"),
        (BF16, partial(in_ranges, stops=[96, 192]), "partial_sums_rounded", "and added in it"),
        (E4M3, lambda a, b: added(a, b, *F8), "float8_accumulation", "14-bit"),
        (E4M3, lambda a, b: in_ranges(a, b, [128], F32, F8), "float8_accumulation", "every 128"),
        (E4M3, lambda a, b: rounded(added(a, b, *F8)), "float8_accumulation", "14-bit"),
        (F16, lambda a, b: added(a, b, 16, 25), "bias_after_rounding", "sums in float16"),
    ],
)
def test_a_product_is_proven(dtype: Any, multiply: Any, cause: str, model: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((24, 256), (256, 20)))
    op, inputs, y = "matmul", {"a": a, "b": b}, multiply(a, b)
    if dtype is E4M3:
        op, inputs = "scaled_matmul", {**inputs, "scale_a": F32(0.5), "scale_b": F32(0.25)}
        y = y * F32(0.125)
    if dtype is F16:  # one product, rounded before the bias is added
        op, inputs = "linear", {"x": a, "weight": b.T, "bias": b[0]}
        y = (y.astype(F16).astype(F32) + b[0]).astype(F16)
    y = y.astype(BF16) if dtype is not F32 and (y == rounded(y)).all() else y
    found = explain(op, inputs, y)
    assert (found.cause, found.confidence) == (cause, "proven")
    assert model in str(found.candidates[0].model)


def test_truncated_sums_of_one_sign_are_no_factor() -> None:
    a, b = np.abs(np.random.default_rng(11).standard_normal((2, 9, 1024))).astype(F32)
    y = sum(added(*pair, 8, 25) for pair in pairs(a, b.T, tf32))
    assert explain("matmul", {"a": a, "b": b.T}, y).cause is None


def test_a_convolution_by_tf32_is_named_by_its_errors() -> None:
    rng, shapes = np.random.default_rng(2), ((2, 8, 9, 9), (6, 8, 3, 3), (6,))
    x, w, bias = (rng.standard_normal(shape).astype(F32) for shape in shapes)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    columns = windows.transpose(0, 2, 3, 4, 5, 1).reshape(98, 72)
    for taken, cause in ((tf32, "truncated_inputs"), (partial(rounded, to=F16), "tf32_inputs")):
        y = added(taken(columns), taken(w.transpose(0, 2, 3, 1).reshape(6, 72).T), 8, 25) + bias
        y = y.reshape(2, 7, 7, 6).transpose(0, 3, 1, 2)
        assert named("conv2d", {"x": x, "weight": w, "bias": bias}, y)[:2] == (cause, "proven")


def test_attention_by_blocks_of_keys_is_named_by_its_products() -> None:
    """Its exponentials are those of running maxima: others are rounded than the formula's."""
    for dtype, kept, cause in (
        (F32, tf32, "truncated_inputs"),
        (F16, lambda e: e.astype(ml_dtypes.float8_e5m2).astype(F32), "computed_factors_rounded"),
    ):
        rng, total, before = np.random.default_rng(3), F32(0.0), F32(0.0)
        q, k, v = (rng.standard_normal((n, 16)).astype(dtype).astype(F32) for n in (40, 96, 96))
        scores = added(tf32(q), tf32(k.T), 8, 25) * F32(0.25)
        for s in range(0, 96, 32):
            maxima = scores[:, : s + 32].max(-1, keepdims=True)
            e = np.exp(scores[:, s : s + 32] - maxima)
            more = added(kept(e), tf32(v[s : s + 32]), 8, 25)
            terms = np.hstack([more, e.sum(-1, keepdims=True)])
            total, before = total * np.exp(before - maxima) + terms, maxima
        inputs = {n: a[None, None].astype(dtype) for n, a in {"q": q, "k": k, "v": v}.items()}
        y = (total[:, :-1] / total[:, -1:])[None, None].astype(dtype)
        assert named("attention", inputs, y)[:2] == (cause, "proven")


def grouped(format: Any, length: int, scales: Any) -> dict[str, Any]:
    """a (24, 256) and b (256, 20) in the format, with a scale for every `length` terms."""
    rng, inputs = np.random.default_rng(8), {}
    for name, axis, shape in (("a", 1, (24, 256)), ("b", 0, (256, 20))):
        values = rng.standard_normal(shape)
        parts = np.stack(np.split(values, 256 // length, axis), axis)
        largest = np.abs(parts).max(axis + 1) / float(ml_dtypes.finfo(format).max)
        inputs[f"scale_{name}"] = scale = scales(largest).astype(F32)
        inputs[name] = (values / np.repeat(scale, length, axis)).astype(format)
    return inputs


def in_groups(inputs: dict[str, Any], product: Any) -> Any:
    total, length = F32(0.0), 256 // inputs["scale_b"].shape[0]
    for g, (left, right) in enumerate(zip(inputs["scale_a"].T, inputs["scale_b"], strict=True)):
        at = slice(g * length, (g + 1) * length)
        part = product(inputs["a"][:, at].astype(F32), inputs["b"][at].astype(F32))
        total = total + part * left[:, None] * right
    return total


@pytest.mark.parametrize("scales", [np.asarray, lambda s: np.exp2(np.ceil(np.log2(s)))])
def test_an_accumulator_of_float8_is_named_whatever_its_groups_scales(scales: Any) -> None:
    inputs = grouped(E4M3, 128, scales)
    got = in_groups(inputs, lambda a, b: added(a, b, *F8))
    assert named("scaled_matmul", inputs, got)[:2] == ("float8_accumulation", "proven")
    assert explain("scaled_matmul", inputs, in_groups(inputs, np.matmul)).verdict == "rounding"


def test_the_halves_of_bytes_exchanged_are_named_and_shown() -> None:
    inputs = grouped(ml_dtypes.float4_e2m1fn, 16, lambda s: s.astype(E4M3))
    inputs = {name: array[:, :8] if name.endswith("b") else array for name, array in inputs.items()}
    exchanged = {**inputs, "a": inputs["a"][:, np.arange(256) ^ 1]}
    found = explain("scaled_matmul", inputs, in_groups(exchanged, np.matmul))
    assert (found.cause, found.confidence) == ("index_differs", "proven")
    assert "a at other indices than it should along axis 1 (i ^ 1)" in found.to_markdown()
