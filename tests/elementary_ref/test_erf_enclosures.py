"""The hunt for an exact value of erf, erfc or a gelu outside its enclosure."""

import itertools
import math

import numpy as np
import pytest
from anchored import worst_escape
from test_elementary_enclosures import ERROR_FUNCTIONS

from refkernels.elementary_ref import functions
from refkernels.elementwise import oracle

FUNCTIONS = {function.name: function for function in functions.FUNCTIONS}
each = pytest.mark.parametrize("name", ERROR_FUNCTIONS)


def stepped(x, steps):
    for _ in range(abs(steps)):
        x = math.nextafter(x, math.copysign(math.inf, steps))
    return x


@each
def test_radii_are_as_narrow_as_promised_and_half_used_at_most(name):
    generator = np.random.default_rng(1)
    x = np.concatenate([generator.uniform(-14, 14, 600), generator.uniform(-1, 1, 600) ** 5])
    x = x[np.abs(x) > 2.0**-50]
    enclosure = oracle.values(FUNCTIONS[name], x)
    promised = 2.0**-92 if name == "gelu_tanh" else 2.0**-100
    assert (enclosure.radius <= promised * np.abs(enclosure.hi)).all()
    assert 0.05 < worst_escape(name, x, enclosure) < 0.5


@each
def test_every_row_of_the_table_holds_at_its_ends_and_its_node(name):
    nodes = [k / 16 for k in range(33)] + [
        2.0**e * (16 + k) / 8 for e in range(4) for k in range(17)
    ]
    edges = [(a + b) / 2 for a, b in itertools.pairwise(nodes)]
    w = np.array(sorted({stepped(v, d) for v in (*nodes, *edges) for d in (-1, 0, 1) if v > 0}))
    x = w * math.sqrt(2) if name == "gelu" else w
    assert x.size > 500
    for sign in (1.0, -1.0):
        enclosure = oracle.values(FUNCTIONS[name], sign * x)
        assert worst_escape(name, sign * x, enclosure) <= 1.0


@pytest.mark.parametrize(("name", "unit"), [("erfc", 1.0), ("gelu", -1.0), ("gelu_tanh", -0.1)])
def test_tails_far_below_every_float64_keep_their_relative_error(name, unit):
    x = unit * np.array([27.3, 38.0, 500, 9e3])
    enclosure = oracle.values(FUNCTIONS[name], x)
    assert worst_escape(name, x, enclosure) <= 1.0
    assert (enclosure.radius <= 2.0**-71 * np.abs(enclosure.hi)).all()
    assert (enclosure.scale[2:] < -1000).all()
