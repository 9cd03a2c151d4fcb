"""What the backward bound allows where products of dy f'(x) underflow, and elsewhere not. (That no
kernel of a named form exceeds it: contexts/test_named_forms.)"""

import numpy as np
import pytest
from underflow_attack import error_over_bound

from refkernels import elementary_ref, trig_ref

OPS = {op.name: op for op in (*elementary_ref.OPS, *trig_ref.OPS)}
SIZE = 32


def rounded(name, x):
    """f(x), correctly rounded to x's dtype."""
    return OPS[name].forward(x, certify=("rounding", x.dtype)).round(x.dtype)[0]


def exp2(dy, x):
    y, c = rounded("exp2", x), x.dtype.type(np.log(2.0))
    return (dy * y) * c, dy * (y * c), (dy * c) * y


def sqrt(dy, x):
    y, half = rounded("sqrt", x), x.dtype.type(0.5)
    return dy / (2 * y), (half * dy) / y, dy * (half / y), (dy / y) * half


def rsqrt(dy, x):
    y, half = rounded("rsqrt", x), x.dtype.type(-0.5)
    last, first = (dy * (y * y * y)) * half, (half * dy) * (y * y * y)
    return (
        last,
        first,
        ((half * dy * y) * y) * y,
        dy * (half * (y * y * y)),
        (dy * y) * (y * y) * half,
    )


def reciprocal(dy, x):
    y = rounded("reciprocal", x)
    return -dy * (y * y), (-dy * y) * y


def silu(dy, x):
    s = rounded("sigmoid", x)
    factor = 1 + x * (1 - s)
    return (dy * s) * factor, dy * (s * factor)


def turns(cofunction, sign):
    def forms(dy, x):
        c, pi = x.dtype.type(sign) * rounded(cofunction, x), x.dtype.type(np.pi)
        return (dy * pi) * c, (dy * c) * pi, dy * (pi * c)

    return forms


FORMS = {
    "exp2": exp2,
    "silu": silu,
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "reciprocal": reciprocal,
    "sinpi": turns("cospi", 1.0),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_underflow_has_no_share_in_the_bounds_of_ordinary_gradients(dtype):
    """The other terms scale with dy."""
    rng = np.random.default_rng(0)
    dy, x = rng.standard_normal(SIZE).astype(dtype), rng.uniform(0.1, 0.9, SIZE).astype(dtype)
    for op in OPS.values():
        bound = op.backward_bound(dy, x, format=dtype)
        scaled = op.backward_bound(dy * dy.dtype.type(2.0**20), x, format=dtype)
        np.testing.assert_allclose(scaled / 2.0**20, bound, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "x", "form"),
    [
        ("reciprocal", 2.0**-10 * (1 - 2.0**-12), 1),
        ("sqrt", 2.0**-60, 1),
        ("rsqrt", 2.0**-40, 2),
        ("exp2", 100.0, 2),
        ("sinpi", 0.01, 1),
        ("silu", -95.0, 0),
    ],
)
def test_what_a_factor_makes_of_half_a_subnormal_is_allowed(name, x, form):
    """Each of these exceeds a slope with 4 ulp, one rounded product and half a subnormal."""
    x = np.float32([x])
    exceeded = 0
    for multiple in range(1, 40):
        dy = np.float32([multiple * (2.0**-149 if name != "silu" else 0.03)])
        got = FORMS[name](dy, x)[form]
        exact, bound = OPS[name].backward(dy, x), OPS[name].backward_bound(dy, x, format="float32")
        assert error_over_bound(got, exact, bound) <= 1.0
        slope = abs(float(np.asarray(exact)[0])) / float(dy[0])
        ulp = 2.0 ** max(np.floor(np.log2(slope)) - 23, -149)
        narrow = 4.0 * float(dy[0]) * ulp + 2.0**-24 * slope * float(dy[0]) + 2.0**-150
        exceeded += error_over_bound(got, exact, narrow) > 1.0
    assert exceeded > 0


def test_bounds_at_infinities_are_numbers_where_the_gradient_is_one():
    """A NaN of silu's at -inf is a mismatch, which an infinite bound would excuse."""
    x = np.array([-np.inf, np.inf, 0.0, 5e-324, 1e-200])
    checked = 0
    for name, op in OPS.items():
        for dy in (1.0, 0.0):
            exact = op.backward(np.full_like(x, dy), x)
            bound = op.backward_bound(np.full_like(x, dy), x, format="float64")
            finite = np.isfinite(exact.hi) & (np.abs(np.asarray(exact)) < 1e300)
            assert not np.isnan(bound[finite]).any(), name
            if name in ("silu", "sigmoid", "softplus", "tanh"):
                assert (bound[finite] < 1.0).all(), name
            checked += finite.sum()
    assert checked > 100
