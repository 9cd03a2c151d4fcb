"""The backward bound holds for every form of dy f'(x) that kernels use, also where its products
underflow: each operation is rounded to the working precision, y and other values correctly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from underflow_attack import EXAMPLES, Record, error_over_bound, numbers

from refkernels import elementary_ref, trig_ref
from refkernels.arithmetic import formats

OPS = {op.name: op for op in (*elementary_ref.OPS, *trig_ref.OPS)}
SIZE = 32


def rounded(name, x):
    """f(x), correctly rounded to x's dtype."""
    return OPS[name].forward(x, certify=("rounding", x.dtype)).round(x.dtype)[0]


def of_log(base):
    def forms(dy, x):
        c = x.dtype.type(np.log(base))
        return dy / (x * c), (dy / x) / c, (dy / c) / x, (dy * (1 / x)) * (1 / c)

    return forms


def exp2(dy, x):
    y, c = rounded("exp2", x), x.dtype.type(np.log(2.0))
    return (dy * y) * c, dy * (y * c), (dy * c) * y


def expm1(dy, x):
    y = rounded("expm1", x)
    return dy * (y + 1), dy * y + dy


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


def sigmoid(dy, x):
    y = rounded("sigmoid", x)
    return (dy * (1 - y)) * y, (dy * y) * (1 - y), dy * (y * (1 - y))


def silu(dy, x):
    s = rounded("sigmoid", x)
    factor = 1 + x * (1 - s)
    return (dy * s) * factor, dy * (s * factor)


def softplus(dy, x):
    e = rounded("exp", np.minimum(x, 40))
    return np.where(x > 40, dy, (dy * e) / (1 + e)), dy * rounded("sigmoid", x)


def turns(cofunction, sign):
    def forms(dy, x):
        c, pi = x.dtype.type(sign) * rounded(cofunction, x), x.dtype.type(np.pi)
        return (dy * pi) * c, (dy * c) * pi, dy * (pi * c)

    return forms


def bell(sign):
    def forms(dy, x):
        c, e = x.dtype.type(sign * 2 / np.sqrt(np.pi)), rounded("exp", -(x * x))
        return (dy * c) * e, dy * (c * e), (dy * e) * c

    return forms


FORMS = {
    "exp": lambda dy, x: (dy * rounded("exp", x),),
    "exp2": exp2,
    "expm1": expm1,
    "log": lambda dy, x: (dy / x, dy * (1 / x)),
    "log2": of_log(2.0),
    "log10": of_log(10.0),
    "log1p": lambda dy, x: (dy / (1 + x),),
    "sinh": lambda dy, x: (dy * rounded("cosh", x),),
    "cosh": lambda dy, x: (dy * rounded("sinh", x),),
    "tanh": lambda dy, x: (dy * (1 - rounded("tanh", x) * rounded("tanh", x)),),
    "sigmoid": sigmoid,
    "silu": silu,
    "softplus": softplus,
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "reciprocal": reciprocal,
    "erf": bell(1.0),
    "erfc": bell(-1.0),
    "sin": lambda dy, x: (dy * rounded("cos", x),),
    "cos": lambda dy, x: (dy * -rounded("sin", x),),
    "tan": lambda dy, x: (dy * (1 + rounded("tan", x) * rounded("tan", x)),),
    "asin": lambda dy, x: (dy / np.sqrt(1 - x * x), dy * (1 / np.sqrt(1 - x * x))),
    "acos": lambda dy, x: (-dy / np.sqrt(1 - x * x),),
    "atan": lambda dy, x: (dy / (1 + x * x),),
    "sinpi": turns("cospi", 1.0),
    "cospi": turns("sinpi", -1.0),
}
POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt"}


def drawn(rng, name, format):
    """dy from all over the format's range, and x: likewise, or where functions have their tails."""
    dy = numbers(rng, SIZE, format)
    width = rng.choice([2.0, 16.0, 110.0, 750.0])
    tails = formats.round_to(rng.uniform(-width, width, SIZE), format)
    x = tails if rng.random() < 0.5 else numbers(rng, SIZE, format)
    if name in ("asin", "acos"):
        x = x[np.abs(x) <= 1]
    elif name == "log1p":
        x = x[x > -1]
    elif name in POSITIVE:
        x = np.abs(x[x != 0])
    return dy[: x.size], x


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_no_form_exceeds_the_backward_bound(dtype):
    format, record = formats.get(dtype), Record()
    kind = formats.working_format(format).storage

    @settings(max_examples=EXAMPLES)
    @given(st.integers(0, 2**32 - 1))
    def hunt(seed):
        rng = np.random.default_rng(seed)
        for name, forms in FORMS.items():
            dy, x = drawn(rng, name, format)
            exact = OPS[name].backward(dy, x)
            bound = OPS[name].backward_bound(dy, x, format=format)
            with np.errstate(all="ignore"):
                for place, got in enumerate(forms(dy.astype(kind), x.astype(kind))):
                    of = got.astype(format.storage), exact, bound
                    record.add((name, str(place)), seed, *of)

    hunt()
    assert {name for name, _ in record.largest} == set(FORMS)
    record.tell(len(record.largest))


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
