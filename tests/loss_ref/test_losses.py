"""Losses: digits that vanish, denominators, labels that are no class, many rows, and
maxima that are differentiated."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

from refkernels import explain, loss_ref
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.contexts.ball import U

DIGITS = 60


def holds(enclosure: Enclosure, place: tuple[int, ...], z: Any) -> bool:
    hi, lo, radius = (
        mpmath.mpf(float(part[place])) for part in (enclosure.hi, enclosure.lo, enclosure.radius)
    )
    unit = mpmath.mpf(2) ** int(enclosure.scale[place])
    return bool(abs(z - (hi + lo) * unit) <= radius * unit + abs(z) * mpmath.mpf(10) ** -DIGITS)


def test_a_loss_that_nearly_vanishes_keeps_its_digits_and_its_bound_is_absolute() -> None:
    x = np.array([[40.0, 0.0, 1.0]], np.float32)
    loss = loss_ref.cross_entropy(x, np.array([0]))
    with mpmath.workdps(DIGITS):
        assert holds(loss, (), mpmath.log1p(mpmath.exp(-40) + mpmath.exp(-39)))
    (op,) = [candidate for candidate in loss_ref.OPS if candidate.name == "cross_entropy"]
    bound = op.bound("forward", {"x": x, "target": np.array([0])}, {}, "float32")["loss"]  # type: ignore[arg-type]
    assert float(loss.hi) < 1e-16 < 2.0**-24 < float(bound) < 2.0**-18


def test_a_mean_of_nothing_is_nan_and_a_label_that_is_no_class_gives_no_loss() -> None:
    x = np.log(np.array([[[1, 2], [1, 2]], [[1, 2], [1, 2]]], np.float64))
    assert np.isnan(loss_ref.cross_entropy(x, np.full((2, 2), -100)).hi)
    assert np.all(loss_ref.cross_entropy(x, np.full((2, 2), 2), reduction="none").hi != 0)


@pytest.mark.parametrize("loss", ["cross_entropy", "nll"])
@pytest.mark.parametrize("label", [-1, 4])
def test_a_label_that_is_no_class_has_no_weight_and_leaves_no_mean(loss: str, label: int) -> None:
    """The denominator is a part of every gradient: it may not be that of another class's weight."""
    x, target = np.zeros((3, 4), np.float32), np.array([0, label, 1])
    w = np.arange(1, 5).astype(np.float32)
    backward = getattr(loss_ref, f"{loss}_backward")
    assert np.isnan(getattr(loss_ref, loss)(x, target, w).hi)
    assert np.isnan(backward(np.float32(1), x, target, w).hi).all()
    total = backward(np.float32(1), x, target, w, reduction="sum").hi
    np.testing.assert_array_equal(np.isnan(total).all(1), target == label)
    assert np.isfinite(total[target != label]).all()


def test_a_mean_of_a_million_rows_is_sharp() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1_000_000, 2)).astype(np.float32)
    target = rng.integers(0, 2, 1_000_000)
    loss = loss_ref.cross_entropy(x, target)
    d = x[np.arange(len(x)), 1 - target] - x[np.arange(len(x)), target].astype(np.float64)
    assert abs(float(loss.hi) - np.mean(np.logaddexp(0.0, d))) < 1e-12
    assert float(loss.radius) < 1e6 * U


def test_weights_that_only_count_are_summed_without_rounding() -> None:
    """400 rows of weight 1 or 0: the bound of a gradient does not grow with them; of any other
    weights the sum rounds, and it does."""
    (op,) = [candidate for candidate in loss_ref.OPS if candidate.name == "masked_lm_loss"]
    rng = np.random.default_rng(5)

    def widest(rows: int, size: float) -> float:
        inputs = {
            "dloss": np.array(1.0, np.float32),
            "x": rng.standard_normal((rows, 4)).astype(np.float32),
            "target": rng.integers(0, 4, rows), "weights": np.full(rows, size, np.float32),
        }  # fmt: skip
        exact = loss_ref.masked_lm_loss_backward(**inputs)
        bound = op.bound("backward", inputs, {}, "float32")["dx"]  # type: ignore[arg-type]
        return float(np.median(bound / np.abs(np.asarray(exact))))

    few, many = widest(4, 1.0), widest(400, 1.0)
    assert many < 2 * few
    assert widest(400, 0.7) > 200 * 2.0**-24 > many


def test_a_z_loss_with_weights_is_refused_and_a_cap_leaves_no_mask() -> None:
    x, target = np.array([[-np.inf, 1.0, np.inf]]), np.array([1])
    with pytest.raises(ValueError, match="z_loss takes no weight"):
        loss_ref.cross_entropy(x, target, np.ones(3), z_loss=0.1)
    loss = loss_ref.cross_entropy(x, target, softcap=2.0, z_loss=0.5)
    dx = loss_ref.cross_entropy_backward(np.float64(1), x, target, softcap=2.0)
    with mpmath.workdps(DIGITS):  # logits -2, 2 tanh(1/2) and 2
        c = 2 * mpmath.tanh(mpmath.mpf(1) / 2)
        total = mpmath.log(mpmath.exp(-2) + mpmath.exp(c) + mpmath.exp(2))
        assert holds(loss, (), total - c + total**2 / 2)
        assert holds(dx, (0, 1), (mpmath.exp(c - total) - 1) * (1 - (c / 2) ** 2))
    assert not np.asarray(dx)[0, ::2].any()


Array = npt.NDArray[Any]
CAUSE = "maximum_differentiated"
EPS = 1e-5
RNG = np.random.default_rng(3)
X = 0.1 * RNG.standard_normal((20, 200))
LABELS = RNG.integers(0, 200, 20)
WEIGHTS = (RNG.random(20) < 0.8).astype(np.float64)


def gradient(x: Array, cotangents: Array, through_maximum: bool) -> Array:
    """Of -Σ g y over each row's label. Along the row the shares are added one by one."""
    dy = -cotangents[:, None] * np.eye(x.shape[1])[LABELS]
    top = x.max(-1, keepdims=True)
    e, total = np.exp(x - top), dy.sum(-1, keepdims=True)
    shares = e / e.sum(-1, keepdims=True) * total
    left = np.add.accumulate(shares, axis=-1)[:, -1:] - total
    return dy - shares + np.where(through_maximum & (x == top), left, 0.0)


def masked(eps: float, through_maximum: bool) -> Any:
    """BERT's loss, backward."""
    dx = gradient(X, WEIGHTS / (WEIGHTS.sum() + eps), through_maximum)
    inputs = {"x": X, "target": LABELS, "weights": WEIGHTS, "dloss": np.float64(1.0)}
    return explain("masked_lm_loss", inputs, {"dx": dx}, {"eps": EPS}, "backward")


def test_a_gradient_through_the_maximum_is_named() -> None:
    inputs = {"x": X, "target": LABELS, "dloss": np.ones(20)}
    for through_maximum in (True, False):
        dx = gradient(X, np.ones(20), through_maximum)
        found = explain("cross_entropy", inputs, {"dx": dx}, {"reduction": "none"}, "backward")
        assert found.cause == (CAUSE if through_maximum else None)
        assert through_maximum or found.verdict == "rounding"


def test_it_is_named_in_berts_loss() -> None:
    assert masked(EPS, True).cause == CAUSE


def test_it_does_not_hide_an_eps_in_float32() -> None:
    """MindSpore's float64 BERT loss: its eps is a Python number, which becomes float32."""
    narrow = float(np.float32(EPS))
    explanation = masked(narrow, True)
    assert explanation.verdict == "exceeds_bound"
    assert (explanation.cause, explanation.confidence) == ("eps_rounded", "proven")
    best = explanation.candidates[0]
    assert (best.details["eps"], best.details["with"]) == (narrow, CAUSE)
    assert "(with maximum_differentiated)" in explanation.summary


def test_an_eps_in_float32_is_more_than_a_factor_near_1() -> None:
    explanation = masked(float(np.float32(EPS)), False)
    assert (explanation.cause, explanation.confidence) == ("eps_rounded", "proven")
    assert "with" not in explanation.candidates[0].details


def test_a_right_loss_has_no_cause() -> None:
    explanation = masked(EPS, False)
    assert explanation.verdict == "rounding"
    assert explanation.cause in (None, "summation_order")
