"""Corruption is proven where neither rounding nor the inputs account for a wrong element."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import refkernels
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.explanation import Explanation

Array = npt.NDArray[Any]
ROWS, COLUMNS = 40, 60
PLACES = {"exponent": (17, 20), "sign": (17, 28), "stale": (17, 28), "nan": (17, 28)}
CAUSE = "corrupted_elements"


def linear(dtype: str) -> tuple[dict[str, Array], Array]:
    rng = np.random.default_rng(3)
    shapes = {"x": (ROWS, 48), "weight": (COLUMNS, 48), "bias": (COLUMNS,)}
    inputs = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    return inputs, inputs["x"] @ inputs["weight"].T + inputs["bias"]


def confidence(explanation: Explanation) -> str | None:
    return next((c.confidence for c in explanation.candidates if c.cause == CAUSE), None)


def flipped(y: Array, place: tuple[int, int], bit: int) -> None:
    unsigned = y.view({4: np.uint32, 8: np.uint64}[y.dtype.itemsize])
    unsigned[place] ^= unsigned.dtype.type(1 << bit)


@pytest.mark.parametrize(
    ("dtype", "accident", "expected"),
    [
        *(("float64", name, "proven") for name in ("sign", "exponent", "stale", "nan")),
        *(("float32", name, "proven") for name in ("exponent", "nan")),
        *(("float32", name, "matched") for name in ("sign", "stale")),
    ],
)
def test_one_bit_a_stale_element_and_a_nan_are_sure(
    dtype: str, accident: str, expected: str
) -> None:
    """A float32 that is wrong by its own size says less: its bound is 2^-17 of it."""
    inputs, y = linear(dtype)
    top, place = 8 * y.dtype.itemsize - 1, PLACES[accident]
    if accident == "nan":
        y[place] = np.nan
    elif accident == "stale":
        y[place] = y[3, 5]
    else:
        flipped(y, place, top if accident == "sign" else top - 1)
    explanation = refkernels.explain("linear", inputs, {"y": y})
    assert (explanation.cause, explanation.confidence) == (CAUSE, expected)


@pytest.mark.parametrize("wrong", [1, 5, 20])
@pytest.mark.parametrize("bounds", [1.1, 3.0, 30.0])
def test_a_small_multiple_of_the_bound_is_no_proof(bounds: float, wrong: int) -> None:
    """However small the errors of the others are, another branch may be that much less accurate."""
    inputs, _ = linear("float64")
    problem, _ = one_kernel("linear", inputs, np.zeros((ROWS, COLUMNS)))
    exact, bound = np.asarray(problem.truth.reference["y"]), problem.truth.bound["y"]
    y = exact.copy()
    places = np.random.default_rng(1).choice(y.size, wrong, replace=False)
    y.reshape(-1)[places] += bounds * bound.reshape(-1)[places]
    explanation = refkernels.explain("linear", inputs, {"y": y})
    assert explanation.verdict == "exceeds_bound"
    assert confidence(explanation) in ("consistent", None)


def test_a_wrong_slope_at_a_corner_is_no_accident() -> None:
    """Every element is computed alike: the corner of hard-swish has few digits."""
    x = np.random.default_rng(2).uniform(-6, 6, 1000)
    x[400] = 3.0
    dy = np.random.default_rng(3).standard_normal(1000)
    dx = dy * np.where(x < -3, 0.0, np.where(x > 3, 1.0, (2 * x + 3) / 6))
    dx[400] = 0.25 * dy[400]
    explanation = refkernels.explain("hardswish", {"x": x, "dy": dy}, {"dx": dx}, {}, "backward")
    assert explanation.verdict == "exceeds_bound"
    assert confidence(explanation) in ("consistent", None)


def test_the_largest_argument_is_set_apart() -> None:
    x = np.random.default_rng(4).uniform(-5, 5, 1000)
    for size, expected in ((7.123456789012345, "consistent"), (3.123456789012345, "proven")):
        x[400] = size
        y = np.sinh(x)
        y[400] = np.inf
        assert confidence(refkernels.explain("sinh", {"x": x}, {"y": y})) == expected


def test_a_whole_row_of_a_softmax_shares_its_cause() -> None:
    """Its sum may have overflowed; one element of it may not."""
    x = np.random.default_rng(5).standard_normal((300, 8))
    y = np.exp(x - x.max(1, keepdims=True))
    y /= y.sum(1, keepdims=True)
    one, row = y.copy(), y.copy()
    one[100, 3], row[100] = np.nan, np.nan
    assert confidence(refkernels.explain("softmax", {"x": x}, {"y": one})) == "proven"
    row[100, 0] = 0.5  # not one value, which would be a block that was never written
    assert confidence(refkernels.explain("softmax", {"x": x}, {"y": row})) == "consistent"


def test_neighbours_in_size_or_place_are_no_scattered_elements() -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(-5, 5, (50, 40))
    wrong = np.zeros(x.shape, bool)
    wrong.reshape(-1)[np.argsort(x.reshape(-1))[900:910]] = True
    gathered, column = np.arctan(x), np.arctan(x)
    gathered[wrong] += 0.25
    column[::4, 39] += 0.25
    for y in (gathered, column):
        assert confidence(refkernels.explain("atan", {"x": x}, {"y": y})) == "consistent"
    scattered = np.arctan(x)
    scattered.reshape(-1)[rng.choice(x.size, 10, replace=False)] += 0.25
    assert confidence(refkernels.explain("atan", {"x": x}, {"y": scattered})) == "proven"


def test_numbers_in_place_of_nan_at_infinite_inputs_are_not_called_corrupted() -> None:
    x = np.random.default_rng(7).standard_normal(500).astype(np.float32)
    x[7] = np.nan
    y = np.arctan(x)
    y[7] = 1.0
    assert confidence(refkernels.explain("atan", {"x": x}, {"y": y})) is None


def test_a_tail_of_smallest_values_that_are_zero_is_no_unwritten_block() -> None:
    """In order of size, an intermediate that underflows leaves one value too."""
    x = np.linspace(0.0, 12.0, 600)
    scale = np.exp(-x * x)
    y = np.where(x > 10.0, 0.0, scale)
    explanation = refkernels.explain("exp", {"x": -x * x}, {"y": y})
    assert explanation.verdict == "exceeds_bound"
    sure = {c.cause for c in explanation.candidates if c.confidence in ("proven", "matched")}
    assert "unwritten_elements" not in sure


def test_zeros_in_place_of_the_largest_values_are_unwritten() -> None:
    """Nothing underflows there."""
    x = np.abs(np.random.default_rng(2).standard_normal(1000)).astype(np.float32)
    y = x.astype(np.float64).cumsum().astype(np.float32)
    y[-5:] = 0.0
    assert refkernels.explain("cumsum", {"x": x}, {"y": y}).cause == "unwritten_elements"


def test_a_form_whose_model_gives_infinity_does_not_explain_a_wrong_number_there() -> None:
    """log(softmax) may be log 0, whose bound is infinite: any number would be inside."""
    rng = np.random.default_rng(8)
    x = (40.0 * rng.standard_normal((32, 50))).astype(np.float32)
    target = rng.integers(0, 50, 32)
    shifted = x.astype(np.float64) - x.max(1, keepdims=True)
    loss = np.log(np.exp(shifted).sum(1)) - shifted[np.arange(32), target]
    loss = loss.astype(np.float32)
    loss[int(np.argmax(loss > 104.0))] += 3 * loss.max()
    inputs = {"x": x, "target": target}
    explanation = refkernels.explain("cross_entropy", inputs, {"loss": loss}, {"reduction": "none"})
    assert explanation.verdict == "exceeds_bound"
    fitting = {c.cause for c in explanation.candidates if not c.ruled_out}
    assert "log_of_softmax" not in fitting
