"""The LayerNorm oracle against truths that share no code with it: Fraction and Arb."""

from fractions import Fraction

import flint
import ml_dtypes
import numpy as np
import pytest
from hunting import HUNT
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from refkernels import layernorm_ref

DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)


@pytest.fixture(autouse=True)
def _precision():
    before = flint.ctx.prec
    flint.ctx.prec = 20000
    yield
    flint.ctx.prec = before


def fractions(values):
    return [Fraction(float(value)) for value in np.ravel(values)]


def arb(value):
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def holds(enclosure, index, exact):
    """Whether the interval of one element meets Arb's tight ball around the exact value."""
    lower, upper = enclosure.lower_upper(index)
    return not (arb(lower) > exact or arb(upper) < exact)


def statistics(row, eps):
    values = fractions(row)
    mean = sum(values) / len(values)
    d = [value - mean for value in values]
    return mean, d, sum(x * x for x in d) / len(d) + Fraction(eps)


def check_forward(x, weight, bias, eps, certify="enclosure"):
    got = layernorm_ref.forward(x, weight, bias, eps=eps, certify=certify)
    g = fractions(weight) if weight is not None else [Fraction(1)] * x.shape[1]
    b = fractions(bias) if bias is not None else [Fraction(0)] * x.shape[1]
    for i, row in enumerate(x):
        mean, d, total = statistics(row, eps)
        assert got.mean.contains(i, mean)
        if total == 0:
            assert np.isposinf(got.rstd.hi[i])
            assert np.isnan(got.y.hi[i]).all()
            continue
        root = arb(total).sqrt()
        assert holds(got.rstd, i, 1 / root)
        for j in range(x.shape[1]):
            assert holds(got.y, (i, j), arb(d[j] * g[j]) / root + arb(b[j])), (i, j)


def check_backward(dy, x, weight, eps, certify="enclosure"):
    got = layernorm_ref.backward(dy, x, weight, eps=eps, certify=certify)
    g = fractions(weight) if weight is not None else [Fraction(1)] * x.shape[1]
    n = x.shape[1]
    columns = [flint.arb(0)] * n
    undefined = False
    for i, row in enumerate(x):
        _, d, total = statistics(row, eps)
        t = [p * q for p, q in zip(fractions(dy[i]), g, strict=True)]
        if total == 0:
            undefined = True
            assert np.isnan(got.dx.hi[i]).all()
            continue
        root = arb(total).sqrt()
        a = sum(t) / n
        moment = sum(p * q for p, q in zip(t, d, strict=True)) / n
        for j in range(n):
            z = t[j] - a - d[j] * moment / total
            assert holds(got.dx, (i, j), arb(z) / root), (i, j)
            columns[j] += arb(Fraction(float(dy[i, j])) * d[j]) / root
    for j in range(n):
        assert got.dbias.contains(j, sum(fractions(dy[:, j])))
        if undefined:
            assert np.isnan(got.dweight.hi[j])
        else:
            assert holds(got.dweight, j, columns[j]), j


@st.composite
def row_values(draw, rows, n, dtype):
    """Rows of one character each: ordinary, shifted, near constant, mixed, tiny, huge."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    info = ml_dtypes.finfo(dtype)
    out = np.empty((rows, n))
    for i in range(rows):
        kind = draw(st.sampled_from(["normal", "shifted", "near", "mixed", "tiny", "huge", "few"]))
        z = rng.standard_normal(n)
        if kind == "normal":
            out[i] = z
        elif kind == "shifted":
            out[i] = z + 10.0 ** draw(st.integers(0, 8))
        elif kind == "near":
            out[i] = 1.0 + float(info.eps) * rng.integers(0, 3, n)
        elif kind == "mixed":
            exponents = rng.uniform(np.log2(float(info.smallest_subnormal)), info.maxexp - 1, n)
            out[i] = np.sign(z) * 2.0**exponents
        elif kind == "tiny":
            out[i] = float(info.smallest_subnormal) * rng.integers(-3, 4, n)
        elif kind == "huge":
            out[i] = float(info.max) * rng.uniform(-1, 1, n)
        else:
            out[i] = rng.integers(-2, 3, n)
    top = float(info.max)
    return np.clip(out, -top, top).astype(dtype)


@st.composite
def problems(draw):
    dtype = draw(st.sampled_from(DTYPES))
    rows, n = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    x = draw(row_values(rows, n, dtype))
    dy = draw(row_values(rows, n, draw(st.sampled_from(DTYPES))))
    affine = draw(st.booleans())
    weight = draw(row_values(1, n, dtype))[0] if affine else None
    bias = draw(row_values(1, n, dtype))[0] if affine else None
    eps = draw(st.sampled_from([0.0, 1e-300, 1e-12, 1e-5, 0.1, 0.25, 1e300]))
    # copies of binary64's smallest number, without eps, stay unknown
    assume(eps > 0.0 or not (np.abs(x).astype(np.float64) == 2.0**-1074).all(axis=1).any())
    return x, weight, bias, dy, eps


QUESTIONS = st.sampled_from(["enclosure", ("rounding", "float32"), ("rounding", "float64")])


@settings(max_examples=40 * HUNT)
@given(problems(), QUESTIONS)
def test_no_exact_value_escapes_forward(problem, question):
    x, weight, bias, _, eps = problem
    check_forward(x, weight, bias, eps, question)


@settings(max_examples=30 * HUNT)
@given(problems(), QUESTIONS)
def test_no_exact_value_escapes_backward(problem, question):
    x, weight, _, dy, eps = problem
    check_backward(dy, x, weight, eps, question)


@settings(max_examples=20 * HUNT)
@given(problems())
def test_every_rounding_to_float32_is_certified(problem):
    x, weight, bias, dy, eps = problem
    question = ("rounding", "float32")
    # less than 2^-1074 beside a midpoint (eps = 0.1, rows of 1e308) no pair of float64 can tell
    assume(x.dtype != np.float64 and (eps == 0.0 or 1e-12 <= eps <= 1.0))
    outputs = layernorm_ref.forward(x, weight, bias, eps=eps, certify=question)
    outputs += layernorm_ref.backward(dy, x, weight, eps=eps, certify=question)
    for enclosure in outputs:
        assert enclosure.round("float32")[1].all()


def test_long_shifted_row_is_enclosed():
    rng = np.random.default_rng(1)
    x = (1e8 + rng.standard_normal((1, 300))).astype(np.float64)
    flint.ctx.prec = 2000
    check_forward(x, None, None, 1e-5)
    check_backward(rng.standard_normal(x.shape), x, rng.standard_normal(300), 0.0)


def test_radii_of_ordinary_rows_are_far_below_float64():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((8, 768))
    got = layernorm_ref.forward(x)
    assert (got.y.radius <= 2.0**-90).all()
    assert (got.rstd.radius <= 2.0**-90).all()
    back = layernorm_ref.backward(rng.standard_normal(x.shape), x)
    assert (back.dx.radius <= 2.0**-90).all()


def test_rational_ties_and_zeros_are_decided():
    # var = 1, eps = 3: rstd = 1/2, so y = d * w / 2 + b is a midpoint of binary64 here
    x = np.array([[-1.0, 1.0]])
    bias = np.array([1.0, 1.0])
    weight = np.array([2.0**-52, 2.0**-52])
    got = layernorm_ref.forward(x, weight, bias, eps=3.0, certify=("rounding", "float64"))
    values, certified = got.y.round("float64")
    assert certified.all()
    np.testing.assert_array_equal(values, [[1.0 - 2.0**-53, 1.0]])


def test_weight_gradient_zero_across_square_classes_is_decided():
    # rows 1 and 2 have rstd in the class of sqrt(2), row 3 and 4 in that of 1
    x = np.array([[0.0, 1, 2, 1], [0.0, 2, 4, 2], [1.0, -1, 1, -1], [3.0, -3, 3, -3]])
    dy = np.array([[1.0, 1, 1, 1], [-1.0, 1, -1, 1], [1.0, 1, 1, 1], [-1.0, 1, -1, -1]])
    got = layernorm_ref.backward(dy, x, eps=0.0, certify=("rounding", "float64"))
    assert got.dweight.exact_zero[[0, 2, 3]].all()
    assert got.dweight.hi[1] == -2.0
    assert got.dweight.round("float64")[1].all()


def test_value_1e_minus_298_beside_a_midpoint_is_decided():
    # xhat = 1 - 1e-299 or so: dweight is just below the midpoint 1 + 2^-24 of binary32
    x = np.array([[-1.0, 1.0], [-2.0, 2.0]])
    dy = np.array([[1.0, 1.0], [2.0**-24, 2.0**-24]])
    got = layernorm_ref.backward(dy, x, eps=1e-298, certify=("rounding", "float32"))
    values, certified = got.dweight.round("float32")
    assert certified.all()
    np.testing.assert_array_equal(values, np.float32([-1.0, 1.0]))
    odd = np.array([[1.0, 1.0 + 2.0**-23], [2.0**-24, 2.0**-24]])
    got = layernorm_ref.backward(odd, x, eps=1e-298, certify=("rounding", "float32"))
    values, certified = got.dweight.round("float32")
    assert certified.all()
    assert values[1] == np.float32(1.0 + 2.0**-23)  # ties to even would give 1 + 2^-22


def test_seed_row_gives_the_published_values():
    x = np.array([-1.83965693, -1.82964566], np.float32).reshape(1, 1, 1, 2)
    got = layernorm_ref.forward(x, eps=1e-5, normalized_shape=(1, 1, 2))
    np.testing.assert_array_equal(np.round(got.y.hi.ravel(), 10), [-0.8454271584, 0.8454271584])
    back = layernorm_ref.backward(
        np.ones_like(x), x, normalized_shape=(1, 1, 2), certify=("rounding", "float32")
    )
    assert back.dx.exact_zero.all()
    uneven = layernorm_ref.backward(
        np.array([1.0, 3.0]), x.reshape(2), eps=0.0, certify=("rounding", "float32")
    )
    assert uneven.dx.exact_zero.all()


@pytest.mark.parametrize("power", [-600, -420, -300, -201, -199, 199, 201, 300, 420, 600])
def test_nothing_escapes_on_either_side_of_the_fast_tiers_range(power):
    """x, weight, bias and dy at 2^power each, and all together: inside, products of two numbers
    from [2^-200, 2^200] are safe; outside, they underflow or overflow."""
    plain = np.array([[1.0, 1.1, -0.3], [3.0, 1.0 / 3.0, 7.0]])
    far = np.ldexp(plain, power)
    weight, bias = np.array([1.0 / 7.0, -1.5, 1.1]), np.array([0.1, 1.0, -3.0])
    moved_weight, moved_bias = np.ldexp(weight, power), np.ldexp(bias, power)
    for x in (plain, far):
        for eps in (0.0, 1e-5, 2.0 ** min(2 * power, 1000)):
            check_forward(x, moved_weight, moved_bias, eps)
            check_forward(x, moved_weight, bias, eps)
            check_backward(far[::-1], x, moved_weight, eps)
            check_backward(far[::-1], x, weight, eps)


def test_gradients_of_shifted_rows_along_a_nearly_constant_cotangent_are_enclosed():
    """There the error of the mean enters dx through sum(t d) alone: the gradient itself is tiny."""
    rng = np.random.default_rng(17)
    x = 2.0**40 + rng.standard_normal((12, 3))
    dy = 1.0 + 2.0**-40 * rng.standard_normal((12, 3))
    check_backward(dy, x, None, 1e-5)
