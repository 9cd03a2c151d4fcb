"""The plain algorithm adds its terms in order; cases of products have the condition they say."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from refkernels import matmul_ref
from refkernels.matmul_ref.ill_conditioned import ill_conditioned_dot


def operands(dtype, k=333):
    rng = np.random.default_rng(11)
    return rng.standard_normal((3, k)).astype(dtype), rng.standard_normal((k, 7)).astype(dtype)


def test_plain_has_the_bits_of_a_numpy_loop():
    a, b = operands("float32")
    c = np.zeros((3, 7), np.float32)
    for k in range(a.shape[1]):
        c = c + a[:, k, None] * b[k]
    assert (matmul_ref.forward_plain(a, b, format="float32") == c).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_16_bit_formats_sum_in_float32_and_round_once(dtype):
    a, b = (x.astype(dtype) for x in operands("float32"))
    wide = matmul_ref.forward_plain(a.astype(np.float32), b.astype(np.float32), format="float32")
    got = matmul_ref.forward_plain(a, b, format=dtype)
    assert got.dtype == dtype
    assert (got == wide.astype(dtype)).all()


def test_plain_adds_the_bias_last_and_broadcasts_batches():
    rng = np.random.default_rng(12)
    x, weight, bias = (rng.standard_normal(s).astype(np.float32) for s in ((2, 9), (4, 9), 4))
    product = matmul_ref.linear_plain(x, weight, format="float32")
    assert (matmul_ref.linear_plain(x, weight, bias, format="float32") == product + bias).all()
    a, b = rng.standard_normal((2, 1, 3, 5)), rng.standard_normal((4, 5, 2))
    got = matmul_ref.forward_plain(a, b, format="float64")
    assert got.shape == (2, 4, 3, 2)
    assert (got[1, 2] == matmul_ref.forward_plain(a[1, 0], b[2], format="float64")).all()


CASES = [(op, case) for op in matmul_ref.OPS for case in op.cases()]
DTYPES = ("float16", "bfloat16", "float32", "float64")


def measured_condition(x, y):
    """2|x|.|y| / |x.y| in exact arithmetic."""
    products = [Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y, strict=True)]
    return float(2 * sum(map(abs, products)) / abs(sum(products)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("condition", [1e2, 1e6, 1e10, 1e14])
def test_ill_conditioned_products_have_the_requested_condition(dtype, condition):
    for terms in (64, 101):
        x, y = ill_conditioned_dot(np.random.default_rng(1), terms, 3, condition, dtype)
        for j in range(3):
            assert 0.9 <= measured_condition(x, y[:, j]) / condition <= 1.1


def test_the_cancelled_case_has_exact_zeros_only():
    (case,) = [c for _, c in CASES if c.name.startswith("matmul/specials[kind=cancelled")]
    inputs, _ = case.build("float32")
    answer = matmul_ref.forward(inputs["a"], inputs["b"], certify=("rounding", "float32"))
    assert answer.exact_zero.all()
