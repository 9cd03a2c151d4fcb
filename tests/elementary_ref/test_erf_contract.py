"""erf, erfc and the gelus: conditions far out, and the error budgets and tables."""

import importlib
from fractions import Fraction
from pathlib import Path

import flint
import numpy as np
from flint import arb
from test_elementary_enclosures import ERROR_FUNCTIONS

from refkernels import elementary_ref
from refkernels.arithmetic.double_double import U
from refkernels.kernels.elementary import erf as erf_kernels
from refkernels.kernels.elementary import erf_tables, erf_tail, exponential
from refkernels.kernels.elementary import gelu as gelu_kernels

OPS = {op.name: op for op in elementary_ref.OPS if op.name in ERROR_FUNCTIONS}


def test_conditions_of_huge_and_special_arguments_are_numbers_or_nan():
    x = np.array([1e300, -1e300, 0.0, -0.0, np.inf, -np.inf])
    for op in OPS.values():
        with np.errstate(all="ignore"):
            assert not np.isnan(op.forward_condition(x.reshape(3, 2))[:2]).any()
            assert not np.isnan(op.backward_condition(x, x)[:4]).any()


def test_the_error_constants_cover_the_sums_in_the_budgets():
    erfcx = erf_tables.ERFCX_ERROR
    exp = exponential.EXP_ERROR
    assert erfcx <= 4.7 * U**2
    assert exp + erfcx + 8.1 * U**2 <= erf_tail.NEAR
    assert exp + 19.8 * U**2 + 8.1 * U**2 <= erf_tail.MIDDLE
    assert erf_tables.ERF_SERIES_ERROR + 2.1 * U**2 <= erf_kernels.SERIES
    fast = exponential.EXP_FAST_ERROR + erf_tables.FAST_TAIL_ERROR + U
    assert fast <= erf_tail.FAST_ERROR
    assert erf_tail.FAST_ERROR + 3 * U <= erf_kernels.FAST_ERFC_BOUND
    assert erf_tail.FAST_ERROR + 3 * U <= gelu_kernels.FAST_GELU_BOUND
    upper = exponential.EXP_FAST_ERROR + erf_tables.FAST_UPPER_ERROR + U
    assert upper * 0.157 / 0.842 + 2 * U <= erf_kernels.FAST_ERF_BOUND
    assert erf_tables.FAST_ERF_ERROR <= erf_kernels.FAST_ERF_BOUND


def test_the_intervals_beyond_certain_hold_what_is_left_there():
    flint.ctx.prec = 400
    left = arb(25).erfc()
    assert left < arb(erf_kernels.TINIEST)
    a = arb(gelu_kernels.CERTAIN)
    assert a * (-a * a / 2).exp() < arb(gelu_kernels.TINIEST)


def test_constants_and_table_are_arbs():
    flint.ctx.prec = 400
    pi = arb.pi()
    for name, truth in (
        ("TWO_OVER_SQRT_PI", 2 / pi.sqrt()),
        ("DENSITY", 1 / (2 * pi).sqrt()),
        ("TANH_CUBIC", 2 * (2 / pi).sqrt() * 44715 / 1000000),
    ):
        high, low = getattr(erf_tables, f"{name}_HIGH"), getattr(erf_tables, f"{name}_LOW")
        error = abs(truth - arb(high) - arb(low))
        assert error < arb(high * U**2)
    row = erf_tables.ERFCX[40]  # about 3
    first = arb(row[0]) + arb(row[1])
    assert abs(first - arb(9).exp() * arb(3).erfc()) < arb(2.0**-104)


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
