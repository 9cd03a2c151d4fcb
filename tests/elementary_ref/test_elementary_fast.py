"""The float64 tier keeps the contract of `refkernels.arithmetic.fast.Fast` in every float32."""

import platform
import re

import elementary_truth as truth
import numba
import numpy as np
import pytest

from refkernels.elementary_ref.cases import cases_of
from refkernels.elementary_ref.functions import FUNCTIONS
from refkernels.elementwise import oracle

BY_NAME = {function.name: function for function in FUNCTIONS}
each = pytest.mark.parametrize("name", truth.NAMES)


def adversaries(name: str) -> np.ndarray:
    """Random bits, the ends of every binade and their neighbours, and the hard places."""
    rng = np.random.default_rng(11)
    bits = rng.integers(0, 2**32, 60_000, dtype=np.uint32)
    ends = (np.arange(0, 256, dtype=np.int64)[:, None] << 23) + np.arange(-2, 3)
    ends = ends[(ends >= 0) & (ends < 2**31)].astype(np.uint32)
    around = np.concatenate([case.build("float32")[0]["x"] for case in cases_of(name)])
    wide = np.concatenate([rng.uniform(-160, 160, 20_000), rng.uniform(-1, 1, 20_000)])
    patterns = np.concatenate([bits, ends, ends | np.uint32(1 << 31)]).view(np.float32)
    return np.concatenate([patterns, around, -around, wide.astype(np.float32)])


@each
def test_the_error_is_within_the_bound_at_every_adversary(name):
    function = BY_NAME[name]
    x = adversaries(name)
    hi = np.empty(x.size)
    function.fast.kernel(x, hi)
    with np.errstate(invalid="ignore"):
        true = oracle.values(function, x.astype(np.float64))
    huge = np.asarray(true.hi) * np.exp2(np.clip(true.scale, -1000, 1000).astype(float))
    special = (~np.isfinite(true.hi) & (true.radius == 0.0)) | true.exact_zero
    np.testing.assert_array_equal(hi[special], true.hi[special])
    zeros = special & (hi == 0)
    np.testing.assert_array_equal(np.signbit(hi[zeros]), np.signbit(true.hi[zeros]))
    assert np.isfinite(hi[~special]).all()
    assert (np.sign(hi[~special]) == np.sign(true.hi[~special])).all()
    with np.errstate(over="ignore"):
        beyond = ((abs(hi) >= 2.0**200) & (abs(huge) >= 2.0**200)) | (
            (abs(hi) <= 2.0**-200) & (abs(huge) <= 2.0**-200)
        )
    ordinary = ~special & ~beyond
    assert (true.scale[ordinary] == 0).all()
    error = np.abs((hi[ordinary] - true.hi[ordinary]) - true.lo[ordinary]) / np.abs(
        true.hi[ordinary]
    )
    assert error.max() <= function.fast.error
    assert ordinary.sum() > 5000


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86 assembly")
@pytest.mark.parametrize("name", ["exp", "log", "tanh"])
def test_the_kernel_is_vectorised(name):
    """Compiled afresh: Numba does not show the assembly of cached code."""
    fresh = numba.njit(error_model="numpy", nogil=True)(BY_NAME[name].fast.kernel.py_func)
    fresh(np.ones(8, np.float32), np.empty(8))
    (assembly,) = fresh.inspect_asm().values()
    assert len(re.findall(r"divpd|fmadd\d+pd|mulpd", assembly)) > 10


def test_bounds_are_small():
    assert len(BY_NAME) == len(truth.NAMES)
    assert all(function.fast.error <= 2.0**-44 for function in FUNCTIONS)
