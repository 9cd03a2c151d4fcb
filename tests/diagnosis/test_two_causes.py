"""Wrong special values and wrong numbers with a cause each are told together."""

from typing import Any

import numpy as np
import numpy.typing as npt

import refkernels
from refkernels import registry

Array = npt.NDArray[Any]
RNG = np.random.default_rng(21)


def attention(shape: tuple[int, ...] = (4, 14, 8)) -> tuple[dict[str, Array], Array]:
    """A question with rows in which no key takes part, and the right answer."""
    q, k, v = RNG.standard_normal((3, *shape)).astype(np.float32)
    keep = RNG.random((shape[0], shape[1], shape[1])) < 0.5
    keep[..., 0] = True
    keep[::2, 5], keep[1, 3] = False, False
    inputs = {"q": q, "k": k, "v": v, "keep": keep}
    return inputs, registry.get("attention").plain("forward", inputs, {}, "float32")["y"]


def without_keys(inputs: dict[str, Array], y: Array) -> Array:
    """NaN in the rows without a key."""
    return np.where(~inputs["keep"].any(axis=-1, keepdims=True), np.float32(np.nan), y)


def test_a_missing_scale_beside_nan_in_masked_rows() -> None:
    inputs, _ = attention()
    op = registry.get("attention")
    unscaled = op.plain("forward", inputs, {"scale": 1.0}, "float32")["y"]
    explanation = refkernels.explain("attention", inputs, {"y": without_keys(inputs, unscaled)})
    # As two causes, or as an edit that leaves the masked rows as they are.
    assert explanation.cause in ("scale_missing", "factor_missing")


def test_a_cause_of_the_special_values_alone_says_nothing_of_wrong_numbers() -> None:
    inputs, y = attention((2, 7, 4))
    noise = np.float32(1) + np.float32(0.01) * RNG.standard_normal(y.shape).astype(np.float32)
    explanation = refkernels.explain("attention", inputs, {"y": without_keys(inputs, y * noise)})
    assert explanation.cause is None


def test_a_slope_of_the_result_beside_a_lost_nan() -> None:
    x, dy = RNG.standard_normal((2, 400)).astype(np.float32)
    x = -np.abs(x)
    x[7] = np.nan
    alpha, scale = np.float32(1.6732632), np.float32(1.0507010)
    with np.errstate(invalid="ignore"):
        y = scale * alpha * np.expm1(x)
        dx = np.float32(dy * (y + scale * alpha))
    dx[7] = dy[7] * scale
    dx[9:40] *= np.float32(2)
    explanation = refkernels.explain("selu", {"dy": dy, "x": x}, {"dx": dx}, {}, "backward")
    assert explanation.candidates[0].details["block"] == "dx[9:40]"
    assert "only in dx[9:40], and gives a number where an input is NaN" in explanation.summary


def test_a_cause_that_leaves_little_of_the_error_is_told_with_the_number_that_is_left() -> None:
    """The second moment is not corrected, and beta2 is a float32 in one of its two places."""
    param, grad, m = RNG.standard_normal((3, 300)).astype(np.float32)
    v = np.abs(RNG.standard_normal(300)).astype(np.float32) / 100
    first, second = np.float32(0.9), np.float32(0.999)
    m1, v1 = first * m + (1 - first) * grad, second * v + (1 - second) * grad * grad
    decayed = param * np.float32(1 - 1e-3 * 0.01)
    step = np.float32(1e-3) * (m1 / np.float32(1 - 0.9**3)) / (np.sqrt(v1) + np.float32(1e-8))
    inputs = {"param": param, "grad": grad, "m": m, "v": v}
    outputs = {"param": decayed - step, "m": m1, "v": v1}
    explanation = refkernels.explain("adamw", inputs, outputs, {"step": 3})
    assert explanation.cause in ("second_moment_uncorrected", "term_missing", "factor_missing")
    low, high = explanation.candidates[0].details["with_details"]["interval"]
    assert (explanation.confidence, low <= 1 - second <= high) == ("proven", True)
