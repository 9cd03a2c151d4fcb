"""No stable kernel exceeds the bound, in any order of summation; planted faults do."""

import itertools

import numpy as np
import pytest

from refkernels import layernorm_ref
from refkernels.arithmetic import formats
from refkernels.layernorm_ref import algorithms

STABLE = ("two_pass", "welford", "chunked_welford", "pairwise")
GRID = list(itertools.product((0.0, 1.0, 1e2, 1e4, 1e6, 1e8), (1e-12, 1e-5, 0.1)))


def problem(seed, n, ratio, rows=6):
    rng = np.random.default_rng(seed)
    x = ratio + rng.standard_normal((rows, n))
    x[0] = ratio + 0.3
    x[1] *= np.where(np.arange(n) % 2, 1.0, -1.0)
    return x, rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((rows, n))


def ratios(got, exact, bound):
    """The largest error / bound by output, over elements with a finite bound."""
    largest = {}
    for name, values in got._asdict().items():
        enclosure, limit = getattr(exact, name), getattr(bound, name)
        with np.errstate(all="ignore"):
            error = np.abs((np.asarray(values, np.float64) - enclosure.hi) - enclosure.lo)
            ratio = np.where(error == 0.0, 0.0, error / limit)
        checked = ratio[np.isfinite(limit)]
        assert not np.isnan(checked).any(), name
        largest[name] = float(np.max(checked, initial=0.0))
    return largest


def torch_gradients(dy, x, weight, mean, rstd):
    """dx, dweight and dbias in the order of PyTorch's CPU kernel; x's own precision."""
    kind = x.dtype.type
    n = kind(x.shape[1])
    dx = np.empty_like(x)
    for i in range(x.shape[0]):
        ds, db = kind(0), kind(0)
        for j in range(x.shape[1]):
            ds += dy[i, j] * x[i, j] * weight[j]
            db += dy[i, j] * weight[j]
        b = (db * mean[i] - ds) * rstd[i] * rstd[i] * rstd[i] / n
        c = -b * mean[i] - db * rstd[i] / n
        dx[i] = rstd[i] * dy[i] * weight + b * x[i] + c
    xhat = x * rstd[:, None] + (-rstd * mean)[:, None]
    return layernorm_ref.Backward(dx, (dy * xhat).sum(0, dtype=x.dtype), dy.sum(0, dtype=x.dtype))


def kernels(n):
    """(algorithm, lanes, chunk) of the stable kernels that differ at this length."""
    yield from ((name, 8, 16) for name in STABLE)
    if n > 16:
        yield from (("chunked_welford", lanes, chunk) for lanes, chunk in ((1, 4), (4, 1), (16, 8)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 17, 256, 1500])
def test_no_stable_kernel_exceeds_the_bound(dtype, n):
    target = formats.get(dtype)
    work = np.float64 if dtype == "float64" else np.float32
    checked = 0
    for seed, (ratio, eps) in enumerate(GRID):
        if dtype == "float16" and ratio > 1e4:
            continue
        x, weight, bias, dy = (a.astype(target.storage) for a in problem(seed, n, ratio))
        exact = layernorm_ref.forward(x, weight, bias, eps=eps)
        bound = layernorm_ref.forward_bound(x, weight, bias, eps=eps, format=dtype)
        exact_back = layernorm_ref.backward(dy, x, weight, eps=eps)
        bound_back = layernorm_ref.backward_bound(dy, x, weight, eps=eps, format=dtype)
        for (name, lanes, chunk), form in itertools.product(kernels(n), algorithms.FORMS):
            got = layernorm_ref.layernorm(
                x, weight, bias, eps=eps, algorithm=name, form=form, lanes=lanes, chunk=chunk
            )
            for output, worst in ratios(got, exact, bound).items():
                assert worst <= 1.0, (output, name, form, ratio, eps)
                checked += 1
            if form != "centred":
                continue
            wide = [a.astype(work) for a in (dy, x, weight)]
            with np.errstate(all="ignore"):
                folded = torch_gradients(*wide, got.mean.astype(work), got.rstd.astype(work))
            folded = layernorm_ref.Backward(*(a.astype(target.storage) for a in folded))
            plain = layernorm_ref.layernorm_backward(dy, x, weight, eps=eps, algorithm=name)
            for back in (plain, folded):
                for output, worst in ratios(back, exact_back, bound_back).items():
                    assert worst <= 1.0, (output, name, ratio, eps)
                    checked += 1
    assert checked > 500


@pytest.mark.parametrize(("n", "factor"), [(2, 50.0), (8, 5.0)])
def test_one_pass_variance_exceeds_the_bound(n, factor):
    worst = 0.0
    for seed in range(20):
        x = (100.0 + np.random.default_rng(seed).standard_normal((32, n))).astype(np.float32)
        got = layernorm_ref.layernorm(x, algorithm="naive_clamped")
        bound = layernorm_ref.forward_bound(x, format="float32")
        worst = max(worst, ratios(got, layernorm_ref.forward(x), bound)["rstd"])
    assert worst > factor


def faulty(x, fault):
    if fault == "float32 statistics":
        got = layernorm_ref.layernorm(x.astype(np.float32))
        return layernorm_ref.Forward(*(np.asarray(a, np.float64) for a in got))
    if fault == "eps ignored":
        return layernorm_ref.layernorm(x, eps=0.0)
    if fault == "eps of another framework":
        return layernorm_ref.layernorm(x, eps=1e-12)
    n = x.shape[1]
    var = x.var(axis=1, ddof=1)
    rstd = 1.0 / np.sqrt(var + x.dtype.type(1e-5))
    mean = x.mean(axis=1)
    assert n > 1
    return layernorm_ref.Forward((x - mean[:, None]) * rstd[:, None], mean, rstd)


@pytest.mark.parametrize(
    ("fault", "dtype"),
    [
        ("float32 statistics", np.float64),
        ("eps ignored", np.float32),
        ("eps of another framework", np.float32),
        ("unbiased variance", np.float32),
        ("unbiased variance", np.float64),
    ],
)
def test_planted_faults_exceed_the_bound(fault, dtype):
    x = (0.1 * np.random.default_rng(7).standard_normal((16, 64))).astype(dtype)
    bound = layernorm_ref.forward_bound(x, format=formats.of(x))
    worst = ratios(faulty(x, fault), layernorm_ref.forward(x), bound)
    assert worst["rstd"] > 1.0
    assert worst["y"] > 1.0


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
