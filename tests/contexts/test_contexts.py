"""One formula in every context: each reading lies in the next sharper one; floats are refused."""

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from context_formulas import gelu, hardswish, log_softmax, rms_norm, softmax

import refkernels
from refkernels.arithmetic import formats
from refkernels.contexts import (
    Amplification,
    Arb,
    Ball,
    Bound,
    CommonErrors,
    Context,
    DoubleDouble,
    Doubles,
    Gradient,
    Rational,
    Record,
    RoundedArithmetic,
    Unbounded,
)
from refkernels.contexts.arb import ends
from refkernels.contexts.bound import Unstored
from refkernels.contexts.composed import Composed, Flushed, NarrowFunctions, OtherFunction
from refkernels.contexts.fast_functions import COMPILED, FastFunctions
from refkernels.contexts.rational import Irrational, values
from refkernels.contexts.reachable import Reachable
from refkernels.contexts.shuffled import Shuffled
from refkernels.contexts.signed_zeros import SignedZeros
from refkernels.contexts.signs import Signs
from refkernels.contexts.tensor_cores import TensorCores

B, R = Ball(), Rational()


def mixture(xp: Any, x: Any) -> Any:
    """Every other primitive that has a derivative."""
    y = xp.where(x < xp.number(0), xp.tanh(x), xp.log1p(xp.square(x)))
    y = y + xp.expm1(x / 4) * xp.sin(x) - xp.cos(x) * xp.erf(x)
    y = y + xp.power(x, 3) / (2 + xp.square(x)) + xp.maximum(x, -x) + abs(x)
    y = xp.cumsum(y) + xp.norm(y) - xp.max(y)
    z = xp.matmul(xp.transpose(y, (1, 0)), y)
    picked = xp.take(z, np.array([1, 1, 0]), 0)
    return xp.scatter_add(xp.concatenate([picked, z], 0), np.arange(3 + z.shape[0]) % 2, 2)


FORMULAS = (softmax, log_softmax, rms_norm, hardswish, gelu, mixture)


def inputs(seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 2, (3, 5)).astype(np.float32)


def assert_holds(ball: Any, truth: Any) -> None:
    pairs = zip(ball.mid.reshape(-1), ball.radius.reshape(-1), ends(truth), strict=True)
    checked = 0
    for mid, radius, (low, high) in pairs:
        assert Fraction(mid) - Fraction(radius) <= low
        assert high <= Fraction(mid) + Fraction(radius)
        checked += 1
    assert checked


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_arb_lies_in_ball_forward_and_backward(formula: Any) -> None:
    x = inputs()
    tape = Gradient(B)
    node = tape.array(x)
    y = formula(tape, node)
    dy = np.random.default_rng(1).normal(0, 1, y.shape)
    (dx,) = tape.pull(y, B.array(dy), [node])
    with Arb(200) as arb:
        exact = Gradient(arb)
        point = exact.array(x)
        z = formula(exact, point)
        (dz,) = exact.pull(z, arb.array(dy), [point])
        assert_holds(y.value, z.value)
        assert_holds(dx, dz)
    assert np.all(y.value.radius <= 1e-11 * (1 + np.abs(y.value.mid)))
    assert np.all(dx.radius <= 1e-10 * (1 + np.abs(dx.mid)))


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_gradients_are_the_limit_of_differences(formula: Any) -> None:
    """(f(x + h d) - f(x - h d)) / 2h = <df, d> + O(h²), in Arb with h = 2^-100."""
    rng = np.random.default_rng(2)
    x, d = inputs(3).astype(np.float64), rng.normal(0, 1, (3, 5))
    with Arb(600) as arb:
        exact = Gradient(arb)
        point = exact.array(x)
        y = formula(exact, point)
        dy = arb.array(rng.normal(0, 1, y.shape))
        (dx,) = exact.pull(y, dy, [point])
        along = (arb.array(d) * dx).data.sum()
        h = arb.number(Fraction(1, 2**100))
        forward, backward = (
            formula(arb, arb.array(x) + arb.number(sign) * h * arb.array(d)) for sign in (1, -1)
        )
        slope = ((forward - backward) * dy / (2 * h)).data.sum()
        assert abs(slope - along) < 2.0**-150


def test_rational_is_exact_and_says_where_it_ends() -> None:
    x = np.array([[-4.0, -1.5, 0.1, 2.0, 7.0]])
    y = hardswish(R, R.array(x))
    assert values(y) == [
        Fraction(t) * min(max(Fraction(t) + 3, 0), 6) / 6 for t in x.reshape(-1).tolist()
    ]
    assert values(R.norm(R.array(np.array([3.0, 4.0])))) == [5]
    with pytest.raises(Irrational, match="exp"):
        softmax(R, R.array(x))


def test_a_float_is_a_ball_of_all_its_bits_at_any_precision() -> None:
    bits = np.random.default_rng(3).integers(0, 2**64, 1000, dtype=np.uint64).view(np.float64)
    x = np.array([*bits[np.isfinite(bits)], 0.1, -0.0, 5e-324, 1.7976931348623157e308, 2.0**53])
    with Arb(2) as xp:
        assert ends(xp.array(x)) == [(Fraction(number), Fraction(number)) for number in x.tolist()]
    with pytest.raises(ValueError, match="finite"):
        xp.number(np.inf)


EVERY = [
    *(B, R, Arb(100), RoundedArithmetic("float32"), Gradient(B)),
    *(DoubleDouble(), Bound("float32"), CommonErrors("float32"), Amplification(), Record()),
    *(Shuffled(0), Unbounded(), Doubles(), Unstored("bfloat16")),
    *(Composed("float16"), NarrowFunctions("float64"), OtherFunction("exp", np.exp)),
    *(Flushed("float32"), Reachable("float32"), SignedZeros(), TensorCores("bfloat16")),
    *(FastFunctions("float32", COMPILED["Triton"]), Signs()),
]
in_every_context = pytest.mark.parametrize("xp", EVERY, ids=lambda c: c.name)


def test_every_context_is_among_these() -> None:
    waiting, known = [Context], {type(xp) for xp in EVERY}
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        for context in below:
            ours = context.__module__.startswith("refkernels.contexts.")
            assert context in known or context.__abstractmethods__ or not ours


@in_every_context
@pytest.mark.parametrize("name", ["max", "mean", "pivot"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 0), -1), ((0, 3), 0), ((0,), -1)], ids=str)
def test_what_does_not_exist_of_no_elements_is_refused_in_a_sentence(
    xp: Any, name: str, shape: tuple[int, ...], axis: int
) -> None:
    x = xp.array(np.ones(shape))
    message = rf"xp.{name} goes over axis {axis} of the shape .* which has no elements"
    with pytest.raises(ValueError, match=message):
        getattr(xp, name)(x, axis)
    with pytest.raises(ValueError, match=rf"xp.{name} has no axis 5"):
        getattr(xp, name)(x, 5)


@in_every_context
@pytest.mark.parametrize("name", ["max", "mean", "pivot"])
def test_there_may_be_no_rows_to_reduce(xp: Any, name: str) -> None:
    assert getattr(xp, name)(xp.array(np.ones((0, 3)))).shape == (0, 1)


@in_every_context
def test_floats_arrays_and_other_contexts_are_refused_in_a_formula(xp: Any) -> None:
    x = xp.array(np.array([1.0, 2.0]))
    for operand in (0.5, np.float32(2), True, "1", np.ones(2), None):
        for operation in (lambda a, b: a + b, lambda a, b: b * a, lambda a, b: a / b):
            with pytest.raises(TypeError):
                operation(x, operand)
    with pytest.raises(TypeError, match="the xp that is passed to it"):
        x + Ball().array(np.ones(2))
    with pytest.raises(TypeError, match="=="):
        _ = x == x
    assert (x + 1).shape == (1 - x).shape == (2,)
    for wrong in ("1e-5", True, 1j, None):
        with pytest.raises(TypeError):
            xp.number(wrong)
    with pytest.raises(ValueError, match="finite"):
        xp.number(float("nan"))


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32", "float64"])
def test_working_rounds_every_operation_to_its_format(format: str) -> None:
    xp = RoundedArithmetic(format)
    rng = np.random.default_rng(5)
    dtype = np.dtype(getattr(ml_dtypes, format, format))
    a, b = (rng.normal(0, 1, 500).astype(dtype) for _ in range(2))
    for rule, exact in (
        (lambda x, y: x + y, lambda x, y: x + y),
        (lambda x, y: x * y, lambda x, y: x * y),
        (lambda x, y: x / y, lambda x, y: x / y),
    ):
        got = rule(xp.array(a), xp.array(b)).data
        assert got.dtype == dtype
        truth = [exact(Fraction(float(x)), Fraction(float(y))) for x, y in zip(a, b, strict=True)]
        with Arb(100):
            for value, z in zip(got, truth, strict=True):
                beside = [np.nextafter(value, dtype.type(s)) for s in (-10000, 10000)]
                off = abs(Fraction(float(value)) - z)
                assert all(off <= abs(Fraction(float(neighbour)) - z) for neighbour in beside)


def test_a_param_enters_working_rounded_once() -> None:
    tie = 1 + Fraction(1, 2**24) + Fraction(1, 2**80)  # above a tie of float32, which float64 hides
    assert float(RoundedArithmetic("float32").number(tie).data) == 1 + 2.0**-23
    assert float(RoundedArithmetic("float32").number(0.1).data) == float(np.float32(0.1))
    assert float(RoundedArithmetic("bfloat16").number(1e-5).data) == float(ml_dtypes.bfloat16(1e-5))
    tie = 2**60 + 2**36 + 1  # above one of float32, which float64 hides
    assert float(RoundedArithmetic("float32").number(tie).data) == 2.0**60 + 2.0**37
    assert not np.signbit(RoundedArithmetic("float32").number(-0.0).data)


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32"])
def test_working_rounds_once_whatever_lies_beside_a_tie(format: str) -> None:
    """A product that is added, a param, a number that is stored: each beside a tie, by less than
    float32 tells."""
    p, rng = formats.get(format).p, np.random.default_rng(7)
    xp, wide = RoundedArithmetic(format, fma=True), RoundedArithmetic("float64", storage=format)
    tried = 0
    for side in (1, -1):
        for _ in range(40):
            bits = int(rng.integers(2, p))
            low = 2.0 * rng.integers(2 ** (bits - 2), 2 ** (bits - 1)) + 1
            high = 2.0 * rng.integers(2 ** (p - bits - 1), 2 ** (p - bits)) + 1
            tie = low * high
            if not 2.0**p < tie < 2.0 ** (p + 1):  # odd, and of p + 1 bits
                continue
            tried += 1
            nearest = tie + side
            little = side * 2.0 ** -int(rng.integers(17, 24))
            a, b, c = (xp.array(np.array([number])) for number in (low, high, little))
            assert float((a * b + c).data[0]) == nearest
            assert float(xp.number(Fraction(tie) + Fraction(side, 2**70)).data) == nearest
            beside = wide.array(np.array([np.nextafter(tie, side * np.inf)]))
            assert float(wide.store(beside).data[0]) == nearest
    assert tried > 20


def test_sums_are_taken_in_the_order_asked_for() -> None:
    terms = np.array([1.0, 2.0**-24, 2.0**-24, 2.0**-24], np.float32)
    in_order = RoundedArithmetic("float32", order="sequential")
    pairs = RoundedArithmetic("float32", order="pairwise")
    assert float(in_order.sum(in_order.array(terms)).data[0]) == 1.0
    assert float(pairs.sum(pairs.array(terms)).data[0]) == 1.0 + 2.0**-23


def test_store_keeps_a_value_in_the_storage_format() -> None:
    xp = RoundedArithmetic("float32", storage="bfloat16")
    assert float(xp.store(xp.number(0.1)).data) == float(ml_dtypes.bfloat16(0.1))


@pytest.mark.parametrize(
    "choose", [lambda xp, x: x if x > 0 else -x, lambda xp, x: max(x, 0), lambda xp, x: x and -x]
)
def test_python_decides_nothing_for_all_elements(choose: Any) -> None:
    """A comparison that counted as true would make another formula of it, and certify that."""
    xp = refkernels.contexts.Ball()
    with pytest.raises(TypeError, match=r"xp\.where"):
        choose(xp, xp.array(np.array([-1.0, 2.0])))
