"""Batch, group and instance norm compared with fractions, and with one another."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import refkernels
from refkernels import norm_ref

RNG = np.random.default_rng(8)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
WEIGHT, BIAS, MEAN = RNG.standard_normal((3, 4)).astype(np.float32)
VAR = RNG.uniform(0.5, 2.0, 4).astype(np.float32)
SHARP: Any = ("ulp", "float64", 2.0**-20)


def near(enclosure: Any, at: Any, exact: Any) -> bool:
    off = abs(mpmath.mpf(float(enclosure.hi[at])) + float(enclosure.lo[at]) - exact)
    return bool(off <= max(float(enclosure.radius[at]), mpmath.mpf(2) ** -95))


def moments(values: Any) -> tuple[Any, Any]:
    row = [Fraction(float(x)) for x in values.reshape(-1)]
    mean = sum(row) / len(row)
    return mean, sum((x - mean) ** 2 for x in row) / len(row)


def mp(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def test_batch_norm_is_what_mpmath_says_and_keeps_the_unbiased_variance() -> None:
    answer = norm_ref.batch_norm(X, WEIGHT, BIAS, MEAN, VAR, momentum=0.25, certify=SHARP)
    with mpmath.workdps(40):
        for c in range(4):
            mean, var = moments(X[:, c])
            rstd = 1 / mpmath.sqrt(mp(var + Fraction(1e-5)))
            y = mp(Fraction(float(X[1, c, 3])) - mean) * rstd
            assert near(answer.y, (1, c, 3), y * float(WEIGHT[c]) + float(BIAS[c]))
            new_mean = Fraction(3, 4) * Fraction(float(MEAN[c])) + mean / 4
            new_var = Fraction(3, 4) * Fraction(float(VAR[c])) + var * Fraction(15, 14) / 4
            assert near(answer.new_mean, (c,), mp(new_mean))
            assert near(answer.new_var, (c,), mp(new_var))


def test_the_running_variance_may_be_the_biased_one() -> None:
    answer = norm_ref.batch_norm(
        X, None, None, MEAN, VAR, momentum=0.25, biased=True, certify=SHARP
    )
    usual = norm_ref.batch_norm(X, None, None, MEAN, VAR, momentum=0.25, certify=SHARP)
    with mpmath.workdps(40):
        for c in range(4):
            new_var = Fraction(3, 4) * Fraction(float(VAR[c])) + moments(X[:, c])[1] / 4
            assert near(answer.new_var, (c,), mp(new_var))
    np.testing.assert_array_equal(answer.y.hi, usual.y.hi)
    np.testing.assert_array_equal(answer.new_mean.hi, usual.new_mean.hi)


def test_a_kernel_that_keeps_the_other_variance_is_named() -> None:
    rng = np.random.default_rng(9)
    inputs = {
        "x": rng.standard_normal((2, 60, 3)).astype(np.float32),
        "running_mean": np.zeros(60, np.float32),
        "running_var": np.ones(60, np.float32),
    }
    for asked, cause in ((True, "unbiased_running_variance"), (False, "biased_running_variance")):
        other = norm_ref.BATCH_NORM.plain("forward", inputs, {"biased": not asked}, "float32")
        explanation = refkernels.explain("batch_norm", inputs, other, {"biased": asked})
        assert (explanation.cause, explanation.confidence) == (cause, "proven")


def test_inference_takes_the_given_statistics_and_leaves_them() -> None:
    answer = norm_ref.batch_norm(X, None, None, MEAN, VAR, training=False, certify=SHARP)
    with mpmath.workdps(40):
        rstd = 1 / mpmath.sqrt(mp(Fraction(float(VAR[2])) + Fraction(1e-5)))
        y = mp(Fraction(float(X[0, 2, 4])) - Fraction(float(MEAN[2]))) * rstd
        assert near(answer.y, (0, 2, 4), y)
    np.testing.assert_array_equal(np.asarray(answer.new_mean), MEAN)
    np.testing.assert_array_equal(np.asarray(answer.new_var), VAR)


def overlap(first: Any, second: Any) -> None:
    off = np.abs((first.hi - second.hi) + (first.lo - second.lo))
    assert np.all(off <= first.radius + second.radius + 2.0**-90)


def test_instance_norm_is_group_norm_of_single_channels_and_batch_norm_of_single_images() -> None:
    instance = norm_ref.instance_norm(X, WEIGHT, BIAS, certify=SHARP)
    overlap(instance, norm_ref.group_norm(X, WEIGHT, BIAS, num_groups=4, certify=SHARP))
    for n in range(3):
        alone = norm_ref.batch_norm(X[n : n + 1], WEIGHT, BIAS, certify=SHARP).y
        overlap(instance[n : n + 1], alone)
    dy = RNG.standard_normal(X.shape).astype(np.float32)
    of_instance = norm_ref.instance_norm_backward(dy, X, WEIGHT, BIAS, certify=SHARP)
    of_group = norm_ref.group_norm_backward(dy, X, WEIGHT, BIAS, num_groups=4, certify=SHARP)
    for mine, its in zip(of_instance, of_group, strict=True):
        overlap(mine, its)


def test_shapes_and_params_that_do_not_fit_are_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"must be \(N, C, \.\.\.\)"):
        norm_ref.batch_norm(X[0, 0])
    with pytest.raises(ValueError, match="weight has shape"):
        norm_ref.batch_norm(X, WEIGHT[:2])
    with pytest.raises(ValueError, match="num_groups is 3"):
        norm_ref.group_norm(X, num_groups=3)
    with pytest.raises(TypeError, match="training"):
        norm_ref.batch_norm(X, training=2)  # type: ignore[arg-type]
