"""Planted faults exceed the bound, which holds for extreme statistics too; that no right kernel
exceeds it is in test_layernorm_underflow."""

import numpy as np
import pytest
from underflow_attack import error_over_bound

from refkernels import layernorm_ref
from refkernels.layernorm_ref import OPS


def statistics_off(x, **wrong):
    """error / bound of y and rstd in the rows that another computation gives."""
    got, exact = layernorm_ref.layernorm(x, **wrong), layernorm_ref.forward(x)
    bound = layernorm_ref.forward_bound(x, format="float32")
    return [error_over_bound(*(part[k] for part in (got, exact, bound))) for k in (0, 2)]


@pytest.mark.parametrize(("n", "factor"), [(2, 500.0), (8, 5.0)])
def test_wrong_statistics_exceed_the_bound(n, factor):
    normal = np.random.default_rng(7).standard_normal((600, n)).astype(np.float32)
    assert min(statistics_off(100 + normal, algorithm="naive_clamped")) > factor
    assert min(statistics_off(normal / 10, eps=0.0)) > 10


def chan_mean_errors(limit, reversed_merge):
    """C(n) of the proof: Chan merges, with at most one reversed merge above any leaf."""
    ordered = [0.0] * limit
    once = [0.0] * limit
    for n in range(2, limit):
        best, best_once = 0.0, 0.0
        for b in range(1, n):
            a, cost = n - b, 6.0 * b / n + 1.0
            if b <= a:
                best = max(best, (a * ordered[a] + b * ordered[b]) / n + cost)
                best_once = max(best_once, (a * once[a] + b * once[b]) / n + cost)
            else:
                best_once = max(best_once, (a * ordered[a] + b * ordered[b]) / n + cost)
        ordered[n], once[n] = best, max(best, best_once)
    return once if reversed_merge else ordered


def test_recursions_of_the_chan_proof():
    limit = 260
    c = chan_mean_errors(limit, reversed_merge=True)
    assert max(c[n] - n for n in range(2, limit)) <= 8.0
    f = [0.0] * limit
    for n in range(2, limit):
        f[n] = max(f[b] + f[n - b] + (c[b] + c[n - b]) ** 2 * b * (n - b) / n for b in range(1, n))
    assert max(f[n] / (n * (n + 8.0) ** 2) for n in range(2, limit)) <= 0.65


ROW = np.array([[1.0, 2.0, 5.0], [7.0, -2.0, 0.5]])


@pytest.mark.parametrize("power", [-990, -920, -600, 600, 900])
def test_conditions_do_not_depend_on_a_power_of_two_where_eps_is_zero(power):
    """mean and rstd carry a scale there: their low parts are in another unit than x."""
    dy = np.array([[1.0, -2.0, 0.3], [0.5, 3.0, 1.0]])
    checked = 0
    for direction, inputs in (("forward", {"x": ROW}), ("backward", {"dy": dy, "x": ROW})):
        moved = {**inputs, "x": np.ldexp(ROW, power)}
        plain = OPS[0].condition(direction, inputs, {"eps": 0.0})
        shifted = OPS[0].condition(direction, moved, {"eps": 0.0})
        for name, expected in plain.items():
            # float64 quotients of certified values: a few dozen roundings
            np.testing.assert_allclose(shifted[name], expected, rtol=2.0**-45, err_msg=name)
            checked += 1
    assert checked == 6


@pytest.mark.parametrize("scale", [1e-290, 1e-280, 1e-300])
def test_the_bound_of_tiny_rows_is_a_tiny_one(scale):
    bound = layernorm_ref.forward_bound(ROW * scale, format="float64", eps=1e-5)
    assert (bound.y < 2.0**-40 * 1e3 * scale).all()  # rstd is 316 at most
    assert (bound.mean < 2.0**-40 * scale).all()


@pytest.mark.parametrize("eps", [1e-46, 1e-45, 3e-45, 1e-42])
def test_the_bound_allows_an_eps_that_the_working_precision_loses(eps):
    """1e-46 is 0 in float32 and 1e-45 is 1.4e-45: rstd is infinite, or 16 % off."""
    x = np.ones((1, 3), np.float32)
    got = layernorm_ref.forward_plain(x, eps=eps, format="float32")
    exact = layernorm_ref.forward(x, eps=eps)
    bound = layernorm_ref.forward_bound(x, eps=eps, format="float32")
    error = np.abs(got.rstd.astype(np.float64) - np.asarray(exact.rstd))
    assert (error <= bound.rstd).all()
    assert np.isfinite(bound.rstd).all() == (eps > 1e-45 / 2 + 2e-46)
    assert not np.isnan(got.y[np.isfinite(bound.y)]).any()


@pytest.mark.parametrize("power", [-320, -400, -900])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_mean_and_a_bias_gradient_beside_a_midpoint_are_decided(power, sign):
    """Sums are exact, so that no distance from a midpoint of float32 is too small to tell."""
    tiny = sign * 2.0**power
    row = np.array([[2.0 + 2.0**-23, 2.0 * tiny]])
    column = np.array([[1.0 + 2.0**-24, 1.0 / 3.0, 2.0**-60, tiny, -(2.0**-60), -1.0 / 3.0]]).T
    x = np.hstack([column, np.ones((6, 1))])
    question = ("rounding", "float32")
    expected = np.float32(1.0) if sign < 0.0 else np.nextafter(np.float32(1.0), np.float32(2.0))
    mean, certified = layernorm_ref.forward(row, certify=question).mean.round("float32")
    assert certified.all()
    assert mean[0] == expected
    dbias, certified = layernorm_ref.backward(x, x, certify=question).dbias.round("float32")
    assert certified.all()
    assert dbias[0] == expected
