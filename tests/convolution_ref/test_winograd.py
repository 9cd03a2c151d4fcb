"""Convolutions: Winograd's forms, dependencies, padding, and sums of narrow images."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels import convolution_ref, registry
from refkernels.arithmetic import formats
from refkernels.contexts.arb import Arb
from refkernels.contexts.objects import data
from refkernels.op import DTYPES
from refkernels.ops.formula import several
from refkernels.ops.readings import Reading

WINOGRAD = pytest.mark.parametrize(
    ("name", "size"), [("conv1d", (6,)), ("conv1d", (9,)), ("conv2d", (6, 5)), ("conv2d", (3, 9))]
)


def padded(name: str, size: tuple[int, ...], dtype: str, seed: int) -> tuple[Any, Any]:
    rank = len(size)
    rng = np.random.default_rng(seed)
    shapes = {"dy": (2, 4, *size), "x": (2, 6, *size), "weight": (4, 3, *(3,) * rank), "bias": (4,)}
    kinds = 1.0, 10.0 ** rng.uniform(-3, 3)
    arrays = {
        key: formats.round_to(rng.choice(kinds) * rng.standard_normal(shape), dtype)
        for key, shape in shapes.items()
    }
    return arrays, {"padding": 1, "groups": 2}


@WINOGRAD
def test_winograd_is_the_same_function(name: str, size: tuple[int, ...]) -> None:
    definition = registry.get(name).definition
    assert definition is not None
    compared = 0
    for direction in ("forward", "backward"):
        arrays, params = padded(name, size, "float32", 5)
        takes = registry.get(name).takes(direction)
        question = definition.question(direction, {n: arrays[n] for n in takes}, params)
        way = definition.of(direction)
        with Arb(200) as xp:
            arguments = Reading(xp, lambda value: ()).arguments(question.arrays, question.params)
            truth = several(way.truth(xp, **arguments))
            for form in ("winograd_2", "winograd_4"):
                for wanted, got in zip(
                    truth, several(way.forms[form](xp, **arguments)), strict=True
                ):
                    pairs = zip(data(wanted).reshape(-1), data(got).reshape(-1), strict=True)
                    for a, b in pairs:
                        assert a.overlaps(b)
                        assert a.is_finite()
                        compared += 1
    assert compared > 100


@WINOGRAD
def test_winograd_keeps_to_its_own_bound(name: str, size: tuple[int, ...]) -> None:
    """And not to that of the sums: it is there for what it loses."""
    op = registry.get(name)
    assert op.definition is not None
    compared = apart = 0
    for seed, dtype in enumerate(DTYPES):
        for direction in ("forward", "backward"):
            arrays, params = padded(name, size, dtype, seed)
            inputs = {n: arrays[n] for n in op.takes(direction)}
            exact_ = op.evaluate(direction, inputs, params, ("ulp", "float64", 2.0**-10))
            bounds = op.forms(direction, inputs, params, formats.get(dtype))
            for form, order in itertools.product(
                ("winograd_2", "winograd_4"), ("random", "pairwise")
            ):
                formula = op.definition.of(direction).forms[form]
                how = {"order": order, "fma": order == "random"}
                got = op.definition.computed(direction, formula, inputs, params, dtype, **how)
                for output, values in got.items():
                    off = np.abs(values.astype(np.float64) - np.asarray(exact_[output]))
                    assert np.all(off <= bounds[form][output] * (1.0 + 2.0**-20))
                    apart += int(np.count_nonzero(off > bounds["direct"][output]))
                    compared += values.size
    assert compared > 1000
    assert apart > 0


def test_the_cone_of_an_element_is_what_lies_under_the_taps() -> None:
    op = convolution_ref.CONV2D
    assert op.definition is not None
    arrays, params = padded("conv2d", (5, 4), "float32", 1)
    inputs = {n: arrays[n] for n in op.inputs}
    dependencies = op.definition.dependencies("forward", "y", (1, 3, 0, 2), inputs, params)
    at = np.arange(arrays["x"].size).reshape(arrays["x"].shape)
    np.testing.assert_array_equal(dependencies["x"], np.sort(at[1, 3:, :2, 1:4].reshape(-1)))
    np.testing.assert_array_equal(dependencies["weight"], 3 * 27 + np.arange(27))
    np.testing.assert_array_equal(dependencies["bias"], [3])


def test_a_missing_tap_is_no_term_of_dx_and_padding_is_zeros() -> None:
    """0 times infinity is NaN where zeros are multiplied."""
    x = np.ones((1, 1, 4), np.float32)
    weight = np.array([[[1.0, 2.0, np.inf]]], np.float32)
    y = np.asarray(convolution_ref.conv1d(x, weight, padding=1))
    assert np.isposinf(y[0, 0, :3]).all()
    assert np.isnan(y[0, 0, 3])
    dx = np.asarray(convolution_ref.conv1d_backward(np.ones_like(x), x, weight, padding=1).dx)
    assert np.isposinf(dx[0, 0, 1:]).all()
    assert dx[0, 0, 0] == 3.0


IMAGES, CHANNELS, OUT, SIDE, TAPS = 6, 3, 5, 9, 3
PLACES = (SIDE - TAPS + 1) ** 2


def question() -> dict[str, Any]:
    rng = np.random.default_rng(21)
    across = SIDE - TAPS + 1
    shapes = {
        "x": (IMAGES, CHANNELS, SIDE, SIDE),
        "weight": (OUT, CHANNELS, TAPS, TAPS),
        "dy": (IMAGES, OUT, across, across),
    }
    return {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}


def summed(inputs: dict[str, Any], block: int) -> Any:
    """dweight with the sum after each block of places stored in float16."""
    x, dy = (inputs[name].astype(np.float32) for name in ("x", "dy"))
    under = np.lib.stride_tricks.sliding_window_view(x, (TAPS, TAPS), axis=(2, 3))
    columns = under.transpose(0, 2, 3, 1, 4, 5).reshape(IMAGES * PLACES, -1)
    above = dy.transpose(0, 2, 3, 1).reshape(IMAGES * PLACES, OUT)
    total = np.zeros((OUT, columns.shape[1]), np.float16)
    for k in range(0, len(above), block):
        share = above[k : k + block].T @ columns[k : k + block]
        total = (total.astype(np.float32) + share).astype(np.float16)
    return total.reshape(inputs["weight"].shape)


@pytest.mark.parametrize("block", [PLACES, IMAGES * PLACES, 17, 32, 40])
def test_images_that_are_added_in_float16_are_named_and_nothing_else_is(block: int) -> None:
    """One float32 sum is right; blocks of places that are no images err as much as images."""
    inputs = question()
    outputs = {"dweight": summed(inputs, block)}
    found = refkernels.explain("conv2d", inputs, outputs, {}, "backward")
    if block == IMAGES * PLACES:
        assert found.verdict in ("rounding", "correctly_rounded")
        assert found.cause in (None, "summation_order")
        return
    assert found.verdict == "exceeds_bound"
    if block == PLACES:
        assert (found.cause, found.confidence) == ("narrow_image_sums", "proven")
    else:
        assert found.confidence in (None, "consistent")
