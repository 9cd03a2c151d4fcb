"""Products with scales: special values, what operands may be, mixed formats, groups."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import refkernels
from refkernels import matmul_ref, registry
from refkernels.arithmetic import formats
from refkernels.diagnosis import casefile
from refkernels.scaled_matmul_ref import scaled_matmul
from refkernels.testing import assert_kernel

LOW = ("float8_e4m3fn", "float8_e5m2", "int8", "float16", "bfloat16", "float32")


def operand(rng: np.random.Generator, shape: Any, name: str) -> Any:
    drawn = np.clip(40 * rng.standard_normal(shape), -127, 127)
    return drawn.astype(np.dtype(getattr(ml_dtypes, name, name)))


def exact(array: Any) -> Any:
    return np.frompyfunc(lambda value: Fraction(float(value)), 1, 1)(array)


def test_float8_nan_is_nan_and_infinity_times_zero_too() -> None:
    a = np.array([[np.nan, 1.0], [448.0, 1.0]], ml_dtypes.float8_e4m3fn)
    b = np.array([[np.inf, 1.0], [1.0, 0.0]], ml_dtypes.float8_e5m2)
    c = np.asarray(scaled_matmul(a, b, np.float32(0.5), np.float32(2.0)))
    assert np.isnan(c[0]).all()
    assert np.isposinf(c[1, 0])
    assert c[1, 1] == 448.0


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_every_number_of_float8_is_read_exactly(name: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name))
    a, one = every[:, None], np.ones((1, 1), np.int8)
    got = np.asarray(scaled_matmul(a, one, np.float32(1), np.float32(1)))[:, 0]
    np.testing.assert_array_equal(got, every.astype(np.float64))


@pytest.mark.parametrize("output", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("operands", ["float8_e4m3fn", "int8"])
def test_a_kernel_of_low_operands_is_asserted_in_its_own_format(output: str, operands: str) -> None:
    rng = np.random.default_rng(3)
    inputs = {
        "a": operand(rng, (6, 33), operands), "b": operand(rng, (33, 4), operands),
        "scale_a": np.float32(0.3), "scale_b": rng.uniform(0.01, 0.1, 4).astype(np.float32),
    }  # fmt: skip
    wide = {name: array.astype(np.float32) for name, array in inputs.items()}
    c = formats.cast((wide["a"] @ wide["b"]) * wide["scale_a"] * wide["scale_b"], output)
    assert_kernel("scaled_matmul", inputs, c)
    wrong = formats.cast((wide["a"] @ wide["b"]) * wide["scale_b"], output)
    with pytest.raises(AssertionError, match="scale"):
        assert_kernel("scaled_matmul", inputs, wrong)
    explanation = refkernels.explain("scaled_matmul", inputs, {"c": wrong})
    assert (explanation.cause, explanation.confidence) == ("scale_a_missing", "proven")


def test_a_missing_scale_of_an_eighth_is_a_factor_of_8_which_has_other_reasons_too() -> None:
    rng = np.random.default_rng(3)
    a, b = operand(rng, (6, 33), "int8"), operand(rng, (33, 4), "int8")
    inputs = {"a": a, "b": b, "scale_a": np.float32(0.125), "scale_b": np.float32(0.3)}
    wrong = (a.astype(np.float32) @ b.astype(np.float32)) * np.float32(0.3)
    explanation = refkernels.explain("scaled_matmul", inputs, {"c": wrong})
    assert (explanation.cause, explanation.confidence) == ("scale_factor", "proven")
    assert "scale_a_missing" in explanation.candidates[0].evidence.survivors


@pytest.mark.parametrize("op", ["matmul", "linear"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_16_bits_in_float32_are_judged_in_float32(op: str, dtype: str) -> None:
    """A product that was rounded to 16 bits on the way is named."""
    rng = np.random.default_rng(5)
    a, b = (formats.round_to(rng.standard_normal(shape), dtype) for shape in ((5, 40), (3, 40)))
    wide = a.astype(np.float32) @ b.astype(np.float32).T
    names = ("x", "weight") if op == "linear" else ("a", "b")
    inputs = dict(zip(names, (a, b if op == "linear" else b.T), strict=True))
    assert_kernel(op, inputs, wide)
    narrow = formats.cast(wide, dtype).astype(np.float32)
    with pytest.raises(AssertionError):
        assert_kernel(op, inputs, narrow)
    output = registry.get(op).outputs[0]
    assert refkernels.explain(op, inputs, {output: narrow}).cause == "wrong_dtype"
    bound = matmul_ref.forward_bound(a, b.T, format="float32")
    assert np.all(bound < matmul_ref.forward_bound(a, b.T, format=dtype))


def test_operands_of_8_bits_are_saved_and_read(tmp_path: Any) -> None:
    rng = np.random.default_rng(6)
    for of_a, of_b in itertools.pairwise(LOW[:3] * 2):
        inputs = {
            "a": operand(rng, (3, 7), of_a), "b": operand(rng, (7, 2), of_b),
            "scale_a": np.asarray(0.5, np.float32), "scale_b": np.asarray(0.25, np.float32),
        }  # fmt: skip
        c = np.asarray(scaled_matmul(**inputs)).astype(np.float32)
        case = casefile.CaseFile("scaled_matmul", "forward", inputs, {"mine": {"c": c}}, {})
        loaded = casefile.load(casefile.save(tmp_path / f"{of_a}.npz", case))
        for name, array in inputs.items():
            assert loaded.inputs[name].dtype == array.dtype
            assert loaded.inputs[name].tobytes() == array.tobytes()


NARROW = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn", "float4_e2m1fn", "int4")


@pytest.mark.parametrize("name", NARROW)
def test_each_group_of_terms_has_its_own_scales(name: str) -> None:
    """The value by fractions; right kernels of two kinds keep to the bound in every format."""
    rng, compared = np.random.default_rng(len(name)), 0
    a, b = ((x / 20).astype(np.dtype(getattr(ml_dtypes, name))) for x in (
        np.clip(40 * rng.standard_normal(shape), -127, 127) for shape in ((2, 3, 12), (12, 5))
    ))  # fmt: skip
    rows, columns = (rng.uniform(0.01, 1, s).astype(np.float32) for s in ((2, 3, 4), (4, 5)))
    left, right = exact(a) * exact(np.repeat(rows, 3, -1)), exact(b)
    for scale_b in (columns, columns[0], columns[0, 0]):
        wide = np.broadcast_to(scale_b, columns.shape)
        value = left @ (right * exact(np.repeat(wide, 3, 0)))
        arrays = {"a": a, "b": b, "scale_a": rows, "scale_b": scale_b}
        answer = scaled_matmul(**arrays, certify=("rounding", "float32"))
        for place in np.ndindex(answer.shape):
            hi, lo, radius = (
                Fraction(float(x[place])) for x in (answer.hi, answer.lo, answer.radius)
            )
            assert abs(value[place] - hi - lo) <= radius <= Fraction(2) ** -30
            compared += 1
        for dtype in ("float32", "bfloat16"):
            of = {
                **arrays,
                **{n: formats.round_to(arrays[n], dtype) for n in ("scale_a", "scale_b")},
            }
            truth = scaled_matmul(**of)
            bound = registry.get("scaled_matmul").bound("forward", of, {}, formats.get(dtype))["c"]
            scales = [np.asarray(of["scale_a"], np.float32)]
            scales += [np.broadcast_to(np.asarray(of["scale_b"], np.float32), columns.shape)]
            groups = np.stack(
                [
                    a.astype(np.float32)[..., 3 * g : 3 * g + 3]
                    @ b.astype(np.float32)[3 * g : 3 * g + 3]
                    for g in range(4)
                ]
            )
            by_group = sum(scales[0][..., g, None] * groups[g] * scales[1][g] for g in range(4))
            weights = b.astype(np.float32) * np.repeat(scales[1], 3, 0)
            kept = formats.round_to(weights, dtype).astype(np.float32)
            dequantized = (a.astype(np.float32) * np.repeat(scales[0], 3, -1)) @ kept
            for c in (by_group, dequantized):
                got = np.asarray(formats.round_to(c, dtype), float)
                assert np.all(np.abs(got - np.asarray(truth)) <= bound)
                compared += got.size
    assert compared == 3 * 5 * 30


def test_the_first_groups_scale_for_all_is_named() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 8, shape).astype(ml_dtypes.int4) for shape in ((8, 64), (64, 16)))
    scale_a, scale_b = (rng.uniform(0.01, 1, s).astype(np.float32) for s in ((), (4, 16)))
    wrong = (a.astype(np.float32) @ b.astype(np.float32)) * scale_a * scale_b[0]
    inputs = {"a": a, "b": b, "scale_a": np.asarray(scale_a), "scale_b": scale_b}
    found = refkernels.explain("scaled_matmul", inputs, wrong.astype(np.float32))
    assert (found.cause, found.confidence) == ("first_group_scale", "proven")


def test_zero_points_of_groups_are_subtracted_by_either_way_and_their_mistakes_have_names() -> None:
    rng = np.random.default_rng(5)
    a, f = rng.standard_normal((5, 64)).astype(np.float32), np.float32
    b, zeros = rng.integers(0, 16, (64, 7)), rng.integers(1, 15, (4, 7))
    inputs = {
        "a": a, "b": b.astype(ml_dtypes.uint4), "scale_a": f(1), "zero_b": zeros,
        "scale_b": rng.uniform(0.01, 0.1, (4, 7)).astype(f),
    }  # fmt: skip
    by_group = b.reshape(4, 16, 7)

    def kernel(points: Any) -> Any:
        low = (by_group - points[:, None]).astype(f) * inputs["scale_b"][:, None]
        return a @ low.reshape(64, 7)

    assert_kernel("scaled_matmul", inputs, kernel(zeros))
    sums = np.stack([a[:, 16 * g : 16 * g + 16] for g in range(4)])
    after = sums @ by_group.astype(f) - sums.sum(2, keepdims=True) * zeros[:, None].astype(f)
    assert_kernel("scaled_matmul", inputs, (after * inputs["scale_b"][:, None]).sum(0).astype(f))
    for points, cause in (
        (0 * zeros, "zero_point_ignored"), (-zeros, "zero_point_negated"),
        (zeros + 1, "zero_point_off_by_one"), (zeros - 1, "zero_point_off_by_one"),
    ):  # fmt: skip
        explanation = refkernels.explain("scaled_matmul", inputs, {"c": kernel(points)})
        assert (explanation.cause, explanation.confidence) == (cause, "proven")
    with pytest.raises(ValueError, match=r"zero_b has shape \(4,\)"):
        scaled_matmul(a, inputs["b"], f(1), inputs["scale_b"], zero_b=zeros[:, 0])
