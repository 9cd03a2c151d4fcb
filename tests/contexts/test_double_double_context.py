"""DoubleDouble is as sharp as promised, and decides by its tails. (Its rules: test_enclosures.)"""

from fractions import Fraction
from typing import Any

import context_formulas as formulas
import flint
import numpy as np
import pytest
from context_rules import BINARY, UNARY
from context_rules import outside_double_double as outside

from refkernels.contexts import Arb, Ball, DoubleDouble, Gradient
from refkernels.contexts.double_double_value import DoubleDoubleValue
from refkernels.contexts.objects import data
from refkernels.contexts.products import Operand

D = DoubleDouble()


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_exact_arguments_give_a_hundred_bits(name: str) -> None:
    rng = np.random.default_rng(5)
    rule = UNARY.get(name) or BINARY[name]
    inputs = [D.array(rng.uniform(0.5, 3, 200)) for _ in range(1 + (name in BINARY))]
    result = rule(D, *(D.sqrt(x) for x in inputs))  # with tails
    assert np.all(result.tail.radius <= 2.0**-97 * (1 + np.abs(result.head)))


ROW_FORMULAS = [
    formulas.softmax,
    formulas.log_softmax,
    formulas.rms_norm,
    formulas.hardswish,
    formulas.gelu,
    formulas.powers,
]


@pytest.mark.parametrize("formula", ROW_FORMULAS, ids=lambda f: f.__name__)
def test_formulas_and_their_gradients_hold_arb_and_are_sharper_than_ball(formula: Any) -> None:
    rng = np.random.default_rng(6)
    x, dy = (rng.normal(0, 2, (3, 5)) for _ in range(2))
    readings = []
    with Arb(300) as arb:
        for xp in (D, Ball(), arb):
            tape = Gradient(xp)
            node = tape.array(x)
            y = formula(tape, node)
            readings.append((y.value, *tape.pull(y, xp.array(dy), [node])))
        checked = 0
        for sharp, rough, truth in zip(*readings, strict=True):
            assert outside(sharp, truth) == []
            assert np.all(sharp.tail.radius <= 2.0**-40 * rough.radius)
            checked += 1
    assert checked == 2


def test_a_comparison_is_decided_by_the_tails() -> None:
    third = D.number(Fraction(1, 3))
    nearest = D.array(np.array(1 / 3))
    assert (nearest < third).yes
    assert (third < nearest).no
    assert not (third * 3 < D.number(1)).decided
    assert D.maximum(nearest, third).tail.mid == third.tail.mid


def test_a_param_keeps_its_tail() -> None:
    value = D.number(Fraction(1, 10))
    assert Fraction(float(value.head)) + Fraction(float(value.tail.mid)) != Fraction(1, 10)
    assert value.tail.radius < 2.0**-105
    assert not np.any(D.number(0.1).tail.radius)
    with Arb(300) as arb:
        assert outside(D.pi(), arb.pi()) == []


def test_the_end_of_a_tail_is_inside_the_enclosure() -> None:
    """A ball is closed and an Enclosure open."""
    tail = Ball().value(np.array([0.0, 0.0]), np.array([2.0**-60, 0.0]))
    enclosure = DoubleDoubleValue(DoubleDouble(), np.ones(2), tail).enclosure()
    assert enclosure.contains(0, 1 + Fraction(1, 2**60))
    assert enclosure.contains(0, 1 - Fraction(1, 2**60))
    assert enclosure.radius[1] == 0.0


SPREADS = {
    "ordinary": (1.0, 0),
    "tiny": (1e-300, 0),
    "subnormal": (1e-320, 0),
    "huge": (1e150, 0),
    "wide": (1.0, 250),
    "wide and tiny": (1e-60, 250),
}


def drawn(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Any:
    size, decades = SPREADS[kind]
    return rng.standard_normal(shape) * size * 10.0 ** -rng.uniform(0, decades, shape)


@pytest.mark.parametrize("kind", SPREADS)
@pytest.mark.parametrize("batches", [((), ()), ((3,), ()), ((2, 1), (3,))], ids=str)
def test_a_product_holds_arbs(kind: str, batches: Any) -> None:
    """Of exact heads, and of values with tails."""
    rng, xp, compared = np.random.default_rng(31), DoubleDouble(), 0
    for m, k, n in ((1, 1, 1), (2, 7, 3), (5, 130, 2)):
        a, b = drawn(rng, (*batches[0], m, k), kind), drawn(rng, (*batches[1], k, n), "ordinary")
        for with_tails in (False, True):
            with Arb(800) as arb:
                pairs = []
                for context in (xp, arb):
                    x, y = context.array(a), context.array(b)
                    pairs.append(
                        context.matmul(x / 3, y / 7) if with_tails else context.matmul(x, y)
                    )
                enclosure, exact = pairs[0].enclosure(), data(pairs[1])
                for at in np.ndindex(exact.shape):
                    middle = flint.arb(float(enclosure.hi[at])) + flint.arb(float(enclosure.lo[at]))
                    off = abs(exact[at] - middle)
                    assert not off > flint.arb(float(enclosure.radius[at]))
                    compared += 1
    assert compared > 30


@pytest.mark.parametrize("tails", [False, True])
def test_a_product_is_as_sharp_as_twice_the_precision(tails: bool) -> None:
    """To 2^-95 of the sum of its terms' sizes, whatever cancels."""
    rng, xp = np.random.default_rng(32), DoubleDouble()
    a, b = rng.standard_normal((4, 9, 100)), rng.standard_normal((4, 100, 8))
    x, y = xp.array(a), xp.array(b)
    product = xp.matmul(x / 3, y / 3) if tails else xp.matmul(x, y)
    sizes = np.einsum("bik,bkj->bij", np.abs(a), np.abs(b)) / (9 if tails else 1)
    assert np.all(product.enclosure().radius < sizes * 2.0**-95)


def test_what_is_below_the_range_is_handed_back() -> None:
    heads = np.array([[1.0, 0.0, 2.0**-419, -(2.0**-421), 2.0**-1074]])
    operand = Operand.of(heads)
    assert operand.shift == 0
    np.testing.assert_array_equal(operand.values, [[1.0, 0.0, 2.0**-419, 0.0, 0.0]])
    np.testing.assert_array_equal(operand.rest, [[0.0, 0.0, 0.0, -(2.0**-421), 2.0**-1074]])
    for extreme in (2.0**1000, 2.0**-1074):
        scaled = Operand.of(np.array([[extreme, 0.0]]))
        assert 2.0**-420 <= scaled.values[0, 0] < 2.0**481
        assert np.ldexp(scaled.values, -scaled.shift)[0, 0] == extreme
