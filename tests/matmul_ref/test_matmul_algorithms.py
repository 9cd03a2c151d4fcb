"""The plain algorithm adds its terms in order, in the working precision."""

import ml_dtypes
import numpy as np
import pytest

from refkernels import matmul_ref


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
