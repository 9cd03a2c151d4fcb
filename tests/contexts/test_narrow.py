"""xp.narrow keeps a value in a chosen format; Flushed takes subnormal numbers as zeros."""

import numpy as np
import pytest

from refkernels.arithmetic import formats
from refkernels.contexts import Arb, Ball, Bound, Gradient, RoundedArithmetic
from refkernels.contexts.composed import Flushed
from refkernels.contexts.gradient import Taped
from refkernels.contexts.objects import data

X = np.random.default_rng(5).standard_normal(200) * 2.0 ** np.arange(-10.0, 10.0, 0.1)


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("working", ["float32", "float64"])
def test_a_kernel_s_narrow_value_is_the_nearest_and_inside_the_bound(
    format: str, working: str
) -> None:
    x = formats.round_to(X, working)
    kernel = RoundedArithmetic(working)
    got = kernel.narrow(kernel.array(x), format).data.astype(np.float64)
    np.testing.assert_array_equal(got, formats.round_to(x, format).astype(np.float64))
    xp = Bound(working)
    bound = xp.narrow(xp.array(x), format).error
    assert np.all(np.abs(got - x.astype(np.float64)) <= bound)
    same = formats.get(format).p >= formats.get(working).p
    assert np.all(bound == 0.0) if same else np.all(bound <= 2.1 * formats.get(format).u * abs(x))


def test_exactly_it_is_the_value_and_has_the_slope_1() -> None:
    ball = Ball()
    narrowed = ball.narrow(ball.array(X), "float16")
    np.testing.assert_array_equal(narrowed.mid, X)
    with Arb(100) as arb:
        assert all(data(arb.narrow(arb.array(X), "float16")) == data(arb.array(X)))
    tape = Gradient(ball)
    leaf = Taped(tape, ball.array(X))
    (slope,) = tape.pull(tape.narrow(leaf, "float16") * 3, ball.array(np.ones(200)), [leaf])
    np.testing.assert_array_equal(slope.mid, 3.0)


def test_subnormal_results_and_inputs_are_flushed_with_their_sign() -> None:
    xp = Flushed("float32")
    tiny = np.float32(2.0**-126)
    x = xp.array(np.array([tiny, -tiny / 2, 1.0, -0.0], np.float32))
    assert xp.store(x).data.tolist() == [tiny, 0.0, 1.0, 0.0]
    half = (x * xp.number(0.5)).data
    assert half.tolist() == [0.0, 0.0, 0.5, 0.0]
    assert np.signbit(half).tolist() == [False, True, False, True]
    terms = xp.array(
        np.array([[1.5 * tiny, -tiny, tiny, 3.0], [tiny, tiny, -tiny, 0.0]], np.float32)
    )
    assert xp.sum(terms).data.ravel().tolist() == [np.float32(3.0), tiny]
    assert xp.cumsum(terms).data[0].tolist() == [1.5 * tiny, 0.0, tiny, np.float32(3.0)]
    assert xp.cumsum(xp.array(np.zeros((2, 0), np.float32))).shape == (2, 0)
