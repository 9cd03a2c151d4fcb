"""Losses and their gradients against mpmath, by the definitions; denominators; many rows."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from refkernels import embedding_ref, loss_ref
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.contexts.ball import U

DIGITS = 60


def holds(enclosure: Enclosure, place: tuple[int, ...], z: Any) -> bool:
    hi, lo, radius = (
        mpmath.mpf(float(part[place])) for part in (enclosure.hi, enclosure.lo, enclosure.radius)
    )
    unit = mpmath.mpf(2) ** int(enclosure.scale[place])
    return bool(abs(z - (hi + lo) * unit) <= radius * unit + abs(z) * mpmath.mpf(10) ** -DIGITS)


def numbers(array: Any) -> list[Any]:
    return [mpmath.mpf(float(value)) for value in np.ravel(array)]


def logs(row: Any) -> list[Any]:
    x = numbers(row)
    return [value - mpmath.log(mpmath.fsum(mpmath.exp(v) for v in x)) for value in x]


def classes(name: str, x: Any, target: Any, w: Any, e: float, weights: Any) -> tuple[Any, Any, Any]:
    """l, D and the gradients of the rows' losses."""
    n, rows, slopes, total = x.shape[1], [], [], mpmath.mpf(0)
    e = mpmath.mpf(e)
    for i, row in enumerate(x):
        y = numbers(row) if name == "nll" else logs(row)
        soft = name == "soft_cross_entropy"
        label = numbers(target[i]) if soft else [mpmath.mpf(int(j == target[i])) for j in range(n)]
        q = [((1 - e) * label[j] + e / n) * numbers(w)[j] for j in range(n)]
        q = [mpmath.mpf(float(weights[i])) * value for value in q]
        rows.append(-mpmath.fsum(a * b for a, b in zip(q, y, strict=True)))
        each = [mpmath.exp(value) * mpmath.fsum(q) for value in y]
        slopes.append([-b if name == "nll" else a - b for a, b in zip(each, q, strict=True)])
        total += 1 if soft else mpmath.mpf(float(weights[i])) * mpmath.mpf(float(w[target[i]]))
    return rows, total, slopes


@pytest.mark.parametrize("name", ["cross_entropy", "nll", "soft_cross_entropy", "masked_lm_loss"])
def test_losses_of_classes_follow_the_definition(name: str) -> None:
    rng = np.random.default_rng(len(name))
    x = (5 * rng.standard_normal((4, 6))).astype(np.float32)
    w, row = rng.uniform(0.5, 2, 6).astype(np.float32), np.ones(4, np.float32)
    target: Any = rng.integers(0, 6, 4)
    extra, params, share = {"weight": w}, {"reduction": "mean"}, 0.0
    if name == "soft_cross_entropy":
        target = rng.dirichlet(np.ones(6), 4).astype(np.float32)
    if name == "masked_lm_loss":
        row = rng.uniform(0, 1, 4).astype(np.float32)
        w, extra, params = np.ones(6, np.float32), {"weights": row}, {"eps": 1e-5}
    elif name != "nll":
        share = params["label_smoothing"] = 0.1  # type: ignore[assignment]
    with mpmath.workdps(2 * DIGITS):
        rows, total, slopes = classes(name, x, target, w, share, row)
        total += mpmath.mpf(1e-5) if name == "masked_lm_loss" else 0
        loss = getattr(loss_ref, name)(x, target, *extra.values(), **params)
        assert holds(loss, (), mpmath.fsum(rows) / total)
        dloss = np.float32(0.7)
        back = getattr(loss_ref, f"{name}_backward")
        dx = back(np.asarray(dloss), x, target, *extra.values(), **params)
        g = mpmath.mpf(float(dloss)) / total
        assert all(holds(dx, (i, j), g * slopes[i][j]) for i in range(4) for j in range(6))
    assert np.all(dx.radius < 1e-12)


def by_hand(name: str, x: Any, t: Any) -> tuple[Any, Any]:
    d, half = x - t, mpmath.mpf(0.5)
    near, sign = abs(d) < half, mpmath.sign(d)
    return {
        "mse": lambda: (d * d, 2 * d),
        "l1": lambda: (abs(d), sign),
        "huber": lambda: (d * d / 2, d) if near else (half * (abs(d) - half / 2), half * sign),
        "smooth_l1": lambda: (d * d, 2 * d) if near else (abs(d) - half / 2, sign),
        "bce_with_logits": lambda: (
            (1 - t) * mpmath.log1p(mpmath.exp(x)) + t * mpmath.log1p(mpmath.exp(-x)),
            1 / (1 + mpmath.exp(-x)) - t,
        ),
        "kl_div": lambda: (t * (mpmath.log(t) - x), -t) if t else (mpmath.mpf(0), mpmath.mpf(0)),
    }[name]()


@pytest.mark.parametrize("name", ["mse", "l1", "huber", "smooth_l1", "bce_with_logits", "kl_div"])
def test_losses_of_pairs_follow_the_definition(name: str) -> None:
    rng = np.random.default_rng(len(name))
    x = np.concatenate([rng.normal(size=6), [0.0, -0.0, 1.0, 90.0, -90.0]]).astype(np.float32)
    t = np.concatenate([rng.random(6), [1.0, 0.0, 1.0, 0.0, 1.0]]).astype(np.float32)
    params = {"huber": {"delta": 0.5}, "smooth_l1": {"beta": 0.5}}.get(name, {})
    function, back = (getattr(loss_ref, f"{name}{end}") for end in ("", "_backward"))
    loss = function(x, t, reduction="none", **params)
    dx = back(np.ones_like(x), x, t, reduction="none", **params)
    with mpmath.workdps(2 * DIGITS):
        pairs = [by_hand(name, *pair) for pair in zip(numbers(x), numbers(t), strict=True)]
        for i, (value, slope) in enumerate(pairs):
            assert holds(loss, (i,), value)
            assert holds(dx, (i,), slope)
        mean = mpmath.fsum(value for value, _ in pairs) / len(pairs)
        assert holds(function(x, t, **params), (), mean)
    assert np.all(dx.radius <= 2.0**-40 * np.abs(dx.hi))  # however small


def test_a_loss_that_nearly_vanishes_keeps_its_digits_and_its_bound_is_absolute() -> None:
    x = np.array([[40.0, 0.0, 1.0]], np.float32)
    loss = loss_ref.cross_entropy(x, np.array([0]))
    with mpmath.workdps(DIGITS):
        assert holds(loss, (), mpmath.log1p(mpmath.exp(-40) + mpmath.exp(-39)))
    (op,) = [candidate for candidate in loss_ref.OPS if candidate.name == "cross_entropy"]
    bound = op.bound("forward", {"x": x, "target": np.array([0])}, {}, "float32")["loss"]  # type: ignore[arg-type]
    assert float(loss.hi) < 1e-16 < 2.0**-24 < float(bound) < 2.0**-18


def test_denominators_count_what_counts() -> None:
    x = np.log(np.array([[[1, 2], [1, 2]], [[1, 2], [1, 2]]], np.float64))
    target, weight = np.array([[0, 1], [-100, 1]]), np.array([3.0, 0.5])
    third, two = np.log(3.0), np.log(1.5)
    for got, right in (
        (loss_ref.cross_entropy(x, target), (third + 2 * two) / 3),
        (loss_ref.cross_entropy(x, target, reduction="sum"), third + 2 * two),
        (loss_ref.cross_entropy(x, target, weight), (3 * third + two) / 4),
        (loss_ref.kl_div(x, np.exp(x), reduction="batchmean"), 0.0),
    ):
        assert abs(float(got.hi) - right) < 1e-14
    none = loss_ref.cross_entropy(x, np.full((2, 2), -100))
    assert np.isnan(none.hi)
    assert np.all(loss_ref.cross_entropy(x, np.full((2, 2), 2), reduction="none").hi != 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: loss_ref.cross_entropy(np.ones((2, 3)), np.ones(3, int)), "target has shape"),
        (lambda: loss_ref.mse(np.ones(2), np.ones(3)), "target has shape"),
        (lambda: loss_ref.mse(np.ones(2), np.ones(2), reduction="average"), "one of none, sum"),
        (lambda: embedding_ref.embedding(np.ones((2, 3)), [2]), "indices has 2"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


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


def test_an_embedding_s_gradient_adds_what_is_repeated() -> None:
    dy = np.array([[1, 2], [2.0**-60, 4], [8, 16]])
    indices = np.array([1, 1, 0])
    weight = np.zeros((3, 2))
    exact = embedding_ref.embedding_backward(dy, weight, indices)
    assert holds(exact, (1, 0), mpmath.mpf(1) + mpmath.mpf(2) ** -60)
    np.testing.assert_array_equal(exact.hi, [[8, 16], [1, 6], [0, 0]])
    padded = embedding_ref.embedding_backward(dy, weight, indices, padding_idx=-2)
    np.testing.assert_array_equal(padded.hi, [[8, 16], [0, 0], [0, 0]])


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
