"""Correct rounding by the oracle against MPFR: all 16-bit inputs, and wider ones that are hard."""

import elementary_truth as truth
import ml_dtypes
import numpy as np
import pytest

from refkernels import elementary_ref
from refkernels.arithmetic import formats, tiers
from refkernels.elementwise.cases import binades

FUNCTIONS = {op.name: op.forward for op in elementary_ref.OPS if op.name in truth.NAMES}


def assert_rounded_like_mpfr(name: str, x: np.ndarray, format: str) -> None:
    values, certified = FUNCTIONS[name](x, certify=("rounding", format)).round(format)
    assert certified.all()
    with np.errstate(invalid="ignore"):  # signalling NaNs are inputs too
        wide = x.astype(np.float64)
    finite = np.isfinite(wide)
    expected = truth.rounded(name, wide[finite], formats.get(format))
    got = values[finite].astype(np.float64)
    np.testing.assert_array_equal(got, expected)
    defined = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[defined]), np.signbit(expected[defined]))
    assert finite.sum() > 0.9 * x.size


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_16_bit_input_is_rounded_as_by_mpfr(name, dtype):
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    assert_rounded_like_mpfr(name, x, np.dtype(dtype).name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_inputs_of_every_binade_are_rounded_as_by_mpfr(name):
    rng = np.random.default_rng(1)
    x = binades(-149, 127, 2000, formats.BINARY32, rng).astype(np.float32)
    bits = rng.integers(0, 2**32, 2000, dtype=np.uint32)
    assert_rounded_like_mpfr(
        name, np.concatenate([x, bits.view(np.float32)[bits < 2**31]]), "float32"
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64_inputs_are_rounded_as_by_mpfr(name):
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-30, 30, 700), binades(-60, 10, 700, formats.BINARY64, rng)])
    assert_rounded_like_mpfr(name, x, "float64")


@pytest.mark.parametrize(
    "name", ["silu", "expm1", "log1p", "sinh", "tanh", "sigmoid", "gelu", "gelu_tanh"]
)
def test_subnormals_are_decided_by_double_doubles(name):
    """x/2 of an odd subnormal is a midpoint: the correction in lo decides it."""
    bits = np.arange(1, 2**23, 211, dtype=np.uint32)
    x = np.concatenate([bits, bits | np.uint32(1 << 31)]).view(np.float32)
    with tiers.counted() as tally:
        certified = FUNCTIONS[name](x, certify=("rounding", "float32")).round("float32")[1]
    assert certified.all()
    assert "exact" not in tally
    assert sum(tally.values()) == x.size


def test_gradients_of_subnormals_are_decided_by_double_doubles():
    x = np.arange(1, 2**23, 1999, dtype=np.uint32).view(np.float32)
    dy = (x.view(np.uint32) | np.uint32(1)).view(np.float32)
    for name in ("silu", "sigmoid", "softplus", "exp", "log1p", "gelu", "gelu_tanh"):
        with tiers.counted() as tally:
            gradient = elementary_ref.backward(name, dy, x, certify=("rounding", "float32"))
        assert gradient.round("float32")[1].all()
        assert "exact" not in tally


def test_values_on_a_boundary_are_exact():
    """2^-150 is half the smallest float32; 1022 lies between two bfloat16; a root may be a tie."""
    powers = elementary_ref.exp2(
        np.float32([-150, -149.5, -151, 128]), certify=("rounding", "float32")
    )
    values, certified = powers.round("float32")
    assert certified.all()
    assert values.tolist() == [0.0, 2.0**-149, 0.0, np.inf]
    exponents = elementary_ref.log2(
        np.array([2.0**1022, 2.0**-1030]), certify=("rounding", "bfloat16")
    )
    values, certified = exponents.round("bfloat16")
    assert certified.all()
    assert values.astype(float).tolist() == [1024.0, -1032.0]
    tie = 1.0 + 2.0**-24
    roots = elementary_ref.sqrt(np.array([tie * tie]), certify=("rounding", "float32"))
    assert roots.round("float32")[1].all()
    assert (roots.radius == 0.0).all()


@pytest.mark.parametrize(
    ("name", "dy", "x", "expected"),
    [
        ("log", 9 * 2.0**5, 3 * 2.0**6, 2.0),
        ("log1p", 9.0, 5.0, 2.0),
        ("sqrt", 36.0, 144.0, 2.0),
        ("rsqrt", 331776.0, 2304.0, -2.0),
        ("reciprocal", 54.0, 6.0, -2.0),
    ],
)
def test_gradients_that_are_ties_are_decided(name, dy, x, expected):
    """dx is 1.5 times the smallest subnormal, though f'(x) is not a binary fraction."""
    gradient = elementary_ref.backward(
        name, np.float32([dy * 2.0**-149]), np.float32([x]), certify=("rounding", "float32")
    )
    values, certified = gradient.round("float32")
    assert certified.all()
    assert gradient.lower_upper(0)[0] == gradient.lower_upper(0)[1]
    assert values[0] == expected * 2.0**-149
