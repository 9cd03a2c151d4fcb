"""The promises of erf, erfc and the gelus besides values: specials, cases, bounds, tables."""

import importlib
from fractions import Fraction
from pathlib import Path

import erf_truth
import flint
import numba
import numpy as np
import pytest

from refkernels import elementary_ref
from refkernels.arithmetic import formats
from refkernels.arithmetic.double_double import U
from refkernels.elementary_ref import erf_functions
from refkernels.kernels.elementary import erf as erf_kernels
from refkernels.kernels.elementary import erf_tables, erf_tail, exponential
from refkernels.kernels.elementary import gelu as gelu_kernels

OPS = {op.name: op for op in elementary_ref.OPS if op.name in erf_truth.NAMES}
each = pytest.mark.parametrize("name", erf_truth.NAMES)
LIMITS = {  # at -inf, -0, +0, +inf: values, then slopes
    "erf": ([-1.0, -0.0, 0.0, 1.0], [0.0, None, None, 0.0]),
    "erfc": ([2.0, 1.0, 1.0, 0.0], [-0.0, None, None, -0.0]),
    "gelu": ([-0.0, -0.0, 0.0, np.inf], [-0.0, 0.5, 0.5, 1.0]),
    "gelu_tanh": ([-0.0, -0.0, 0.0, np.inf], [-0.0, 0.5, 0.5, 1.0]),
}


@each
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_specials_are_the_limits_exactly_and_signed(name, dtype):
    x = formats.round_to([-np.inf, -0.0, 0.0, np.inf, np.nan], dtype)
    y = OPS[name].forward(x, certify=("rounding", dtype)).round(dtype)[0].astype(np.float64)
    values, slopes = LIMITS[name]
    np.testing.assert_array_equal(y, [*values, np.nan])
    np.testing.assert_array_equal(np.signbit(y[:4]), np.signbit(values))
    dx = OPS[name].backward(np.ones_like(x), x)
    for i, expected in enumerate([*slopes, np.nan]):
        if expected is not None:
            np.testing.assert_array_equal(dx.hi[i], expected)
            assert np.isnan(expected) or np.signbit(dx.hi[i]) == np.signbit(expected)
            assert dx.radius[i] == 0.0


@each
def test_bits_do_not_depend_on_the_number_of_threads(name):
    generator = np.random.default_rng(6)
    x = generator.uniform(-40, 40, 100_001)
    before = numba.get_num_threads()
    answers = []
    try:
        for threads in {1, before}:
            numba.set_num_threads(threads)
            op = OPS[name]
            narrow = x.astype(np.float32)
            answers.append([op.forward(x), op.forward(narrow), op.backward(x, x)])
            answers[-1].append(op.forward(narrow, certify=("rounding", "float32")))
    finally:
        numba.set_num_threads(before)
    for single, threaded in zip(answers[0], answers[-1], strict=True):
        for part in ("hi", "lo", "radius", "scale"):
            np.testing.assert_array_equal(getattr(single, part), getattr(threaded, part))


@each
def test_every_case_is_decided_and_the_plain_kernel_keeps_to_bound_and_invariants(name):
    op, ran = OPS[name], 0
    for case in op.cases():
        for dtype in case.dtypes:
            inputs, params = case.build(dtype)
            assert 0 < inputs["x"].size <= 1100
            for direction in case.directions:
                check(op, direction, inputs, params, dtype)
                ran += 1
    assert ran == 36  # five cases in four formats, the specials forward only


def check(op, direction, inputs, params, dtype):
    output = op.names(direction)[0]
    exact = op.evaluate(direction, inputs, params, ("rounding", dtype))[output]
    values, certified = exact.round(dtype)
    assert certified.all()
    assert (op.condition(direction, inputs, params)[output] >= 0.0).mean() > 0.8
    bound = op.bound(direction, inputs, params, formats.get(dtype))[output]
    plain = op.plain(direction, inputs, params, dtype)[output]
    assert plain.dtype == values.dtype
    defined = np.isfinite(inputs["dy"])  # a slope that underflows times infinity is NaN
    np.testing.assert_array_equal(np.isnan(plain[defined]), np.isnan(values[defined]))
    finite = np.isfinite(values.astype(float)) & np.isfinite(plain.astype(float))
    error = np.abs(plain.astype(float)[finite] - np.asarray(exact)[finite])
    assert (error <= bound[finite] * (1 + 2.0**-50)).all()
    for invariant in op.invariants:
        if invariant.direction == direction:
            for answer in (values, np.where(np.isnan(plain), values, plain)):
                assert not invariant.violated(answer, inputs, params).any(), invariant.statement


@each
def test_condition_numbers_are_the_derivatives_quotients(name):
    x = np.array([-30.0, -5.0, -1.25, -0.5, 0.25, 1.0, 3.0, 6.0])
    op = OPS[name]
    flint.ctx.prec = 400
    step = 2.0**-60
    for i, value in enumerate(x):
        v = erf_truth.ball(value)
        y, f = erf_truth.forward(name, value), erf_truth.slope(name, value)
        shifted = slope_at(name, value, step)
        bend = (shifted - f) / erf_truth.ball(step)
        first, second = float(abs(v * f / y)), float(abs(v * bend / f))
        np.testing.assert_allclose(op.forward_condition(x)[i], first, rtol=1e-5)
        np.testing.assert_allclose(op.backward_condition(x, x)[i], second, rtol=1e-5)


def slope_at(name, value, step):
    original = erf_truth.ball
    try:
        erf_truth.ball = lambda v: original(v) + original(step)
        return erf_truth.slope(name, value)
    finally:
        erf_truth.ball = original


def test_conditions_of_huge_and_special_arguments_are_numbers_or_nan():
    x = np.array([1e300, -1e300, 0.0, -0.0, np.inf, -np.inf])
    for op in OPS.values():
        with np.errstate(all="ignore"):
            assert not np.isnan(op.forward_condition(x.reshape(3, 2))[:2]).any()
            assert not np.isnan(op.backward_condition(x, x)[:4]).any()


def test_invariants_catch_what_they_state():
    got = np.array([1.0 + 2.0**-20, -0.5, 0.5], np.float32)
    x = {"x": np.array([9.0, 0.5, 0.25], np.float32)}
    for name, expected in (("erf", [True, True, False]), ("gelu", [False, True, True])):
        violated = np.zeros(3, bool)
        for invariant in OPS[name].invariants:
            if invariant.direction == "forward":
                violated |= invariant.violated(got, x, {})
        assert violated.tolist() == expected


def test_the_error_constants_cover_the_sums_in_the_budgets():
    erfcx = erf_tables.ERFCX_ERROR
    exp = exponential.EXP_ERROR
    assert erfcx <= 4.7 * U**2
    assert exp + erfcx + 8.1 * U**2 <= erf_tail.NEAR
    assert exp + 19.8 * U**2 + 8.1 * U**2 <= erf_tail.MIDDLE
    assert erf_tables.ERF_SERIES_ERROR + 2.1 * U**2 <= erf_kernels.SERIES
    assert exp + erfcx + 11.1 * U**2 <= gelu_kernels.SLOPE_NEAR
    assert exp + 19.8 * U**2 + 11.1 * U**2 <= gelu_kernels.SLOPE_MIDDLE
    fast = exponential.EXP_FAST_ERROR + erf_tables.FAST_TAIL_ERROR + U
    assert fast <= erf_tail.FAST_ERROR
    assert erf_tail.FAST_ERROR + 3 * U <= erf_kernels.FAST_ERFC_BOUND
    assert erf_tail.FAST_ERROR + 3 * U <= gelu_kernels.FAST_GELU_BOUND
    upper = exponential.EXP_FAST_ERROR + erf_tables.FAST_UPPER_ERROR + U
    assert upper * 0.157 / 0.842 + 2 * U <= erf_kernels.FAST_ERF_BOUND
    assert erf_tables.FAST_ERF_ERROR <= erf_kernels.FAST_ERF_BOUND


def test_the_intervals_beyond_certain_hold_what_is_left_there():
    flint.ctx.prec = 400
    left = flint.arb(25).erfc()
    assert left < erf_truth.ball(erf_kernels.TINIEST)
    a = erf_truth.ball(gelu_kernels.CERTAIN)
    assert a * (-a * a / 2).exp() < erf_truth.ball(gelu_kernels.TINIEST)


def test_constants_and_table_are_arbs():
    flint.ctx.prec = 400
    pi = flint.arb.pi()
    for name, truth in (
        ("TWO_OVER_SQRT_PI", 2 / pi.sqrt()),
        ("DENSITY", 1 / (2 * pi).sqrt()),
        ("TANH_CUBIC", 2 * (2 / pi).sqrt() * 44715 / 1000000),
    ):
        high, low = getattr(erf_tables, f"{name}_HIGH"), getattr(erf_tables, f"{name}_LOW")
        error = abs(truth - erf_truth.ball(high) - erf_truth.ball(low))
        assert error < erf_truth.ball(high * U**2)
    row = erf_tables.ERFCX[40]  # about 3
    first = erf_truth.ball(row[0]) + erf_truth.ball(row[1])
    assert abs(first - flint.arb(9).exp() * flint.arb(3).erfc()) < erf_truth.ball(2.0**-104)


def test_the_tool_proves_the_bounds_in_the_tables(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "tools")
    tool = importlib.import_module("generate_erf_tables")
    flint.ctx.prec, before = tool.PRECISION, flint.ctx.cap
    flint.ctx.cap = tool.TERMS
    try:
        for row in (0, 17, 40, 96):
            coefficients, error = tool.erfcx_row(*tool.node(row), 17, erf_tables.ERFCX_PAIRS)
            flat = [part for parts in coefficients for part in parts]
            assert flat == erf_tables.ERFCX[row].tolist()
            assert error <= Fraction(erf_tables.ERFCX_ERROR)
    finally:
        flint.ctx.cap = before


def test_the_public_functions_are_the_family_s():
    assert [function.name for function in erf_functions.FUNCTIONS] == list(erf_truth.NAMES)
    assert set(erf_truth.NAMES) <= set(elementary_ref.__all__)
    for name in erf_truth.NAMES:
        assert OPS[name].fast is not None
        with pytest.raises(TypeError, match="x has dtype"):
            getattr(elementary_ref, name)(np.arange(3))
