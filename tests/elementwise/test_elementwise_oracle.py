"""The tiers of an elementwise op: each answers its elements, they agree, on any threads."""

import math
import multiprocessing
from dataclasses import replace

import numpy as np
import pytest
from waiting import HANGS

from refkernels import trig_ref
from refkernels.arithmetic import blocks, formats, tiers
from refkernels.arithmetic.enclosure import Enclosure, Relative
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.jit import njit
from refkernels.elementary_ref import functions as elementary
from refkernels.elementwise import bounds, oracle
from refkernels.elementwise.ops import Family
from refkernels.kernels import answers
from refkernels.trig_ref import functions

FUNCTIONS = {each.name: each for each in (*functions.FUNCTIONS, *elementary.FUNCTIONS)}
each = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


def bits(n: int, seed: int = 1) -> np.ndarray:
    words = np.random.default_rng(seed).integers(0, 2**32, n, dtype=np.uint32)
    x = words.view(np.float32)
    x[np.isnan(x)] = np.nan  # without signalling ones, which warn when they are made wider
    return x


@pytest.mark.parametrize("function", functions.FUNCTIONS, ids=lambda function: function.name)
def test_every_element_is_counted_once(function):
    x = bits(3000).reshape(3, 1000)
    wide = x.astype(np.float64)
    for certify in ("enclosure", ("rounding", "float32"), ("ulp", "float64", 2.0**-50)):
        for call in (
            lambda certify=certify: oracle.forward(function, x, certify),
            lambda certify=certify: oracle.forward(function, wide, certify),
            lambda certify=certify: oracle.backward(function, wide, x, certify),
        ):
            with tiers.counted() as tally:
                assert call().shape == x.shape
            assert sum(tally.values()) == x.size
            assert min(tally.values()) > 0


def test_the_first_tier_that_can_answers():
    x = bits(20_000)
    with tiers.counted() as tally:
        trig_ref.sin(x)
    assert tally == {"float64": x.size}
    with tiers.counted() as tally:
        trig_ref.sin(x.astype(np.float64))
    assert tally == {"double_double": x.size}
    with tiers.counted() as tally:
        trig_ref.sin(x, certify=("rounding", "float32"))
    assert tally["float64"] > 0.999 * x.size
    hard = np.array([float.fromhex("0x1.33333p+13")], np.float32)
    with tiers.counted() as tally:
        trig_ref.sin(hard, certify=("ulp", "float64", 2.0**-60))
    assert tally == {"exact": 1}


@njit(nogil=True)
def _far(x, hi):
    for i in range(x.size):
        hi[i] = x[i] * 2.0**150


def test_values_beyond_the_range_of_a_fast_promise_are_handed_on():
    function = replace(FUNCTIONS["sin"], fast=Fast(_far, 2.0**-50))
    x = np.array([2.0**60, 2.0**49, -(2.0**51), 2.0**-351 * 2**201, np.inf, np.nan], np.float32)
    with tiers.counted() as tally:
        enclosure = oracle.forward(function, x)
    sent = np.array([True, False, True, False, False, False])
    np.testing.assert_array_equal(np.isin(enclosure.hi, np.sin(x[sent].astype(float))), sent)
    assert tally == {"float64": 4, "double_double": 2}


def _ask(connection):
    connection.send(float(trig_ref.sin(np.ones(3 * blocks.CACHED, np.float32)).hi[-1]))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    trig_ref.sin(np.ones(3 * blocks.CACHED, np.float32))
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_ask, args=(there,))
    child.start()
    assert here.poll(HANGS)
    assert abs(here.recv() - math.sin(1.0)) < 2.0**-50
    child.join(HANGS)


def test_ulps_in_bounds_are_goldbergs_on_the_right_side_of_powers_of_two():
    x = np.array([1e-8, 1e-3, np.pi / 2, 0.0], np.float32)
    ulps = bounds.forward_bound(FUNCTIONS["cos"], x, format="float32", limit=1.0)
    below_one, one = 2.0**-24, 2.0**-23
    assert ulps.tolist() == [below_one, below_one, 2.0**-48, one]
    tangents = bounds.forward_bound(FUNCTIONS["tan"], x[:2], format="float32", limit=1.0)
    assert tangents.tolist() == [2.0**-50, 2.0**-33]
    above = bounds.forward_bound(FUNCTIONS["cosh"], x[:2] * 1e-9, format="float64", limit=1.0)
    assert above.tolist() == [2.0**-52] * 2
    wide = bounds.forward_bound(FUNCTIONS["cos"], x.astype(float), format="float32", limit=1.0)
    np.testing.assert_array_equal(ulps, wide)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_ways_in_which_libraries_differentiate_tan_keep_to_the_bound(dtype):
    """dy / cos(x)^2, as Paddle has it, is off by more than dy (1 + tan(x)^2) where tan is small."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-0.1, 0.1, 1000) + k * np.pi for k in range(-5, 6)])
    dy, x = rng.standard_normal(x.size).astype(dtype), x.astype(dtype)
    name = np.dtype(dtype).name
    exact = oracle.backward(FUNCTIONS["tan"], dy, x, ("ulp", name, 2.0**-10))
    bound = bounds.backward_bound(FUNCTIONS["tan"], dy, x, format=name)
    c = np.nextafter(np.cos(x), dtype(0))  # within 2 ulp
    for dx in (dy / (c * c), dy * (1 / (c * c)), dy * (1 / c) ** 2, dy * (1 + np.tan(x) ** 2)):
        error = np.abs((dx.astype(float) - exact.hi) - exact.lo)
        assert np.all(error <= bound + exact.radius)
    narrow = bounds.form_bounds(FUNCTIONS["tan"], dy, x, format=name)["dy (1 + y^2)"]
    assert np.any(np.abs((dy / (c * c)).astype(float) - exact.hi) > narrow)


def test_a_family_names_what_it_knows():
    family = Family("some_ref", (FUNCTIONS["sin"], FUNCTIONS["atan"]))
    assert [op.name for op in family.ops] == ["sin", "atan"]
    with pytest.raises(ValueError, match="some_ref knows sin and atan, not 'cos'"):
        family.by_name(oracle.forward)("cos", np.ones(1))


@pytest.mark.parametrize("format", ["float32", "bfloat16"])
def test_what_the_first_tier_decides_is_certified_and_midpoints_are_left_open(format):
    """Values k units of 2^-51 beside midpoints, powers of two and zero's neighbours."""
    target = formats.get(format)
    rng = np.random.default_rng(6)
    exponents = np.repeat(np.arange(target.emin - target.p - 1, target.emax + 1), 20)
    odd = 2.0 * rng.integers(2 ** (target.p - 1), 2**target.p, exponents.size) + 1
    middle = np.concatenate([np.ldexp(odd, exponents - target.p), np.exp2(exponents)])
    hi = middle * (1 + rng.integers(-6, 7, middle.size) * 2.0**-51)
    factor, open_ = 2.0**-50, np.empty(hi.size, np.bool_)
    assert answers._judge(hi, factor + 2.0**-52, answers._TIES[format], False, open_)
    _, certified = Enclosure(hi, 0.0, Relative(factor)).round(format)
    assert certified[~open_].all()
    assert 0.1 < certified.mean() < 0.9
