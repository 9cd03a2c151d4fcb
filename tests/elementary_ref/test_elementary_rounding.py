"""Correct rounding where it is hard: subnormal numbers, boundaries and ties."""

import numpy as np
import pytest

from refkernels import elementary_ref
from refkernels.arithmetic import tiers


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
