"""Every enclosure holds the exact value, for any finite input; the questions are answered."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hunting import HUNT
from hypothesis import given, settings
from hypothesis import strategies as st

from refkernels import matmul_ref
from refkernels.arithmetic import formats
from refkernels.kernels.products import dot2
from refkernels.matmul_ref.ill_conditioned import ill_conditioned_dot

DTYPES = ("float16", "bfloat16", "float32", "float64")


def exact_product(a, b):
    """a @ b as a nested list of Fractions, 2-d."""
    rows = [[Fraction(float(v)) for v in row] for row in a.astype(np.float64)]
    columns = [[Fraction(float(v)) for v in column] for column in b.astype(np.float64).T]
    return [
        [sum((x * y for x, y in zip(r, c, strict=True)), Fraction(0)) for c in columns]
        for r in rows
    ]


def assert_encloses(enclosure, truth):
    checked = 0
    for i, row in enumerate(truth):
        for j, value in enumerate(row):
            assert enclosure.contains((i, j), value), (i, j, float(enclosure.hi[i, j]))
            checked += 1
    assert checked == enclosure.size


@st.composite
def operands(draw, dtype):
    """Adversarial: exponents over any part of the range, subnormals, zeros, cancelled halves."""
    format = formats.get(dtype)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    m, n = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    k = draw(st.sampled_from([1, 2, 3, 7, 40, 129, 300]))
    lowest = format.emin - format.p
    low = draw(st.integers(lowest, format.emax))
    high = draw(st.integers(low, min(format.emax, low + draw(st.sampled_from([0, 5, 60, 3000])))))

    def matrix(shape, low, high):
        values = np.ldexp(rng.uniform(-1, 1, shape), rng.integers(low, high + 1, shape))
        values[rng.random(shape) < 0.1] = 0.0
        return formats.round_to(values, format)

    independent = draw(st.booleans())
    a = matrix((m, k), low, high)
    b = matrix((k, n), lowest, format.emax) if independent else matrix((k, n), low, high)
    if draw(st.booleans()):
        a, b = np.concatenate([a, a[:, ::-1]], axis=1), np.concatenate([b, -b[::-1]])
        if draw(st.booleans()):
            a[0, 0] = format.min_subnormal
    return a, b


@pytest.mark.parametrize("dtype", DTYPES)
def test_enclosures_contain_the_exact_product(dtype):
    @settings(max_examples=30 * HUNT)
    @given(operands(dtype))
    def hunt(pair):
        a, b = pair
        assert_encloses(matmul_ref.forward(a, b), exact_product(a, b))

    hunt()


@pytest.mark.parametrize("dtype", DTYPES)
def test_asked_for_roundings_are_right_certified_and_zeros_are_exact(dtype):
    @settings(max_examples=20 * HUNT)
    @given(operands(dtype))
    def hunt(pair):
        a, b = pair
        truth = exact_product(a, b)
        answer = matmul_ref.forward(a, b, certify=("rounding", dtype))
        assert_encloses(answer, truth)
        values, certified = answer.round(dtype)
        for index in np.argwhere(~certified):
            assert dtype == "float64"
            assert_almost_a_tie(values[tuple(index)], truth[index[0]][index[1]])
        for index in np.ndindex(answer.shape):
            value = truth[index[0]][index[1]]
            assert bool(answer.exact_zero[index]) == (value == 0)
            assert_is_nearest(values[index], value, formats.get(dtype))

    hunt()


def assert_almost_a_tie(rounded, exact):
    """Within 2^-104 of a midpoint of float64, which no hi, lo and radius can tell from it."""
    neighbours = [np.nextafter(rounded, toward) for toward in (-np.inf, np.inf)]
    midpoints = [(Fraction(float(rounded)) + Fraction(float(n))) / 2 for n in neighbours]
    assert min(abs(exact - midpoint) for midpoint in midpoints) <= abs(exact) / 2**104


def test_the_rounding_is_right_even_where_a_near_tie_cannot_be_certified():
    for tail, wanted in ((2.0**-200, 1 + 2.0**-52), (-(2.0**-200), 1.0)):
        a, b = np.ones(3), np.array([1.0, 2.0**-53, tail])
        answer = matmul_ref.forward(a, b, certify=("rounding", "float64"))
        assert answer.hi == wanted
        assert answer.contains((), 1 + Fraction(1, 2**53) + Fraction(tail))


def assert_is_nearest(got, exact, format):
    """No neighbour of `got` in the format is closer to the rational."""
    if not np.isfinite(np.float64(got)):
        assert abs(exact) >= Fraction(format.max) + Fraction(format.max) * Fraction(format.u) / 2
        return
    step = Fraction(format.min_subnormal)
    if got != 0:
        exponent = max(math.frexp(float(got))[1] - 1, format.emin)
        step = Fraction(2) ** (exponent - format.p + 1)
    assert abs(Fraction(float(got)) - exact) <= step / 2


@pytest.mark.parametrize("condition", [1e2, 1e8, 1e14, 1e30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ill_conditioned_products_are_enclosed_and_answered_to_a_hundredth_of_an_ulp(
    dtype, condition
):
    x, y = ill_conditioned_dot(np.random.default_rng(0), 200, 4, condition, dtype)
    a = x[None, :]
    answer = matmul_ref.forward(a, y, certify=("ulp", dtype, 0.01))
    assert_encloses(answer, exact_product(a, y))
    assert (answer.uncertainty(dtype) <= 0.01).all()


def test_the_radius_is_small_without_any_question():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((5, 700)), rng.standard_normal((700, 6))
    assert (matmul_ref.forward(a, b).radius <= 2.0**-96 * (np.abs(a) @ np.abs(b))).all()


def test_what_float64_adds_exactly_has_radius_zero():
    rng = np.random.default_rng(3)
    a = rng.integers(-1000, 1000, (7, 500)).astype(np.float64)
    b = rng.integers(-1000, 1000, (500, 9)).astype(np.float32)
    answer = matmul_ref.forward(a, b)
    assert (answer.radius == 0).all()
    assert (answer.hi == a.astype(np.int64) @ b.astype(np.int64)).all()


def test_products_beyond_the_range_of_float64_are_enclosed_with_a_scale():
    a, b = np.array([[1e308, 1e308]]), np.array([[1e308], [3.0]])
    answer = matmul_ref.forward(a, b)
    assert_encloses(answer, exact_product(a, b))
    assert answer.scale[0, 0] != 0
    tiny = np.array([[5e-324, 5e-324]])
    answer = matmul_ref.forward(tiny, tiny.T)
    assert_encloses(answer, exact_product(tiny, tiny.T))
    assert answer.hi[0, 0] > 0


def test_a_row_that_spans_the_whole_range_is_enclosed():
    a = np.array([[1.7e308, 5e-324, -2e-308, 1.0]])
    b = np.array([[0.0, 1.0], [1.7e308, 5e-324], [5e-324, 1.7e308], [0.0, -0.0]])
    for certify in ("enclosure", ("rounding", "float64")):
        assert_encloses(matmul_ref.forward(a, b, certify=certify), exact_product(a, b))


def test_special_values_follow_the_extended_reals():
    inf, nan = math.inf, math.nan
    table = [
        ([inf, 1.0], [1.0, 1.0], inf),
        ([inf, 1.0], [-1.0, 1.0], -inf),
        ([inf, 1.0], [0.0, 1.0], nan),
        ([0.0, 1.0], [-inf, 1.0], nan),
        ([inf, inf], [1.0, -1.0], nan),
        ([inf, 1.0], [1.0, -inf], nan),
        ([inf, 1.0], [inf, 2.0], inf),
        ([inf, 1.0], [-inf, 2.0], -inf),
        ([nan, 1.0], [0.0, 1.0], nan),
        ([1.0, inf], [nan, 1.0], nan),
        ([1e308, inf], [-1e308, 1.0], inf),
        ([5e-324, inf], [-5e-324, -5e-324], -inf),
    ]
    for a, b, wanted in table:
        answer = matmul_ref.forward(np.array(a), np.array(b), certify=("rounding", "float64"))
        assert np.array_equal(answer.hi, wanted, equal_nan=True), (a, b)
        assert answer.radius == 0
        assert answer.lo == 0


def test_finite_products_that_overflow_are_no_infinity():
    answer = matmul_ref.forward(np.array([1e308, 1e308]), np.array([1e308, -1e308]))
    assert answer.contains((), 0)


def test_mixed_dtypes_are_taken_exactly():
    a = np.array([[0.1, 3.0]], np.float32)
    b = np.array([[0.1], [-0.5]], ml_dtypes.bfloat16)
    c = np.array([[0.1], [-0.5]], np.float64)
    for right in (b, c):
        assert_encloses(matmul_ref.forward(a, right), exact_product(a, right))


def test_linear_adds_the_bias_exactly():
    rng = np.random.default_rng(8)
    x, weight = rng.standard_normal((3, 40)), rng.standard_normal((5, 40))
    bias = np.array([1e300, -1e-300, 0.0, 1.0, 5e-324])
    truth = exact_product(x, weight.T)
    truth = [[v + Fraction(float(b)) for v, b in zip(r, bias, strict=True)] for r in truth]
    assert_encloses(matmul_ref.linear(x, weight, bias), truth)
    assert_encloses(matmul_ref.linear(x, weight), exact_product(x, weight.T))


@pytest.mark.parametrize("power", [-320, -700, -1060, -1500])
@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32"])
def test_a_product_beside_a_narrower_midpoint_is_certified_however_near(format, power):
    """Two terms cancel and spoil the fast tier; only the exact one sees 2^power."""
    step = 2.0 ** (1 - formats.get(format).p)
    half = power // 2
    a = np.array([[1.0 + step / 2, 1.0 / 3.0, -1.0 / 3.0, sign * 2.0**half] for sign in (1, -1)])
    b = np.array([[1.0], [1.0 / 7.0], [1.0 / 7.0], [2.0 ** (power - half)]])
    value, certified = matmul_ref.forward(a, b, certify=("rounding", format)).round(format)
    assert certified.all()
    assert value.ravel().tolist() == [1.0 + step, 1.0]


def test_a_product_beside_a_float64_midpoint_is_certified():
    """hi and lo have no bits for 1 + 2^-53 ± 2^-200, but the interval ends at the midpoint."""
    a = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]])
    b = np.array([[1.0], [2.0**-53], [2.0**-200]])
    question = ("rounding", "float64")
    value, certified = matmul_ref.forward(a, b, certify=question).round("float64")
    assert value.ravel().tolist() == [1.0 + 2.0**-52, 1.0]
    assert certified.all()


@pytest.mark.parametrize(
    "blocks", [[[1.0], [2.0**-60], [2.0**-130]], [[1.0], [2.0**-60, 2.0**-130]]]
)
def test_the_rounding_where_blocks_are_folded_is_in_the_radius(blocks):
    """Each block is exact by itself: only adding their low parts, or a low part and what the sum of
    the high parts leaves, is rounded."""
    terms = np.zeros((1, dot2.BLOCK * len(blocks)))
    for k, block in enumerate(blocks):
        terms[0, dot2.BLOCK * k : dot2.BLOCK * k + len(block)] = block
    answer = matmul_ref.forward(terms, np.ones((terms.size, 1)))
    exact = sum(Fraction(value) for block in blocks for value in block)
    assert answer.radius[0, 0] > 0.0
    assert answer.contains((0, 0), exact)


def test_a_radius_that_underflows_with_its_product_is_rounded_up():
    """(1 + 2^-60 + 2^-130) 2^-970: hi and lo fit float64, the radius of 2^-1100 does not."""
    terms = np.zeros((1, 2 * dot2.BLOCK + 1))
    terms[0, :: dot2.BLOCK] = np.ldexp([1.0, 2.0**-60, 2.0**-130], -485)
    answer = matmul_ref.forward(terms, np.full((terms.size, 1), 2.0**-485))
    assert answer.scale[0, 0] == 0
    assert answer.contains((0, 0), sum(Fraction(2) ** (k - 970) for k in (0, -60, -130)))
