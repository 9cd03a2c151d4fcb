"""Cases of products: their condition, and zeros that cancel."""

from fractions import Fraction

import numpy as np
import pytest

from refkernels import matmul_ref
from refkernels.matmul_ref.ill_conditioned import ill_conditioned_dot

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
