"""Each tier is right by itself, and the tiers agree."""

from fractions import Fraction

import numpy as np
import pytest
from hunting import HUNT
from hypothesis import given, settings
from hypothesis import strategies as st

from refkernels import matmul_ref
from refkernels.arithmetic import tiers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Question
from refkernels.kernels.products import dot2, exact, gemm, slices
from refkernels.kernels.products.lines import Lines

AT = np.zeros(1, np.int64), np.zeros(1, np.int64)
NO_QUESTION = Question("enclosure")


def float64_tier(a, b, exact_products=False):
    hi, radius, _ = gemm.enclosed(a[None], b[None], AT, exact_products, NO_QUESTION)
    return Enclosure(hi[0], 0.0, radius[0])


def lines(a, b):
    return Lines.of(a[None]), Lines.of(b.T[None])


def slices_tier(a, b, exact_products=False):
    return Enclosure(*(part[0] for part in slices.dot_products(*lines(a, b), AT)))


def dot2_tier(a, b, exact_products=False):
    parts = dot2.dot_products(*lines(a, b), AT, exact_products)
    return Enclosure(*(part[0] for part in parts))


def chosen_tier(a, b, exact_products=False):
    i, j = (x.ravel() for x in np.indices((len(a), b.shape[1])))
    zero = np.zeros_like(i)
    parts = dot2.chosen_dot_products(*lines(a, b), (zero, i, zero, j), exact_products)
    return Enclosure(*(part.reshape(len(a), -1) for part in parts))


def exact_tier(a, b, exact_products=False):
    everything = np.arange(len(a) * b.shape[1])
    return exact.dot_products(a[None], b[None], AT, everything).reshape(len(a), b.shape[1])


TIERS = (float64_tier, slices_tier, dot2_tier, chosen_tier, exact_tier)


def fraction_dot(x, y):
    return sum((Fraction(float(p)) * Fraction(float(q)) for p, q in zip(x, y, strict=True)), 0)


def assert_encloses(enclosure, a, b, indices):
    for i, j in indices:
        assert enclosure.contains((i, j), Fraction(fraction_dot(a[i], b[:, j]))), (i, j)


@st.composite
def in_range(draw, narrow):
    """Operands in the range of all tiers: wide rows, cancelled halves, zeros, tiny and huge."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.sampled_from([1, 2, 3, 31, 32, 33, 70, 129, 300]))
    lowest, highest = (-149, 127) if narrow else (-419, 478)
    low = draw(st.integers(lowest, highest))
    high = draw(st.integers(low, min(highest, low + draw(st.sampled_from([0, 5, 60, 1000])))))

    def matrix(shape):
        values = np.ldexp(rng.uniform(0.5, 1, shape), rng.integers(low, high + 1, shape))
        values *= rng.choice([-1.0, 1.0], shape)
        values[rng.random(shape) < draw(st.sampled_from([0.0, 0.1, 0.9]))] = 0.0
        return values.astype(np.float32).astype(np.float64) if narrow else values

    a, b = matrix((3, k)), matrix((k, 5))
    if draw(st.booleans()):
        a, b = np.concatenate([a, a[:, ::-1]], axis=1), np.concatenate([b, -b[::-1]])
    return a, b


@pytest.mark.parametrize("narrow", [True, False], ids=["float32", "float64"])
@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.__name__)
def test_every_tier_encloses_whatever_is_in_range(tier, narrow):
    @settings(max_examples=20 * HUNT)
    @given(in_range(narrow))
    def hunt(pair):
        assert_encloses(tier(*pair, narrow), *pair, [(j % 3, j) for j in range(5)])

    hunt()


@pytest.mark.parametrize("narrow", [True, False], ids=["float32", "float64"])
def test_the_tiers_agree_in_every_element_of_a_problem_of_many_tiles(narrow):
    rng = np.random.default_rng(1)
    power = rng.integers(-9, 9, 300)
    a, b = rng.standard_normal((140, 300)) * 2.0**power, rng.standard_normal((300, 1050))
    b *= 2.0 ** -power[:, None]
    if narrow:
        a, b = (x.astype(np.float32).astype(np.float64) for x in (a, b))
    answers = [tier(a, b, narrow) for tier in (float64_tier, slices_tier, dot2_tier, chosen_tier)]
    reference = answers[2]
    for answer in answers:
        apart = np.abs((answer.hi - reference.hi) + (answer.lo - reference.lo))
        assert (apart <= (answer.radius + reference.radius) * (1 + 1e-6)).all()
        places = rng.integers(0, (140, 1050), (40, 2))
        assert_encloses(answer, a, b, [tuple(index) for index in places])
    for part in ("hi", "lo", "radius"):
        assert (getattr(answers[2], part) == getattr(answers[3], part)).all()


def test_no_tier_is_wider_than_its_theory_allows():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((64, 1024)), rng.standard_normal((1024, 64))
    norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)
    roundings = 1024 / gemm._chunks(1024)[0].stop + gemm._chunks(1024)[0].stop
    assert (float64_tier(a, b).radius <= roundings * 2.0**-53 * norms).all()
    assert (slices_tier(a, b).radius <= 2.0**-92 * norms).all()
    assert (dot2_tier(a, b).radius <= 2.0**-95 * norms).all()


def counts(call):
    with tiers.counted() as tally:
        answer = call()
    assert sum(tally.values()) == answer.size
    return tally, answer


def float32_operands(seed, shape=(80, 500, 90)):
    rng = np.random.default_rng(seed)
    m, k, n = shape
    return (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))


def test_float32_questions_are_answered_in_float64_and_all_others_by_dot2():
    a, b = float32_operands(3)
    for certify in (("ulp", "float32", 0.001), ("rounding", "float32"), ("rounding", "bfloat16")):
        tally, answer = counts(lambda certify=certify: matmul_ref.forward(a, b, certify=certify))
        assert tally["float64"] > 0.9 * answer.size
        assert set(tally) <= {"float64", "double_double"}
        assert not Question.parse(certify).undecided(answer).any()
    tally, _ = counts(lambda: matmul_ref.forward(a, b))
    assert set(tally) == {"float64"}


def test_float64_operands_are_never_judged_by_one_float64_product():
    a, b = (x.astype(np.float64) / 3.0 for x in float32_operands(4))
    for certify in ("enclosure", ("rounding", "float64"), ("ulp", "float64", 1e-6)):
        tally, _ = counts(lambda certify=certify: matmul_ref.forward(a, b, certify=certify))
        assert set(tally) == {"slices"}
    tally, _ = counts(lambda: matmul_ref.forward(a[:2], b))
    assert set(tally) == {"double_double"}


def test_ill_conditioned_rows_go_on_to_dot2_and_to_integers():
    a, b = (x.astype(np.float64) / 3.0 for x in float32_operands(5))
    question = ("rounding", "float64")
    a[3] = np.concatenate([a[3, :250], -a[3, 249::-1]])
    b[250:] = b[249::-1]
    tally, answer = counts(lambda: matmul_ref.forward(a, b, certify=question))
    assert tally["exact"] == 90  # nothing else sees that row 3 is exactly zero
    assert answer.exact_zero[3].all()
    a[3, 0] += 2.0**-38
    tally, answer = counts(lambda: matmul_ref.forward(a, b, certify=question))
    assert tally["double_double"] > 0
    assert answer.round("float64")[1].all()
    assert_encloses(answer, a, b, [(3, j) for j in range(90)])
    a[3] = np.ldexp(a[3], np.tile([200, -200, 0, 150, -150], 100))
    a[3, 250:] = -a[3, 249::-1]
    a[3, 249] = 1e-70
    tally, answer = counts(lambda: matmul_ref.forward(a, b, certify=question))
    assert tally["exact"] > 0
    assert_encloses(answer, a, b, [(3, j) for j in range(90)])


def test_where_float64_leaves_many_open_slices_answer_all():
    a, b = float32_operands(6)
    question = ("ulp", "float32", 1e-9)
    tally, answer = counts(lambda: matmul_ref.forward(a, b, certify=question))
    assert tally["slices"] > 0.9 * answer.size
    assert "float64" not in tally
    assert (answer.uncertainty("float32") <= 1e-9).all()


def test_gradients_and_linear_layers_take_the_same_tiers():
    rng = np.random.default_rng(7)
    x, weight, bias, dy = (
        rng.standard_normal(s).astype(np.float32)
        for s in ((5, 40, 200), (90, 200), (90,), (5, 40, 90))
    )
    question = ("rounding", "float32")
    tally, y = counts(lambda: matmul_ref.linear(x, weight, bias, certify=question))
    assert tally["float64"] > 0.9 * y.size
    flat, wide = x.reshape(-1, 200).astype(np.float64), weight.T.astype(np.float64)
    for i, j in rng.integers(0, (200, 90), (30, 2)):
        truth = Fraction(fraction_dot(flat[i], wide[:, j])) + Fraction(float(bias[j]))
        assert y.contains((i // 40, i % 40, j), truth)
    with tiers.counted() as tally:
        gradients = matmul_ref.linear_backward(dy, x, weight, bias, certify=question)
    assert sum(tally.values()) == sum(each.size for each in gradients)
    assert tally["float64"] > 0.9 * (gradients.dx.size + gradients.dweight.size)
    slopes = dy.reshape(-1, 90).astype(np.float64)
    places = [tuple(index) for index in rng.integers(0, (90, 200), (30, 2))]
    assert_encloses(gradients.dweight, slopes.T, flat, places)


def test_batches_of_products_find_their_own_operands_in_every_tier():
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((3, 1, 70, 130)), rng.standard_normal((2, 130, 60))
    for dtype, certify in (("float32", ("ulp", "float32", 1e-4)), ("float64", "enclosure")):
        left, right = a.astype(dtype), b.astype(dtype)
        answer = matmul_ref.forward(left, right, certify=certify)
        for p, q in np.ndindex(3, 2):
            places = [tuple(index) for index in rng.integers(0, (70, 60), (8, 2))]
            assert_encloses(answer[p, q], left[p, 0], right[q], places)


def test_special_values_are_kept_apart_in_large_products():
    a, b = float32_operands(9)
    clean = matmul_ref.forward(a, b)
    a, b = a.copy(), b.copy()
    a[7, 3], b[9, 11], b[10, 12] = np.nan, np.inf, -np.inf
    answer = matmul_ref.forward(a, b, certify=("rounding", "float32"))
    touched = np.zeros(answer.shape, bool)
    touched[7], touched[:, 11], touched[:, 12] = True, True, True
    assert not np.isfinite(answer.hi[touched]).any()
    assert (answer.radius[touched] == 0).all()
    apart = np.abs(answer.hi - clean.hi)[~touched]
    assert (apart <= (answer.radius + clean.radius)[~touched] * (1 + 1e-6)).all()


def test_bounds_and_conditions_of_large_products_are_those_of_small_ones():
    a, b = float32_operands(11)
    whole = matmul_ref.forward_bound(a, b, format="float32")
    condition = matmul_ref.forward_condition(a, b)
    for i in (0, 1, 79):
        row = a[i : i + 1]
        np.testing.assert_allclose(
            matmul_ref.forward_bound(row, b, format="float32")[0], whole[i], 1e-12
        )
        np.testing.assert_allclose(matmul_ref.forward_condition(row, b)[0], condition[i], 2.0**-7)
    with tiers.counted() as tally:
        matmul_ref.forward_bound(a, b, format="bfloat16")
    assert not tally  # what a bound needs to know is not an answer of the oracle
