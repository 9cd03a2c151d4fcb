"""xp.narrow: a value kept in a chosen format, whatever the context's."""

import numpy as np
import pytest

from refkernels.arithmetic import formats
from refkernels.contexts import Arb, Ball, Bound, Gradient, RoundedArithmetic
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
