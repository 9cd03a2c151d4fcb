"""No emulated kernel exceeds the bound of its form: every formula, every format. (Every rule:
test_enclosures.)

REFKERNELS_HUNT multiplies the number of attacks.
"""

import math
from fractions import Fraction
from typing import Any

import context_formulas as formulas
import ml_dtypes
import numpy as np
import pytest
from context_kernels import Kernel, delivered, exceeds, kernel_of, kernels
from hunting import HUNT

from refkernels.arithmetic import formats
from refkernels.contexts import Arb, Bound, CommonErrors, Gradient, accumulation
from refkernels.contexts.bound_value import BoundValue
from refkernels.contexts.context import FUNCTIONS
from refkernels.contexts.gradient import Taped
from refkernels.contexts.working import RoundedArithmetic, data

ARITHMETICS = [
    ("float16", None),
    ("bfloat16", None),
    ("float32", None),
    ("float64", None),
    ("float32", "bfloat16"),
    ("float32", "float16"),
]


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


def rows(rng: np.random.Generator, format: str, n: int) -> Any:
    """Rows that are hard in different ways, in the format: ordinary ones first."""
    target = formats.get(format)
    top, bottom = min(target.emax, 300) / 3.3, max(target.emin, -300) / 3.3
    large, small = min(1e20, 10.0 ** (top - 1)), max(1e-22, 10.0 ** (bottom + 1))
    normal = [rng.normal(0, 1, n) for _ in range(12)]
    alternating = np.where(np.arange(n) % 2, 1.0, -1.0)
    made = [
        normal[0],
        normal[1] * 4,
        normal[2] * 1e-3,
        10 + normal[3] * 0.02,
        alternating * (1 + normal[4] * 2 * target.u),  # cancels
        np.repeat(rng.normal(), n),
        normal[5] * large,
        normal[6] * small,
        rng.integers(-9, 10, n) * target.min_subnormal,
        normal[7] * target.min_normal,
        np.round(normal[8] * 2),
        np.where(np.arange(n) == n // 2, 80.0, normal[9]),
        np.sort(normal[10])[::-1] * 2.0 ** -np.arange(n, dtype=float),
        np.linspace(-3.5, 3.5, n),
    ]
    with np.errstate(all="ignore"):
        return np.stack(made).astype(target.dtype)


def attack(
    formula: Any, arguments: list[Any], working: str, storage: str | None, **options: Any
) -> tuple[float, float, Any]:
    """Largest error / bound, the part of the elements whose bound is finite, and the bounds."""
    reading = CommonErrors(working, storage, **options)
    bound = reading.bound(formula(reading, *(reading.array(x) for x in arguments)))
    plain = Bound(working, storage, **options)
    assert np.all(bound <= plain.bound(formula(plain, *(plain.array(x) for x in arguments))))
    with Arb(400) as arb:
        truth = formula(arb, *(arb.array(x) for x in arguments))
        largest, pivots = 0.0, None
        for option in kernels(working, storage, reading.exp2, reading.limit):
            kernel = kernel_of(option, working, pivots=pivots)
            y = formula(kernel, *(kernel.array(x) for x in arguments))
            places, ratio = exceeds(delivered(y, working, storage), truth, bound)
            assert places == [], (option, places[:5])
            largest = max(largest, ratio)
            pivots = kernel.found or None  # the next one's are off by the rounding of the scores
    return largest, float(np.isfinite(bound).mean()), bound


ROW_FORMULAS = {
    "softmax": (formulas.softmax, 1),
    "log_softmax": (formulas.log_softmax, 1),
    "softmax_backward": (formulas.softmax_backward, 2),
    "rms_norm": (formulas.rms_norm, 1),
    "layer_norm": (formulas.layer_norm, 3),
    "hardswish": (formulas.hardswish, 1),
    "gelu": (formulas.gelu, 1),
    "powers": (formulas.powers, 1),
}


def arguments_of(name: str, format: str, seed: int, n: int = 9) -> list[Any]:
    rng = np.random.default_rng(seed)
    x = rows(rng, format, n)
    if name == "softmax_backward":
        dy = rows(rng, format, n)[rng.permutation(len(x))]
        dy[3:5] = (1 + rng.normal(0, 1, (2, n)) * 0.01).astype(dy.dtype)  # dy - Σ y dy cancels
        return [dy, x]
    if name == "layer_norm":
        weight, bias = rng.normal(0, 1, (2, n)).astype(x.dtype)
        return [x, weight, bias]
    return [x]


@pytest.mark.parametrize(("working", "storage"), ARITHMETICS, ids=str)
@pytest.mark.parametrize("name", ROW_FORMULAS)
def test_no_kernel_of_the_form_exceeds_its_bound(
    name: str, working: str, storage: str | None
) -> None:
    formula, _ = ROW_FORMULAS[name]
    for seed in range(HUNT):
        arguments = arguments_of(name, storage or working, seed)
        largest, finite, _ = attack(formula, arguments, working, storage)
        assert finite > 0.3
        assert largest > 0.0


def test_attention_and_pivots_that_are_off_by_the_scores_rounding() -> None:
    rng = np.random.default_rng(8)
    for working, storage in ARITHMETICS:
        format = dtype_of(storage or working)
        for scale in (1.0, 6.0):
            q, k, v = (rng.normal(0, 1, (5, 7)) for _ in range(3))
            inputs = [x.astype(format) for x in (q * scale, k, v)]
            largest, finite, _ = attack(formulas.attention, inputs, working, storage)
            # Scores of 16 bits throughout may be off by more than 1: then nothing is said.
            assert finite == 1.0 or formats.get(working).p < 24
            assert largest > 0.0 or finite == 0.0


@pytest.mark.parametrize(("working", "storage"), ARITHMETICS, ids=str)
def test_params_that_the_format_cannot_hold(working: str, storage: str | None) -> None:
    x = rows(np.random.default_rng(9), storage or working, 9)
    for wide in ("working", "binary64"):
        reading = Bound(working, storage, scalars=wide)
        bound = reading.bound(formulas.scalars(reading, reading.array(x)))
        with Arb(400) as arb:
            truth = formulas.scalars(arb, arb.array(x))
            for option in kernels(working, storage, False, 0.0):
                option.pop("limit", None)
                kernel = kernel_of(option, working)
                y = _with_scalars(kernel, x, wide == "binary64")
                assert exceeds(delivered(y, working, storage), truth, bound)[0] == []
        assert np.isfinite(bound).mean() > 0.5


@pytest.mark.parametrize(("working", "storage"), ARITHMETICS, ids=str)
@pytest.mark.parametrize("fma", [False, True])
def test_scalars_of_binary64_may_be_rounded_where_they_meet_arrays(
    working: str, storage: str | None, fma: bool
) -> None:
    """As PyTorch's optimizers do: 1 - beta is exact to binary64, beta x is not."""
    xp = RoundedArithmetic(working, storage, fma=fma, scalars="binary64")
    beta = xp.number(0.999)
    assert float(data(1 - beta)) == 1 - 0.999
    reading = Bound(working, storage, scalars="binary64")
    for seed in range(HUNT):
        x = rows(np.random.default_rng([11, seed]), storage or working, 9)
        for formula in (formulas.scalars, lambda xp, x: x * xp.number(0.999)):
            bound = reading.bound(formula(reading, reading.array(x)))
            with Arb(400) as arb:
                got = delivered(formula(xp, xp.array(x)), working, storage)
                assert exceeds(got, formula(arb, arb.array(x)), bound)[0] == []
            assert np.isfinite(bound).mean() > 0.5
    far = data(xp.array(x) * beta).astype(float) - x.astype(float) * 0.999
    assert xp.scalars is None or np.any(far != 0.0)


def _with_scalars(kernel: Kernel, x: Any, wide: bool) -> Any:
    """`formulas.scalars` with its params combined in float64, each product rounded once."""
    if not wide:
        return formulas.scalars(kernel, kernel.array(x))
    beta, correction = 0.9, 1 - 0.9 * 0.9 * 0.9
    with np.errstate(all="ignore"):
        t = data(kernel.array(x)).astype(np.float64)

        def kept(z: Any) -> Any:
            return data(kernel.value(z)).astype(np.float64)

        first = kept(kept(t * 0.1) / correction)
        second = kept(kept((1 - beta) * np.maximum(t, kept(0.3))) / 7)
        return kernel.value(first + second)


def test_exp_as_exp2_without_fma_is_beyond_a_library_limit_and_within_its_own_bound() -> None:
    x = (np.random.default_rng(10).normal(0, 30, (8, 9))).astype(np.float32)
    largest, finite, _ = attack(lambda xp, x: xp.exp(x), [x], "float32", None, exp2=True)
    assert 0.1 < largest <= 1.0
    assert finite == 1.0
    reading = Bound("float32")
    plain = reading.bound(reading.exp(reading.array(x)))
    with Arb(200) as arb:
        kernel = Kernel("float32", exp2=True)
        got = data(kernel.exp(kernel.array(x)))
        assert len(exceeds(got, arb.exp(arb.array(x)), plain)[0]) > 10


def test_an_undecided_jump_is_part_of_the_bound() -> None:
    def step(xp: Any, x: Any) -> Any:
        return xp.where(x * 3 < xp.number(Fraction(3, 10)), xp.number(0), xp.number(1))

    reading = Bound("float32")
    x = np.array([0.05, 0.1, 0.2], np.float32)
    assert reading.bound(step(reading, reading.array(x))).tolist() == pytest.approx([0, 1, 0])


def test_the_bound_of_softmax_is_finite_for_logits_of_any_size() -> None:
    x = np.random.default_rng(14).normal(0, 1, (3, 6)).astype(np.float32) * np.float32(1e20)
    largest, finite, bound = attack(formulas.softmax, [x], "float32", None)
    assert finite == 1.0
    assert np.all(bound < 2.0**-19)
    assert largest <= 1.0


def test_either_covers_both_ways() -> None:
    def reciprocal(xp: Any, x: Any) -> Any:
        total = xp.sum(xp.square(x))
        return xp.either(x / total, x * (1 / total))

    def second(xp: Any, x: Any) -> Any:
        return x * (1 / xp.sum(xp.square(x)))

    reading = Bound("float32")
    x = np.random.default_rng(11).normal(0, 1, (30, 5)).astype(np.float32)
    bound = reading.bound(reciprocal(reading, reading.array(x)))
    with Arb(200) as arb:
        truth = second(arb, arb.array(x))
        for formula in (reciprocal, second):
            kernel = Kernel("float32")
            assert exceeds(data(formula(kernel, kernel.array(x))), truth, bound)[0] == []


def test_the_bound_is_infinite_where_range_or_definition_may_be_left() -> None:
    half = Bound("float16")
    x = half.array(np.array([300.0, 200.0], np.float16))
    assert half.square(x).error.tolist() == [np.inf, pytest.approx(40000 * 2.0**-11, rel=1e-3)]
    assert np.isinf(half.sum(half.array(np.full(2, 4e4, np.float16))).error).all()
    assert np.isinf(half.number(1e5).error)
    single = Bound("float32")
    near = single.array(np.ones(1, np.float32)) - 3 * single.number(Fraction(1, 3))
    for beyond in (1 / near, single.log(near), single.rsqrt(near), single.exp(near + 100)):
        assert np.isinf(beyond.error).all()
    unknown = 1 / near
    for name in FUNCTIONS:
        assert np.isinf(single.function(name, unknown).error).all()
    for beyond in (unknown * 0, single.max(unknown), single.clip(unknown, 0, 1), unknown / unknown):
        assert np.isinf(beyond.error).all()
    square = single.reshape(unknown, (1, 1))
    assert np.isinf(single.matmul(0 * single.reshape(near, (1, 1)), square).error).all()
    tiny = Bound("float64")
    below = tiny.array(np.full((1, 1), 1e-200))
    assert tiny.matmul(below, below).error > 0.0
    assert tiny.matmul(below, tiny.array(np.zeros((1, 1)))).error == 0.0
    stored = Bound("float32", "float16")
    assert np.isinf(stored.bound(stored.array(np.array([1e5], np.float32)))).all()


def test_the_bound_of_a_gradient_holds_for_its_kernels() -> None:
    """Backward passes are formulas too: dx of the mixed formula on every arithmetic."""

    def backward(xp: Any, dy: Any, x: Any) -> Any:
        tape = Gradient(xp)
        node = Taped(tape, x)
        y = formulas.rms_norm(tape, formulas.gelu(tape, node))
        return tape.pull(y, dy, [node])[0]

    rng = np.random.default_rng(12)
    for working, storage in ARITHMETICS:
        inputs = [rng.normal(0, 1, (4, 5)).astype(dtype_of(storage or working)) for _ in range(2)]
        largest, finite, _ = attack(backward, inputs, working, storage)
        assert finite == 1.0
        assert largest > 0.0


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32", "float64"])
def test_the_reciprocal_of_a_count_is_within_its_error_however_it_is_taken(format: str) -> None:
    rounding, dtype = Bound(format).working, dtype_of(format)
    for n in [*range(1, 400), 1000, 2047, 2049, 4095, 65503]:
        kept = dtype.type(n)
        error = Fraction(accumulation.inverse(rounding, n))
        for taken in (dtype.type(1) / kept, dtype.type(1.0 / n), 1 / Fraction(float(kept))):
            exact = taken if isinstance(taken, Fraction) else Fraction(float(taken))
            assert abs(exact - Fraction(1, n)) <= error


def test_errors_as_large_as_their_values_are_multiplied_too() -> None:
    xp = Bound("float64")
    a = BoundValue(xp, xp.ball.array(np.ones(1)), 1.0)
    assert np.all((a * a).error >= 3.0)  # 2 x 2 for 1 x 1
    assert np.all(xp.square(a).error >= 3.0)
    assert np.all(xp.power(a, 3).error >= 7.0)
    assert np.all(xp.matmul(xp.reshape(a, (1, 1)), xp.reshape(a, (1, 1))).error >= 3.0)


def test_the_pivot_holds_every_largest_score_that_a_kernel_may_find() -> None:
    xp = Bound("float32")
    rng = np.random.default_rng(15)
    mid, radius, error = rng.normal(0, 1, (40, 6)), rng.uniform(0, 1, (40, 6)), rng.uniform(0, 1, 6)
    pivot = xp.pivot(BoundValue(xp, xp.ball.value(mid, radius), np.broadcast_to(error, mid.shape)))
    for side in (-1, 1):
        largest = (mid + side * (radius + error)).max(-1, keepdims=True)
        assert np.all(np.abs(largest - pivot.exact.mid) <= pivot.exact.radius + 2.0**-50)
    assert not np.any(pivot.error)


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32", "float64"])
def test_products_by_zero_round_nothing(format: str) -> None:
    """Of a sum of k products and zeros the bound is that of the k, and kernels keep to it."""
    rng, xp, compared = np.random.default_rng(12), Bound(format), 0
    for k in (1, 2, 5):
        a, b = (
            formats.round_to(rng.standard_normal(shape), format)
            for shape in ((1, 3, 40), (1, 40, 2))
        )
        kept = np.sort(rng.permutation(40)[:k])
        a[..., np.setdiff1d(np.arange(40), kept)] = 0
        whole = xp.bound(xp.matmul(xp.array(a), xp.array(b)))
        part = xp.bound(xp.matmul(xp.array(a[..., kept]), xp.array(b[:, kept])))
        assert np.all(whole >= part * (1 - 2.0**-40))
        assert np.all(whole <= part * (1 + 2.0**-20))
        exact = a.astype(float) @ b.astype(float)
        for order in ("sequential", "pairwise", "random"):
            working = RoundedArithmetic(format, order=order, fma=order == "random")
            got = data(working.matmul(working.array(a), working.array(b))).astype(float)
            slack = 60 * 2.0**-53 * (np.abs(a).astype(float) @ np.abs(b).astype(float))
            assert np.all(np.abs(got - exact) <= whole + slack)
            compared += got.size
    assert compared == 54


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32", "float64"])
def test_zeros_in_a_sum_round_nothing(format: str) -> None:
    """Of k terms and zeros the bound is that of the k; kernels keep to it, and are exact for 1."""
    rng, xp, compared = np.random.default_rng(13), Bound(format), 0
    one_sum = np.zeros(40, np.intp)
    for k in (1, 2, 5):
        kept = np.sort(rng.permutation(40)[:k])
        a = np.zeros((6, 40), dtype_of(format))
        a[:, kept] = formats.round_to(rng.standard_normal((6, k)), format)
        sparse, dense = xp.array(a), xp.array(np.ascontiguousarray(a[:, kept]))
        part = xp.bound(xp.sum(dense))[:, 0]
        columns = xp.transpose(sparse, (1, 0))
        for whole in (
            xp.bound(xp.sum(sparse))[:, 0],
            xp.bound(xp.cumsum(sparse))[:, -1],
            xp.bound(xp.scatter_add(columns, one_sum, 1))[0],
        ):
            assert np.allclose(whole, part, rtol=2.0**-20, atol=0.0)
        assert np.all((part == 0.0) == (k == 1))
        exact = np.array([math.fsum(row) for row in a.astype(float)])
        for order in ("sequential", "pairwise", "random"):
            working = RoundedArithmetic(format, order=order)
            got = data(working.sum(working.array(a)))[:, 0].astype(float)
            assert np.all(np.abs(got - exact) <= part + 2.0**-53 * np.abs(exact))
            compared += got.size
    assert compared == 54


@pytest.mark.parametrize("format", ["float16", "float32"])
def test_terms_that_are_far_below_their_sum_count_as_three(format: str) -> None:
    """Whatever the order, and wherever partial sums are kept in float64 for a while."""
    rng, xp, u = np.random.default_rng(14), Bound(format), formats.get(format).u
    for k in (1, 3, 9):
        a = formats.round_to(rng.uniform(0.2, 1.0, (40, 120)) * (u * 2.0**-9), format)
        a[:, rng.permutation(120)[:k]] = formats.round_to(rng.uniform(1.0, 2.0, (40, k)), format)
        bound = xp.bound(xp.sum(xp.array(a)))[:, 0]
        assert np.all(bound <= (k + 2.1) * u * a.astype(float).sum(1))
        for row, most in zip(a, bound, strict=True):
            sums = [*row.astype(float)]
            while len(sums) > 1:
                i, j = sorted(rng.permutation(len(sums))[:2])
                both = sums.pop(j) + sums.pop(i)
                kept = bool(sums) and rng.random() < 0.5
                sums.append(both if kept else float(formats.round_to(np.array(both), format)))
            assert abs(sums[0] - math.fsum(row)) <= most
