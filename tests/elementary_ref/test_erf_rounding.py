"""Correct rounding of erf, erfc and the gelus against MPFR: all 16-bit inputs, some wider ones."""

import erf_truth
import ml_dtypes
import numpy as np
import pytest

from refkernels import elementary_ref
from refkernels.arithmetic import formats

each = pytest.mark.parametrize("name", erf_truth.NAMES)


def assert_rounded_like_mpfr(name, x, format):
    enclosure = getattr(elementary_ref, name)(x, certify=("rounding", format))
    values, certified = enclosure.round(format)
    assert certified.all()
    truth = erf_truth.mpfr_rounded(name, x, format)
    np.testing.assert_array_equal(values.astype(np.float64), truth)
    nonzero = truth != 0.0  # MPFR's zeros of underflow have the sign of the value too
    assert nonzero.any()
    np.testing.assert_array_equal(np.signbit(values.astype(np.float64)), np.signbit(truth))


@each
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_16_bit_input_is_rounded_correctly(name, dtype):
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):  # signalling NaNs among the patterns
        x = x[np.isfinite(x.astype(np.float64))]
    assert x.size > 60_000
    format = formats.get(dtype).name
    wide = x.astype(np.float64)
    assert_rounded_like_mpfr(name, x[np.abs(wide) < SATURATED], format)
    for side in (wide >= SATURATED, wide <= -SATURATED):
        values = getattr(elementary_ref, name)(x[side], certify=("rounding", format)).round(format)
        assert values[1].all()
        np.testing.assert_array_equal(values[0], saturated(name, x[side]))


SATURATED = 16.0  # exp(-16^2/2) = 2^-184 is far below half of every 16-bit subnormal


def saturated(name, x):
    """What every 16-bit format rounds f(x) to there: 1 - f, or f / x, is below 2^-180."""
    if name == "erf":
        return np.sign(x)
    if name == "erfc":
        return 1 - np.sign(x)
    return np.maximum(x, x.dtype.type(0))


@each
def test_float32_inputs_are_rounded_correctly(name):
    generator = np.random.default_rng(4)
    bits = generator.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)
    near = generator.uniform(-15, 15, 4000).astype(np.float32)
    small = generator.integers(1, 2**23, 2000, dtype=np.uint32).view(np.float32)
    x = np.concatenate([bits[np.isfinite(bits)], near, small, -small])
    assert_rounded_like_mpfr(name, x, "float32")


@each
def test_float64_inputs_are_rounded_correctly(name):
    generator = np.random.default_rng(5)
    near = generator.uniform(-40, 40, 1500)
    small = np.ldexp(generator.uniform(-1, 1, 1000), generator.integers(-120, 0, 1000))
    assert_rounded_like_mpfr(name, np.concatenate([near, small]), "float64")
