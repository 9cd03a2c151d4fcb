"""Unbounded: finite numbers give infinities only at poles; otherwise it is binary64 arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from context_rules import BINARY, ROWS, UNARY

from refkernels.contexts.unbounded import Unbounded
from refkernels.contexts.working import RoundedArithmetic, data

NUMBERS = np.array([0.0, -0.0, 1.0, -3.0, 1e308, -1e308, 1.7e308, 1e-308, -5e-324, 0.1, 800.0])
SPECIAL = np.append(NUMBERS, [np.inf, -np.inf, np.nan])
BY_ELEMENT, OF_ALL = ("exp", "expm1", "erfc", "square"), ("sum", "cumsum", "prod", "norm")
OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: BINARY[name] for name in ("add", "subtract", "multiply", "divide")},
    **{name: lambda xp, a, b, rule=UNARY[name]: rule(xp, a) for name in BY_ELEMENT},
    **{name: lambda xp, a, b, rule=ROWS[name]: rule(xp, a) for name in OF_ALL},
    "matmul": lambda xp, a, b: xp.matmul(a, xp.transpose(b, (1, 0))),
}


def computed(xp: RoundedArithmetic, name: str, a: Any, b: Any) -> Any:
    return data(OPERATIONS[name](xp, xp.array(a), xp.array(b)))


@pytest.mark.parametrize("underflow", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_of_finite_numbers_only_a_pole_is_infinite(name: str, underflow: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.choice(NUMBERS, (400, 4)) for _ in "ab")
    if name == "divide":
        b = np.where(b == 0.0, 1.0, b)
    assert np.isfinite(computed(Unbounded(underflow), name, a, b)).all()
    if name in ("multiply", "divide", "exp", "erfc"):
        lost = computed(Unbounded(True), name, a, b) == 0.0
        factors = {"multiply": (a, b), "divide": (a,)}.get(name, ())
        zero = (
            np.logical_or.reduce([factor == 0.0 for factor in factors], axis=0)
            if factors
            else False
        )
        np.testing.assert_array_equal(lost, zero & np.ones(a.shape, bool))


@pytest.mark.parametrize("name", OPERATIONS)
def test_where_nothing_overflows_it_is_binary64(name: str) -> None:
    rng = np.random.default_rng(4)
    small = SPECIAL[(abs(SPECIAL) < 100.0) & (abs(SPECIAL) > 1e-3) | ~np.isfinite(SPECIAL)]
    a, b = (rng.choice(np.append(small, [0.0, -0.0]), (400, 4)) for _ in "ab")
    expected = computed(RoundedArithmetic("float64"), name, a, b)
    answer = computed(Unbounded(), name, a, b)
    np.testing.assert_array_equal(np.isfinite(answer), np.isfinite(expected))
    special = ~np.isfinite(expected) | (expected == 0.0)
    np.testing.assert_array_equal(answer[special], expected[special])


def test_a_pole_is_infinite_and_a_lost_difference_is_no_pole() -> None:
    xp = Unbounded(underflow=True)
    zero, huge, tiny = (xp.array(np.array([x])) for x in (0.0, 1e300, 1e-300))
    assert np.isinf(data(1 / zero)).all()
    assert np.isinf(data(xp.log(zero))).all()
    for square in (xp.square(huge), xp.square(tiny)):
        assert np.isfinite(data(1 / square)).all()
        assert np.isfinite(data(1 / (square - square))).all()
