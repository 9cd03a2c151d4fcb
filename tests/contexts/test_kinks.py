"""At a kink every number between the slopes of both sides is a derivative: none is certified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.contexts import Arb, Ball, DoubleDouble, Gradient, Rational, RoundedArithmetic
from refkernels.contexts.objects import data as elements
from refkernels.contexts.rational import Irrational
from refkernels.contexts.working import data
from refkernels.testing import assert_kernel

X = np.array([-1.5, 0.0, 2.0, 0.0])
G = np.array([1.0, 3.0, 5.0, -2.0])
KINKS = {  # name: formula, and the slopes of the left and of the right
    "maximum": (lambda xp, x: xp.maximum(x, xp.number(0)), 0.0, 1.0),
    "maximum, second": (lambda xp, x: xp.maximum(xp.number(0), x), 0.0, 1.0),
    "minimum": (lambda xp, x: xp.minimum(x, xp.number(0)), 1.0, 0.0),
    "clip": (lambda xp, x: xp.clip(x, 0, 1), 0.0, 1.0),
    "absolute": (lambda xp, x: abs(x), -1.0, 1.0),
}


def relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, xp.number(0))


def relu_by_where(xp: Any, x: Any) -> Any:
    return xp.where(x > 0, x, xp.number(0))


@pytest.mark.parametrize("name", KINKS)
def test_certified_contexts_enclose_the_slopes_of_both_sides(name: str) -> None:
    formula, left, right = KINKS[name]
    for below in (Ball(), DoubleDouble(), Arb(128)):
        with below if isinstance(below, Arb) else np.errstate():
            tape = Gradient(below)
            x = tape.array(X)
            (dx,) = tape.pull(formula(tape, x), below.array(G), [x])
            if isinstance(below, Arb):
                balls = elements(dx)
                for place in (1, 3):
                    assert all(balls[place].contains(G[place] * s) for s in (left, right))
                assert balls[0] == G[0] * left
                continue
            dx = dx.enclosure()
        mid, radius = np.asarray(dx), np.broadcast_to(dx.radius, 4)
        for place in (1, 3):
            low, high = sorted((left * G[place], right * G[place]))
            assert mid[place] - radius[place] <= low < high <= mid[place] + radius[place]
            assert 2 * radius[place] <= (high - low) * (1 + 2.0**-40)
        np.testing.assert_array_equal((mid[0], radius[0]), (left * G[0], 0.0))


def test_rationals_have_no_interval_and_say_so() -> None:
    tape = Gradient(Rational())
    for x, fits in ((X, False), (X[[0, 2]], True)):
        value = tape.array(x)
        output = relu(tape, value)
        if fits:
            assert list(elements(tape.pull(output, tape.below.array(x), [value])[0])) == [0, 2]
            continue
        with pytest.raises(Irrational, match="kink"):
            tape.pull(output, tape.below.array(G), [value])


def test_computed_arithmetic_takes_the_first_argument() -> None:
    tape = Gradient(RoundedArithmetic("float32"))
    x = tape.array(X)
    for formula, slope in ((relu, 1.0), (relu_by_where, 0.0)):
        (dx,) = tape.pull(formula(tape, x), tape.below.array(G), [x])
        np.testing.assert_array_equal(data(dx), [0.0, 3.0 * slope, 5.0, -2.0 * slope])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])  # PyTorch's ReLU, JAX's maximum, clamp
def test_every_framework_s_convention_passes_and_nothing_far_off(share: float) -> None:
    op = refkernels.oracle(relu, "x[...] -> y[...]").op
    x, dy = X.astype(np.float32), G.astype(np.float32)
    dx = np.where(x > 0, dy, np.where(x == 0, dy * np.float32(share), 0)).astype(np.float32)
    assert_kernel(op, {"dy": dy, "x": x}, dx, direction="backward")
    for wrong in (-1.01, 2.01):  # the bound has the jump, too
        dx[1] = dy[1] * wrong
        with pytest.raises(AssertionError, match="1 of 4 elements"):
            assert_kernel(op, {"dy": dy, "x": x}, dx, direction="backward")


def test_a_convention_stated_by_where_is_certified() -> None:
    op = refkernels.oracle(relu_by_where, "x[...] -> y[...]").op
    x, dy = X.astype(np.float32), G.astype(np.float32)
    assert_kernel(op, {"dy": dy, "x": x}, np.where(x > 0, dy, 0), direction="backward")
    with pytest.raises(AssertionError, match="2 of 4 elements"):
        assert_kernel(op, {"dy": dy, "x": x}, np.where(x < 0, 0, dy), direction="backward")


def test_a_smooth_function_of_kinks_is_enclosed() -> None:
    """softplus' slope at 0 is 1/2; one side of each kink gave -1/2, certified."""

    def softplus(xp: Any, x: Any) -> Any:
        return xp.maximum(xp.number(0), x) + xp.log1p(xp.exp(-abs(x)))

    mine = refkernels.oracle(softplus, "x[...] -> y[...]")
    dx = mine.backward(np.ones(1), np.zeros(1), certify=("rounding", "float32"))
    assert abs(np.asarray(dx)[0] - 0.5) <= dx.radius[0] < 2.0


def test_many_ties_take_no_long_time() -> None:
    """Their width is not Arb's: more bits are not tried."""
    mine = refkernels.oracle(relu, "x[...] -> y[...]")
    zeros = np.zeros(2000, np.float32)
    precisions = []

    class Counted(Arb):
        def __init__(self, bits: int) -> None:
            precisions.append(bits)
            super().__init__(bits)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("refkernels.ops.refine.Arb", Counted)
        dx = mine.backward(zeros + 1, zeros, certify=("rounding", "float32"))
    assert np.all(dx.radius >= 0.5)
    assert max(precisions) <= 512
