"""Every name in `xp` has its meaning in every context, or a refusal in one sentence."""

from __future__ import annotations

import inspect
from typing import Any

import context_rules
import ml_dtypes
import numpy as np
import pytest

from refkernels.contexts import (
    Amplification,
    Arb,
    Ball,
    Bound,
    Context,
    DoubleDouble,
    Doubles,
    Gradient,
    Rational,
    Record,
    RoundedArithmetic,
    Shuffled,
    Unbounded,
)
from refkernels.contexts.context import FUNCTIONS
from refkernels.contexts.objects import data as elements
from refkernels.contexts.rational import Irrational
from refkernels.contexts.working import data

X = np.array([[0.5, 1.25, 2.0], [0.75, 3.0, 0.125]])  # numbers that bfloat16 holds
OTHERS = {
    "array": lambda xp, a: a,
    "number": lambda xp, a: a * xp.number(0.75),
    "pi": lambda xp, a: a * xp.pi(),
    "lift": lambda xp, a: xp.lift(2) * a,
    "real_power": lambda xp, a: xp.real_power(a, xp.number(2)),
    "library": lambda xp, a: xp.library(lambda xp, a: xp.square(a) + 1, 2, [a]),
    "share_of_max": lambda xp, a: xp.share_of_max(a, xp.max(a)),
    "pivot": lambda xp, a: xp.exp(a - xp.pivot(a)) / xp.sum(xp.exp(a - xp.pivot(a))),
    "store": lambda xp, a: xp.store(a),
    "saved": lambda xp, a: xp.saved(a),
    "may_store": lambda xp, a: xp.may_store(a),
    "narrow": lambda xp, a: xp.narrow(a, "bfloat16"),
    "stop": lambda xp, a: xp.stop(a) * a,
    "either": lambda xp, a: xp.either(a, a * 1),
    "less": lambda xp, a: xp.where(a < 1, a, 1 / a),
    "rearrange": lambda xp, a: xp.rearrange(lambda part: part[::-1], a),
    "reshape": lambda xp, a: xp.reshape(a, (3, 2)),
    "broadcast": lambda xp, a: xp.broadcast(a, (2, 2, 3)),
    "take_along_axis": lambda xp, a: xp.take_along_axis(a, np.array([[2], [0]])),
}
IN_RULES = {
    *("negative", "absolute", "square", "power", "clip", "round", "floor", "quotient", "step"),
    *("function", "primitive", *FUNCTIONS),
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "logaddexp", "where"),
    *("sum", "mean", "max", "cumsum", "norm", "prod", "others", "welford", "newton_schulz"),
    *("matmul", "transpose", "scatter_add", "concatenate", "take"),
}
RULES = {**context_rules.RULES, **OTHERS}
NO_FRACTIONS = {*FUNCTIONS, "logaddexp", "pi", "pivot"} - {"sqrt", "rsqrt"}  # are the values
COMPUTED = [
    *(RoundedArithmetic("float32"), RoundedArithmetic("bfloat16"), Unbounded()),
    *(Shuffled(0), Doubles()),
]


def test_no_name_of_a_context_is_left_out() -> None:
    public = {
        name
        for name, member in vars(Context).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    assert public == IN_RULES | set(OTHERS)


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    with Arb(300) as arb:
        return {name: rule(arb, arb.array(X)) for name, rule in RULES.items()}


@pytest.mark.parametrize("name", RULES)
def test_every_context_that_encloses_holds_the_value(name: str, truth: dict[str, Any]) -> None:
    rule, exact = RULES[name], truth[name]
    assert all(z.is_finite() for z in exact.data.flat)
    ball = Ball()
    tape = Gradient(ball)
    balls = [rule(ball, ball.array(X)), rule(tape, tape.array(X)).value]
    for reading in (Bound("float32"), Amplification()):
        balls.append(rule(reading, reading.array(X)).exact)
        assert np.isfinite(rule(reading, reading.array(X)).error).all()
    for interval in balls:
        assert np.isfinite(interval.radius).all()
        assert interval.shape == exact.shape
        assert context_rules.outside(interval, exact) == []
    sharp = DoubleDouble()
    value = rule(sharp, sharp.array(X))
    assert np.all(value.tail.radius <= 2.0**-95 * (1 + np.abs(value.head)))
    assert context_rules.outside_double_double(value, exact) == []


@pytest.mark.parametrize("name", RULES)
def test_rationals_are_exact_or_say_that_there_is_none(name: str, truth: dict[str, Any]) -> None:
    xp = Rational()
    if name in NO_FRACTIONS:
        with pytest.raises(Irrational):
            RULES[name](xp, xp.array(X))
        return
    with Arb(300) as arb:
        for element, z in zip(
            elements(RULES[name](xp, xp.array(X))).flat, truth[name].data.flat, strict=True
        ):
            terms = getattr(element, "terms", None)
            ball = (
                arb.element(element)
                if terms is None
                else sum(arb.element(c) * arb.element(s).sqrt() for s, c in terms)
            )
            assert ball.overlaps(z)


@pytest.mark.parametrize("xp", COMPUTED, ids=lambda xp: xp.name)
@pytest.mark.parametrize("name", RULES)
def test_what_is_computed_keeps_to_the_bound_of_the_coarsest_format(
    name: str, xp: Any, truth: dict[str, Any]
) -> None:
    """A random rounding to 24 bits, or one to nearest, is less than half an ulp of bfloat16."""
    reading = Bound("bfloat16")
    bound = reading.bound(RULES[name](reading, reading.array(X)))
    got = data(RULES[name](xp, xp.array(X.astype(ml_dtypes.bfloat16)))).astype(np.float64)
    assert got.shape == truth[name].shape
    assert np.isfinite(bound).all()
    for value, r, z in zip(got.flat, bound.flat, truth[name].data.flat, strict=True):
        assert abs(z - float(value)) <= float(r)


@pytest.mark.parametrize("name", RULES)
def test_a_trace_has_the_shape(name: str, truth: dict[str, Any]) -> None:
    xp = Record()
    assert RULES[name](xp, xp.array(X)).shape == truth[name].shape
