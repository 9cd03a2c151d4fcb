"""Products of double-doubles by Dot2: of any size, any batch, and as sharp as their terms."""

from typing import Any

import flint
import numpy as np
import pytest

from refkernels.contexts import Arb, DoubleDouble
from refkernels.contexts.objects import data
from refkernels.contexts.products import Operand

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
        for tails in (False, True):
            with Arb(800) as arb:
                pairs = []
                for context in (xp, arb):
                    x, y = context.array(a), context.array(b)
                    pairs.append(context.matmul(x / 3, y / 7) if tails else context.matmul(x, y))
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
