"""No form exceeds its proven bound, in any order of summation, even where products underflow."""

import itertools

import numpy as np
import pytest
from hunting import one_in
from hypothesis import given, settings
from hypothesis import strategies as st
from layernorm_forms import DWEIGHT, DX, MOMENTS, NORMALISED, SUMS
from underflow_attack import EXAMPLES, Record, error_over_bound, numbers

from refkernels import layernorm_ref
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.models.layernorm import torch_cpu

DTYPES = ("float16", "bfloat16", "float32", "float64")
SEEDS = st.integers(0, 2**32 - 1)
LENGTHS = st.sampled_from([1, 2, 3, 5, 8, 17])
LONG = (4, 30, 1500)  # of ordinary numbers, which tell what a bound has for each term
EXACTLY = ("rounding", "float64")
EPS = {
    "float32": (0.0, 1e-45, 1e-38, 1e-36, 1e-30, 1e-24, 1e-20, 1e-12, 1e-5, 0.1, 1e10, 1e30),
    "float64": (0.0, 5e-324, 1e-310, 1e-300, 1e-200, 1e-100, 1e-30, 1e-12, 1e-5, 1e100),
}


def drawn(rng, n, format):
    """x (perhaps with a large mean), weight, bias, dy and eps, from all over the format's range."""
    eps = float(rng.choice(EPS["float64" if format.p > 24 else "float32"]))
    if n in LONG:  # about one mean; a constant row, and one of alternating signs
        x, dy = rng.standard_normal((2, 6, n))
        x[0], x[1] = 0.3, np.abs(x[1]) * np.where(np.arange(n) % 2, 1.0, -1.0)
        x += rng.choice([0.0, 1.0, 1e2, 1e4] + [1e6, 1e8] * (format.p > 11))
        shapes = x, *rng.standard_normal((2, n)), dy
        return *(formats.round_to(values, format) for values in shapes), eps
    x, dy = (numbers(rng, (16, n), format) for _ in range(2))
    weight, bias = (numbers(rng, (n,), format) for _ in range(2))
    if rng.random() < 0.4:
        shift = to_float64(numbers(rng, (16, 1), format))
        x = formats.round_to(to_float64(x) + shift, format)
    if rng.random() < 0.6:
        bias = np.zeros_like(bias)
    return x, weight, bias, dy, eps


def statistics(x, moments, eps):
    """mean, root and rstd as columns."""
    mean, variance = MOMENTS[moments](x)
    root = np.sqrt(variance + x.dtype.type(eps))
    return mean, root, x.dtype.type(1) / root


def working(format, *arrays):
    kind = np.float64 if format.p > 24 else np.float32
    return [array.astype(kind) for array in arrays]


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_form_exceeds_the_forward_bound(dtype):
    format, record = formats.get(dtype), Record()

    @settings(max_examples=EXAMPLES)
    @given(SEEDS, LENGTHS)
    def hunt(seed, n):
        x, weight, bias, _, eps = drawn(np.random.default_rng(seed), n, format)
        exact = layernorm_ref.forward(x, weight, bias, eps=eps, certify=EXACTLY)
        bound = layernorm_ref.forward_bound(x, weight, bias, eps=eps, format=format)

        def judge(form, output, got):
            of = getattr(exact, output), getattr(bound, output)
            record.add((output, form), (seed, n), got.astype(format.storage), *of)

        x, weight, bias = working(format, x, weight, bias)
        with np.errstate(all="ignore"):
            for moments in MOMENTS:
                mean, root, rstd = statistics(x, moments, eps)
                judge(moments, "mean", mean[:, 0])
                judge(moments, "rstd", rstd[:, 0])
                for name, form in NORMALISED.items():
                    judge(name, "y", form(x, mean, rstd, root, weight, bias))

    hunt()
    for seed in range(12):
        hunt.hypothesis.inner_test(seed, LONG[seed % 3])
    record.tell(2 * len(MOMENTS) + len(NORMALISED))


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_form_exceeds_the_backward_bound(dtype):
    format, record = formats.get(dtype), Record()

    @settings(max_examples=EXAMPLES)
    @given(
        SEEDS, LENGTHS, st.sampled_from(list(MOMENTS)), st.sampled_from(list(SUMS)), st.booleans()
    )
    def hunt(seed, n, moments, order, stored):
        x, weight, _, dy, eps = drawn(np.random.default_rng(seed), n, format)
        exact = layernorm_ref.backward(dy, x, weight, eps=eps, certify=EXACTLY)
        bound = layernorm_ref.backward_bound(dy, x, weight, eps=eps, format=format)

        def judge(form, output, got):
            of = getattr(exact, output), getattr(bound, output)
            problem = seed, n, moments, order, stored
            record.add((output, form), problem, got.astype(format.storage), *of)

        add = SUMS[order]
        dy, x, weight = working(format, dy, x, weight)
        with np.errstate(all="ignore"):
            mean, _, rstd = statistics(x, moments, eps)
            if stored:
                mean, rstd = working(format, *(v.astype(format.storage) for v in (mean, rstd)))
            for name, form in DX.items():
                judge(name, "dx", form(dy, x, weight, mean, rstd, add))
            for name, form in DWEIGHT.items():
                judge(name, "dweight", add(form(dy, x, mean, rstd), 0)[0])
            judge(order, "dbias", add(dy, 0)[0])

    hunt()
    for seed, (moments, order) in one_in(2, enumerate(itertools.product(MOMENTS, SUMS))):
        hunt.hypothesis.inner_test(seed, LONG[seed % 3], moments, order, seed % 5 > 2)
    assert len(record.largest) > len(DX) + len(DWEIGHT)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_fused_kernel_exceeds_the_bounds(dtype):
    """PyTorch's, with multiply-adds fused and without."""
    format, record = formats.get(dtype), Record()

    @settings(max_examples=EXAMPLES)
    @given(SEEDS, LENGTHS)
    def hunt(seed, n):
        x, weight, bias, dy, eps = drawn(np.random.default_rng(seed), n, format)
        inputs, params = {"x": x, "weight": weight, "bias": bias, "dy": dy}, {"eps": eps}
        exact = (
            layernorm_ref.forward(x, weight, bias, eps=eps, certify=EXACTLY)._asdict()
            | layernorm_ref.backward(dy, x, weight, eps=eps, certify=EXACTLY)._asdict()
        )
        bound = (
            layernorm_ref.forward_bound(x, weight, bias, eps=eps, format=format)._asdict()
            | layernorm_ref.backward_bound(dy, x, weight, eps=eps, format=format)._asdict()
        )
        for model in torch_cpu.MODELS:
            for direction in ("forward", "backward"):
                for output, got in model.run(inputs, params, direction, format).items():
                    form = output, model.name
                    record.add(form, (seed, n), got, exact[output], bound[output])

    hunt()
    assert len(record.largest) >= 6 * (len(torch_cpu.MODELS) - 1)


def test_half_a_subnormal_lost_before_rstd_is_allowed():
    x = np.array([[0.0, float.fromhex("0x1.5b8p-129")]], np.float32)
    weight = np.array([1.0, float.fromhex("0x1.1abc9ap-19")], np.float32)
    mean, _, rstd = statistics(x, "two passes", 1e-5)
    exact = layernorm_ref.forward(x, weight, certify=EXACTLY).y
    bound = layernorm_ref.forward_bound(x, weight, format="float32").y
    assert 0.0 < error_over_bound(((x - mean) * weight) * rstd, exact, bound) <= 1.0


def test_the_bound_follows_a_gradient_whose_products_all_underflow():
    """What a product loses is never more than the product: eta / 2 alone, times rstd^3 = 2^120,
    would allow 10^13 times the gradient."""
    tiny = np.float32(2.0**-149)
    x = np.array([[-1.0, 1.0, 0.5]], np.float32) * np.float32(2.0**-40)
    dy = np.array([[5 * tiny, 3 * tiny, -7 * tiny]], np.float32)
    weight = np.array([0.5, 0.25, 0.375], np.float32)
    exact = layernorm_ref.backward(dy, x, weight, eps=0.0, certify=EXACTLY).dx
    bound = layernorm_ref.backward_bound(dy, x, weight, eps=0.0, format="float32").dx
    assert (bound > np.abs(exact.hi) / 8.0).all()
    assert (bound < 1e6 * np.abs(exact.hi)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_underflow_has_no_share_in_the_bounds_of_ordinary_rows(dtype):
    """The other terms scale with x, dy and sqrt(eps); a multiple of the smallest subnormal does
    not."""
    rng = np.random.default_rng(0)
    factor = 2.0**20
    weight, bias = (rng.standard_normal(64).astype(dtype) for _ in range(2))
    checked = 0
    for mean in (0.0, 100.0):
        x, dy = (rng.standard_normal((8, 64)).astype(dtype) for _ in range(2))
        x += x.dtype.type(mean)
        bounds = []
        for scale in (1.0, factor):
            rows, slopes = (values * values.dtype.type(scale) for values in (x, dy))
            how = {"eps": 2.0**-17 * scale**2, "format": dtype}
            forward = layernorm_ref.forward_bound(rows, weight, bias, **how)
            backward = layernorm_ref.backward_bound(slopes, rows, weight, **how)
            bounds.append({**forward._asdict(), **backward._asdict()})
        powers = {"y": 0, "mean": 1, "rstd": -1, "dx": 0, "dweight": 1, "dbias": 1}
        for name, power in powers.items():
            scaled = bounds[1][name] / factor**power
            np.testing.assert_allclose(scaled, bounds[0][name], rtol=1e-9)
            checked += scaled.size
    assert checked == 2 * (2 * 8 * 64 + 2 * 8 + 2 * 64)
