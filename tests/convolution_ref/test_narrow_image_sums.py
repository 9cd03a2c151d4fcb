"""A weight's gradient in float16, image by image, as torch adds it on a CPU."""

from typing import Any

import numpy as np
import pytest

import refkernels

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


def test_images_that_are_added_in_float16_are_named() -> None:
    inputs = question()
    outputs = {"dweight": summed(inputs, PLACES)}
    explanation = refkernels.explain("conv2d", inputs, outputs, {}, "backward")
    assert explanation.verdict == "exceeds_bound"
    assert (explanation.cause, explanation.confidence) == ("narrow_image_sums", "proven")


def test_one_float32_sum_is_not_blamed() -> None:
    inputs = question()
    outputs = {"dweight": summed(inputs, IMAGES * PLACES)}
    explanation = refkernels.explain("conv2d", inputs, outputs, {}, "backward")
    assert explanation.verdict in ("rounding", "correctly_rounded")
    assert explanation.cause in (None, "summation_order")


@pytest.mark.parametrize("block", [17, 32, 40])
def test_errors_of_the_same_size_prove_nothing(block: int) -> None:
    """Blocks of places that are no images err as much."""
    inputs = question()
    outputs = {"dweight": summed(inputs, block)}
    explanation = refkernels.explain("conv2d", inputs, outputs, {}, "backward")
    assert explanation.verdict == "exceeds_bound"
    assert explanation.confidence in (None, "consistent")
