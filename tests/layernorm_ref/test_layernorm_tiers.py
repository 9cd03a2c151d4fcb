"""The tiers of LayerNorm: each is forced, they agree with one another and with exact rationals."""

import tracemalloc
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
from hunting import HUNT
from hypothesis import given, settings
from test_layernorm_oracle import check_backward, check_forward, problems

from refkernels import layernorm_ref
from refkernels.arithmetic import tiers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Question
from refkernels.kernels.rows import lanes, screening
from refkernels.layernorm_ref import first_tier
from refkernels.layernorm_ref.formulas import FORMULAS

SHAPES = [(1, 1), (3, 2), (17, 3), (2, 64), (33, 65), (5, 129), (70, 300), (2, 3000)]


@pytest.fixture
def first_tier_alone(monkeypatch):
    """The float64 tier's answers, however wide they are."""
    monkeypatch.setattr(first_tier, "_POOR", 2.0**60)


def rows_of(kind, rng, shape):
    """float32 rows of one character each."""
    z = rng.standard_normal(shape)
    if kind == "shifted":
        z = z + 10.0 ** rng.integers(0, 8, (shape[0], 1))
    elif kind == "near":
        z = 1.0 + 2.0**-23 * rng.integers(0, 3, shape)
    elif kind == "mixed":
        z = np.sign(z) * 2.0 ** rng.uniform(-149, 127, shape)
    elif kind == "tiny":
        z = 2.0**-149 * rng.integers(-3, 4, shape)
    elif kind == "huge":
        z = 3.4e38 * rng.uniform(-1, 1, shape)
    elif kind == "few":
        z = rng.integers(-2, 3, shape).astype(np.float64)
    elif kind == "outlier":
        z[:, 0] *= 1e12
    return z.astype(np.float32)


KINDS = ("normal", "shifted", "near", "mixed", "tiny", "huge", "few", "outlier")


def assert_meet(first, second):
    """Two enclosures of one value, element by element, in float64 with a margin for that."""
    assert first.shape == second.shape
    np.testing.assert_array_equal(np.isnan(first.hi), np.isnan(second.hi))
    with np.errstate(all="ignore"):
        hi, lo, radius = (np.ldexp(p, second.scale) for p in (second.hi, second.lo, second.radius))
        apart = np.abs((first.hi - hi) + (first.lo - lo))
        # hi - hi is exact where the two are close; lo and radii are rounded, to 2^-52 of themselves
        reach = (first.radius + radius) * (1.0 + 2.0**-50) + 2.0**-104 * np.abs(hi) + 2.0**-1073
        meets = (apart <= reach) | (first.hi == hi) | np.isnan(first.hi)
    assert meets.all()


@pytest.mark.parametrize("kind", KINDS)
def test_float64_tier_meets_double_double(kind, first_tier_alone):
    rng = np.random.default_rng(KINDS.index(kind))
    later, answered = replace(FORMULAS, tier=None), 0
    for shape in SHAPES:
        x, dy = rows_of(kind, rng, shape), rng.standard_normal(shape).astype(np.float32)
        weight, bias = rng.standard_normal((2, shape[1]))
        for eps in (0.0, 1e-12, 1e-5, 1e40):
            with tiers.counted() as tally:
                got = layernorm_ref.forward(x, weight, bias, eps=eps)
                back = layernorm_ref.backward(dy, x, weight, eps=eps)
            answers = sum(e.size for e in got + back)
            assert sum(tally.values()) == answers
            answered += tally["float64"] == answers
            inputs, params = {"x": x, "weight": weight, "bias": bias}, {"eps": eps}
            refined = later.evaluate("forward", inputs, params)
            refined |= later.evaluate("backward", {**inputs, "dy": dy}, params)
            for name, answer in {**got._asdict(), **back._asdict()}.items():
                assert_meet(answer, refined[name])
    assert answered >= 20, "the float64 tier answered too little to be tested"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", ["bfloat16", "float32"])
def test_a_certified_rounding_is_as_sharp_as_an_enclosure(kind, format):
    """Bounds and condition numbers are read from either."""
    rng = np.random.default_rng(KINDS.index(kind))
    compared = 0
    for shape in SHAPES:
        x, dy = rows_of(kind, rng, shape), rng.standard_normal(shape).astype(np.float32)
        weight, bias = rng.standard_normal((2, shape[1])).astype(np.float32)
        for question in ({}, {"certify": ("rounding", format)}):
            pair = layernorm_ref.forward(x, weight, bias, **question)
            answers = (*pair, *layernorm_ref.backward(dy, x, weight, **question))
            if not question:
                plain = answers
        for fast, sharp in zip(plain, answers, strict=True):
            wide, narrow = (
                np.ldexp(enclosure.radius, enclosure.scale) for enclosure in (fast, sharp)
            )
            assert np.all(narrow <= wide * (1.0 + 2.0**-40))
            compared += fast.size
    assert compared > 100


@settings(max_examples=20 * HUNT)
@given(problems())
def test_no_exact_value_escapes_the_float64_tier(problem):
    before, poor = flint.ctx.prec, first_tier._POOR
    flint.ctx.prec, first_tier._POOR = 20000, 2.0**60
    try:
        x, weight, bias, dy, eps = problem
        check_forward(x, weight, bias, eps)
        check_backward(dy, x, weight, eps)
    finally:
        flint.ctx.prec, first_tier._POOR = before, poor


def test_each_question_takes_the_tier_it_needs():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((64, 96)).astype(np.float32)
    size = x.size + 128

    def tally_of(values, certify):
        with tiers.counted() as tally:
            layernorm_ref.forward(values, certify=certify)
        return tally

    assert tally_of(x, "enclosure") == {"float64": size}
    assert tally_of(x, ("ulp", "float32", 0.01)) == {"float64": size}
    assert tally_of(x, ("rounding", "float32"))["float64"] >= size - 16
    assert tally_of(x, ("ulp", "float32", 1e-12)) == {"double_double": x.size + 64, "float64": 64}
    assert tally_of(x, ("rounding", "float64")) == {"double_double": size}
    assert tally_of(x.astype(np.float64), "enclosure") == {"double_double": size}
    zeros = x[:, :3] * 0.0 + np.float32([1, 2, 3])
    assert tally_of(zeros, ("rounding", "float32"))["double_double"] == 64
    tie, affine = np.array([[-1.0, 1.0]]), (np.full(2, 2.0**-52), np.ones(2))
    with tiers.counted() as tally:  # rstd = 1/2: y is a midpoint
        layernorm_ref.forward(tie, *affine, eps=3.0, certify=("rounding", "float64"))
    assert tally["exact"] >= 1


def test_a_cancelling_gradient_gets_the_sharper_tier():
    """dy in the span of 1 and x, eps = 0: dx is 0, beside which any float64 radius is poor."""
    x = np.random.default_rng(7).standard_normal((4, 50)).astype(np.float32)
    with tiers.counted() as tally:
        dx = layernorm_ref.backward(x, x, eps=0.0).dx
    assert tally["double_double"] == x.size
    assert (dx.radius < 2.0**-90).all()


@pytest.mark.parametrize("ratio", [0.0, 1e4, 1e6])
def test_rows_are_narrow_whatever_their_mean(ratio):
    x = (ratio + np.random.default_rng(8).standard_normal((32, 768))).astype(np.float32)
    with tiers.counted() as tally:
        got = layernorm_ref.forward(x)
    assert set(tally) == {"float64"}
    top = np.abs(got.y.hi).max(axis=1).astype(np.float32)
    assert (got.y.radius[:, 0] <= 2.0**-24 * np.spacing(top)).all()
    assert got.y.radius.strides[1] == 0, "one radius a row"


@pytest.mark.parametrize("certify", [("rounding", "float32"), ("ulp", "float32", 0.01)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_every_element_is_decided_as_asked(certify, dtype):
    rng = np.random.default_rng(9)
    x, dy = rng.standard_normal((2, 300, 500)).astype(dtype)
    question = Question.parse(certify)
    outputs = layernorm_ref.forward(x, certify=certify)
    outputs += layernorm_ref.backward(dy, x, certify=certify)
    for enclosure in outputs:
        assert not question.undecided(enclosure).any()


@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32"])
def test_screening_passes_no_open_element(format):
    rng = np.random.default_rng(10)
    question, width = Question.parse(("rounding", format)), Question.parse(("ulp", format, 1e-3))
    wide = rng.standard_normal(4000) * 2.0 ** rng.integers(-160, 140, 4000)
    target = question.format
    with np.errstate(over="ignore"):
        near = wide.astype(target.storage).astype(np.float64)
    near = near[np.isfinite(near)]
    step = target.u * np.abs(near)
    hi = np.concatenate([wide, near, near + step, near + step * (1.0 + 1e-14), np.zeros(3)])
    passed = 0
    for radius in (1e-300, 1e-60, 1e-20, 1e-12, 1e-3):
        for asked in (question, width):
            undecided = asked.undecided(Enclosure(hi, 0.0, radius))
            screen = screening.screen_of(asked)
            for i in range(hi.size):
                clear = screening.doubtful(hi[i : i + 1], radius, screen) == 0
                assert not (clear and undecided[i]), (hi[i], radius, asked)
                passed += clear
    assert passed > 10_000


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1000])
def test_sums_in_lanes_keep_their_bound(n):
    rng = np.random.default_rng(n)
    row = (rng.standard_normal(n) * 10.0 ** rng.integers(-12, 12, n)).astype(np.float32)
    row[n // 2 :] = -row[: n - n // 2] * np.float32(1.0 + 2.0**-20)
    c, delta = lanes.row_mean(row)
    values = [Fraction(float(value)) for value in row]
    kappa = Fraction(lanes.row_kappa(n))
    allowed = kappa * sum(map(abs, values)) / n + Fraction(2.05 * 2.0**-53) * abs(Fraction(delta))
    assert abs(Fraction(c) + Fraction(delta) - sum(values) / n) <= allowed


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_no_temporary_is_larger_than_some_rows(dtype):
    x, dy = np.random.default_rng(11).standard_normal((2, 4096, 512)).astype(dtype)
    layernorm_ref.backward(dy[:64], x[:64])
    layernorm_ref.forward(x[:64])
    for call in (lambda: layernorm_ref.forward(x), lambda: layernorm_ref.backward(dy, x)):
        tracemalloc.start()
        outputs = call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert outputs[0].hi.nbytes == 16 * 2**20
        assert peak < outputs[0].hi.nbytes + 6 * 2**20
