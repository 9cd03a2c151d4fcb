"""LayerNorm: NumPy gives small arrays the kernels' bits; the algorithms have those of loops."""

from functools import partial

import numpy as np
import pytest
from fallback_runs import both, same_bits

from refkernels import layernorm_ref
from refkernels.arithmetic import formats, sums_in_order
from refkernels.arithmetic.blocks import read_only
from refkernels.arithmetic.enclosure import PARTS
from refkernels.kernels.rows import array_float64, float64

DTYPES = ("float16", "bfloat16", "float32", "float64")


def rows(shape: tuple[int, int], dtype: str, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """Of every size, about every mean, some with special values or nothing but -0."""
    scale = rng.choice([1.0, 1e3, 1e-38, 1e20, 1e38, 1e-160])
    x = (rng.standard_normal(shape) + rng.choice([0.0, 5.0, 1000.0])) * scale
    if rng.random() < 0.3:
        x = np.where(rng.random(shape) < 0.05, rng.choice([np.inf, -np.inf, np.nan, -0.0]), x)
    if rng.random() < 0.1:
        x = np.full(shape, -0.0)
    return x.astype(formats.get(dtype).storage)


def streamed(values, kind):  # type: ignore[no-untyped-def]
    """(count, mean, sum of squared deviations), one value after another."""
    mean = squares = kind(0)
    for count, value in enumerate(values, 1):
        before = value - mean
        mean += before / kind(count)
        squares += before * (value - mean)
    return len(values), mean, squares


def merged(parts, kind):  # type: ignore[no-untyped-def]
    count, mean, squares = parts[0]
    for n, other_mean, other_squares in parts[1:]:
        before, share = other_mean - mean, kind(n) / kind(count + n)
        mean += before * share
        squares += other_squares + before * before * kind(count) * share
        count += n
    return count, mean, squares


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 31, 130])
def test_moments_have_the_bits_of_loops(dtype: str, n: int) -> None:
    rng = np.random.default_rng(n)
    with np.errstate(all="ignore"):
        x = rows((6, n), dtype, rng)
        kind, lanes, chunk = x.dtype.type, 4, 5
        for row in x:
            lanes_of_row = []
            for lane in range(min(lanes, n)):
                steps = row[lane::lanes]
                chunks = [steps[s : s + chunk] for s in range(0, steps.size, chunk)]
                lanes_of_row.append(merged([streamed(part, kind) for part in chunks], kind))
            for algorithm, parts in {
                "welford": [streamed(row, kind)],
                "chunked_welford": lanes_of_row,
            }.items():
                _, mean, squares = merged(parts, kind)
                got = layernorm_ref.moments(row, algorithm, lanes=lanes, chunk=chunk)
                expected = np.array([mean, squares / kind(n)], dtype)
                assert same_bits(np.array(got), expected), algorithm


@pytest.mark.parametrize("seed", range(12))
def test_rows_in_double_double_are_the_kernels_interpreted(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 31, 130]))
    with np.errstate(all="ignore"):
        x = rows(shape, "float64", rng)
    dy, (weight, bias) = rng.standard_normal(shape), rng.standard_normal((2, shape[1]))
    weight[0], bias[-1] = rng.choice([0.0, 1.0], 2)
    eps = float(rng.choice([0.0, 1e-5]))
    tried = 0
    for run in (
        both(monkeypatch, layernorm_ref.forward, x, weight, bias, eps=eps),
        both(monkeypatch, layernorm_ref.backward, dy, x, weight, bias, eps=eps),
    ):
        for kernel, fallback in zip(*run, strict=True):
            for part in PARTS:
                assert same_bits(getattr(kernel, part), getattr(fallback, part)), part
                tried += 1
    assert tried == 2 * 3 * len(PARTS)


@pytest.mark.parametrize("question", ["enclosure", "rounding", "ulp"])
@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_rows_in_float64_are_the_kernels(
    dtype: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = {
        "enclosure": question,
        "rounding": (question, dtype),
        "ulp": (question, dtype, 1e-6),
    }
    tried = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, len(dtype)])
        shape = int(rng.integers(1, 9)), int(rng.choice([1, 2, 3, 31, 32, 33, 64, 130, 768]))
        with np.errstate(all="ignore"):
            x = rows(shape, dtype, rng)
        x[0] = rng.choice([0.0, -0.0, 1.5])
        weight, bias = rng.standard_normal((2, shape[1])).astype(dtype)
        bias[0], bias[-1], weight[-1] = rng.choice([0.0, -0.0, 1.0], 3)
        options = {"eps": float(rng.choice([0.0, 1e-5, 1e3])), "certify": questions[question]}
        kernel, fallback = both(monkeypatch, layernorm_ref.forward, x, weight, bias, **options)
        for by_kernel, by_fallback in zip(kernel, fallback, strict=True):
            for part in PARTS:
                assert same_bits(getattr(by_kernel, part), getattr(by_fallback, part)), (seed, part)
                tried += 1
    assert tried == 12 * 3 * len(PARTS)


@pytest.mark.parametrize("kind", range(3))
def test_what_is_known_of_a_row_in_float64_is_the_kernels(kind: int) -> None:
    tried = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, kind])
        height, n = int(rng.integers(1, 9)), int(rng.choice([1, 2, 3, 31, 32, 33, 64, 130, 768]))
        with np.errstate(all="ignore"):
            x = read_only(rows((height, n), "float32", rng))
        weight, bias = map(read_only, rng.standard_normal((2, n)) * 2.0 ** rng.integers(-200, 190))
        screen = kind, int(rng.choice([8, 11, 24])), 2.0**-125, 2.0**127, 1e-6 * 2.0**-24
        filled = []
        for run in (partial(float64.normalise_rows, 0, height), array_float64.normalise_rows):
            records, hi = np.zeros(height, float64.STATISTICS), np.empty((height, n))
            out = records, hi, *np.zeros((3, height))
            run(x, weight, bias, 1e-5 * (seed % 3), screen, out)
            filled.append([*(records[field] for field in records.dtype.names), *out[1:]])
        for by_kernel, by_fallback in zip(*filled, strict=True):
            assert same_bits(by_kernel, by_fallback), seed
            tried += 1
    assert tried == 60 * (len(float64.STATISTICS) + 4)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_sum_in_order_is_the_loops(kind: type, axis: int) -> None:
    values = (np.random.default_rng(0).standard_normal((300, 7)) * 1e3).astype(kind)
    values[:, 3] = values[5] = -0.0
    totals = sums_in_order.by_numpy(values, axis)
    columns = np.moveaxis(values, axis, 0)
    for j, column in enumerate(columns.T):
        total = kind(0)
        for value in column:
            total += value
        assert same_bits(totals[j], total)
    assert totals.size > 0
    none = sums_in_order.by_numpy(values[:, :0] if axis else values[:0], axis)
    assert same_bits(none, np.zeros_like(totals))
