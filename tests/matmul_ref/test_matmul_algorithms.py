"""The working-precision kernels match their names, operation by operation."""

import ml_dtypes
import numpy as np
import pytest

from refkernels import matmul_ref
from refkernels.arithmetic import summation
from refkernels.arithmetic.eft import fma
from refkernels.arithmetic.jit import njit
from refkernels.matmul_ref import algorithms
from refkernels.matmul_ref.contraction import of_matmul

DTYPES = ("float32", "float64")


def operands(dtype, k=333):
    rng = np.random.default_rng(11)
    return rng.standard_normal((3, k)).astype(dtype), rng.standard_normal((k, 7)).astype(dtype)


@njit
def dot_fma(x, y):
    """A chain of fused multiply-adds from zero."""
    total = x.dtype.type(0)
    for i in range(x.size):
        total = fma(x[i], y[i], total)
    return total


def run(name, a, b, dtype):
    return algorithms.run(algorithms.ALGORITHMS[name], of_matmul(a, b), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "dot"),
    [
        ("plain", summation.dot),
        ("plain_fma", dot_fma),
        ("dot2", summation.dot2),
        ("pairwise", lambda x, y: summation.pairwise(x * y)),
        ("kahan", lambda x, y: summation.kahan(x * y)),
        ("neumaier", lambda x, y: summation.neumaier(x * y)),
    ],
)
def test_each_element_has_the_bits_of_the_one_dot_product(name, dot, dtype):
    a, b = operands(dtype)
    got = run(name, a, b, dtype)
    assert got.dtype == dtype
    for i, j in np.ndindex(got.shape):
        assert got[i, j] == dot(a[i], np.ascontiguousarray(b[:, j]))


def test_plain_has_the_bits_of_a_numpy_loop():
    a, b = operands("float32")
    c = np.zeros((3, 7), np.float32)
    for k in range(a.shape[1]):
        c = c + a[:, k, None] * b[k]
    assert (run("plain", a, b, "float32") == c).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_16_bit_formats_sum_in_float32_and_round_once(dtype):
    a, b = (x.astype(dtype) for x in operands("float32"))
    wide = run("plain", a.astype(np.float32), b.astype(np.float32), "float32")
    got = run("plain", a, b, dtype)
    assert got.dtype == dtype
    assert (got == wide.astype(dtype)).all()


def test_compensation_pays():
    a, b = operands("float32", 5000)
    exact = matmul_ref.forward(a, b).hi
    worst = {n: np.abs(run(n, a, b, "float32") - exact).max() for n in algorithms.ALGORITHMS}
    assert worst["dot2"] < worst["kahan"] < worst["plain"]
    assert worst["dot2"] < worst["neumaier"] < worst["plain"]
    assert worst["pairwise"] < worst["plain"]


def test_plain_adds_the_bias_last_and_broadcasts_batches():
    rng = np.random.default_rng(12)
    x, weight, bias = (rng.standard_normal(s).astype(np.float32) for s in ((2, 9), (4, 9), 4))
    product = matmul_ref.linear_plain(x, weight, format="float32")
    assert (matmul_ref.linear_plain(x, weight, bias, format="float32") == product + bias).all()
    a, b = rng.standard_normal((2, 1, 3, 5)), rng.standard_normal((4, 5, 2))
    got = matmul_ref.forward_plain(a, b, format="float64")
    assert got.shape == (2, 4, 3, 2)
    assert (got[1, 2] == matmul_ref.forward_plain(a[1, 0], b[2], format="float64")).all()
