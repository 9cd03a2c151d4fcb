"""A function that returns x, or a constant, beyond a threshold that is too near."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from refkernels import explain
from refkernels.diagnosis.thresholds import CAUSE

Array = npt.NDArray[Any]
RNG = np.random.default_rng(31)
X = np.concatenate([RNG.uniform(-25.0, 45.0, 260), RNG.uniform(19.0, 21.0, 40)])
DY = RNG.standard_normal(300)


def softplus(x: Array, threshold: float) -> Array:
    """PyTorch's; with x = 20 as its threshold."""
    right = np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
    return np.where(x > threshold, x, right)


def named(*question: Any, **more: Any) -> tuple[Any, Any, Any]:
    explanation = explain(*question, **more)
    details = explanation.candidates[0].details if explanation.candidates else {}
    return explanation.cause, explanation.confidence, details


def test_a_softplus_that_is_x_from_20_on_is_proven_with_its_threshold() -> None:
    cause, confidence, details = named("softplus", {"x": X}, {"y": softplus(X, 20.0)})
    assert (cause, confidence) == (CAUSE, "proven")
    assert (details["returns"], details["where"], details["threshold"]) == ("x", "x > 20", 20.0)
    assert details["interval"][0] <= 20.0 < details["interval"][1]


def test_a_few_errors_of_the_library_do_not_hide_it() -> None:
    """PyTorch's float64 softplus errs beyond its limit in a few elements before the threshold."""
    y = softplus(X, 20.0)
    assert np.count_nonzero((X > 20.0) & (y != softplus(X, 37.0))) >= 50
    x, y = np.tile(X, 2), np.tile(y, 2)
    place = np.flatnonzero((x > 0.0) & (x < 19.0))[0]
    y[place] *= 1.0 + 2.0**-48
    assert named("softplus", {"x": x}, {"y": y})[:2] == (CAUSE, "proven")


def test_its_gradient_is_the_cotangent_there() -> None:
    dx = np.where(X > 20.0, DY, DY / (1.0 + np.exp(-X)))
    asked = "softplus", {"x": X, "dy": DY}, {"dx": dx}
    cause, confidence, details = named(*asked, direction="backward")
    assert (cause, confidence, details["returns"]) == (CAUSE, "proven", "dy")


def test_a_threshold_where_the_result_rounds_to_x_is_right() -> None:
    assert explain("softplus", {"x": X}, {"y": softplus(X, 37.0)}).verdict == "rounding"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constants_on_both_sides_are_named(dtype: Any) -> None:
    x = RNG.uniform(-9.0, 9.0, 400).astype(dtype)
    y = np.where(np.abs(x) > 5, np.sign(x), np.tanh(x.astype(np.float64))).astype(dtype)
    cause, confidence, details = named("tanh", {"x": x}, {"y": y})
    assert (cause, confidence) == (CAUSE, "proven")
    assert (details["returns"], details["where"]) == ("-1 / 1", "|x| > 5")


def test_a_threshold_between_sparse_arguments_has_no_digits_of_its_own() -> None:
    x = np.concatenate([RNG.uniform(-5.0, 5.0, 60), RNG.uniform(24.0, 30.0, 60)])
    candidates = explain("softplus", {"x": x}, {"y": softplus(x, 20.0)}).candidates
    (found,) = (c for c in candidates if c.cause == CAUSE)  # beside PyTorch's, u above 20
    assert "threshold" not in found.details
    assert "<= t <" in found.details["where"]


def test_a_threshold_stands_before_a_way_to_write_the_function_that_has_it() -> None:
    x = RNG.uniform(10.0, 40.0, 300)  # where log(1 + e^x) loses no digit
    assert named("softplus", {"x": x}, {"y": softplus(x, 20.0)})[:2] == (CAUSE, "proven")


@pytest.mark.parametrize(("before", "beyond"), [(300, 2), (2, 300), (8, 8)])
def test_few_elements_on_one_side_prove_nothing(before: int, beyond: int) -> None:
    x = np.concatenate([RNG.uniform(-5.0, 19.0, before), RNG.uniform(21.0, 30.0, beyond)])
    candidates = explain("softplus", {"x": x}, {"y": softplus(x, 20.0)}).candidates
    assert {c.confidence for c in candidates if c.cause == CAUSE} <= {None, "consistent"}


def test_unwritten_memory_in_sorted_arguments_is_as_likely() -> None:
    x = np.sort(RNG.uniform(-5.0, 5.0, 200))
    y = np.exp(x)
    y[150:] = 0.0
    explanation = explain("exp", {"x": x}, {"y": y})
    causes = {c.cause for c in explanation.candidates if c.confidence == "consistent"}
    assert {CAUSE, "unwritten_elements"} <= causes
    mixed = RNG.permutation(200)
    assert named("exp", {"x": x[mixed]}, {"y": y[mixed]})[:2] == (CAUSE, "proven")


def test_an_overflow_or_a_flush_is_no_threshold() -> None:
    """x sigmoid(x) is 0 below -87.3 where a division flushes, which a threshold fits as well."""
    x = RNG.uniform(-110.0, 20.0, 500).astype(np.float32)
    with np.errstate(over="ignore"):
        power, y = np.exp(x), np.float32(1) / (np.float32(1) + np.exp(-x))
    power, small = (np.where(z < np.finfo(np.float32).tiny, np.float32(0), z) for z in (power, y))
    for op, output in (("sigmoid", y), ("exp", power), ("silu", x * small)):
        found = {c.cause: c.confidence for c in explain(op, {"x": x}, {"y": output}).candidates}
        assert found.get(CAUSE) in (("consistent", None) if op == "silu" else (None,))


def test_another_constant_where_the_exact_result_is_constant_too_is_no_threshold() -> None:
    """hardsigmoid is 0 and 1 beyond 3: with 0.001 added it is off everywhere."""
    x = np.linspace(-1000, 1000, 3001).astype(np.float32)
    y = np.clip(x / np.float32(6) + np.float32(0.5), 0, 1) + np.float32(1e-3)
    assert explain("hardsigmoid", {"x": x}, {"y": y}).cause != "beyond_threshold"


def test_a_threshold_among_positive_arguments_is_said_without_two_signs() -> None:
    x = np.geomspace(1e-8, 1.0, 400).astype(np.float32)
    y = np.where(x < 1.5e-4, np.float32(0), np.sqrt(x))
    explanation = explain("sqrt", {"x": x}, {"y": y})
    assert explanation.cause == "beyond_threshold"
    where = explanation.candidates[0].details["where"]
    assert where.startswith("x < t (0.0001")
    assert "--" not in where
    assert "-0" not in where
