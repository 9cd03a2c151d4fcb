"""The bound holds wherever products, biases and stored parts are subnormal, in every order, with
fused steps and without."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from underflow_attack import EXAMPLES, Record, numbers

from refkernels import matmul_ref
from refkernels.arithmetic import formats
from refkernels.arithmetic.eft import fma
from refkernels.arithmetic.jit import njit
from refkernels.matmul_ref import algorithms

DTYPES = ("float16", "bfloat16", "float32", "float64")


@njit
def fused(a, b, start, c):
    """c = fma(a_k, b_k, ...) from `start`, k in order."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = start[j]
            for k in range(a.shape[1]):
                total = fma(a[i, k], b[k, j], total)
            c[i, j] = total


def kernels(a, b, bias, rng, stored):
    """(name, a @ b + bias) in the accumulator's dtype, by random trees and orders of addition."""
    terms = list((a[:, :, None] * b[None]).transpose(1, 0, 2))
    start = np.broadcast_to(bias, terms[0].shape)
    yield "bias last", sum(terms[1:], terms[0]) + start
    yield "bias first", sum(terms, start)
    if a.dtype != stored:
        product = sum(terms[1:], terms[0]).astype(stored).astype(a.dtype)
        yield "stored before the bias", product + start
    parts = [*terms, start]
    while len(parts) > 1:
        later, earlier = sorted(rng.choice(len(parts), 2, replace=False), reverse=True)
        parts.append(parts.pop(later) + parts.pop(earlier))
    yield "random tree", parts[0]
    order = rng.permutation(a.shape[1])
    for name, first, last in (
        ("fused from the bias", bias, 0.0 * bias),
        ("fused", 0.0 * bias, bias),
    ):
        c = np.empty(start.shape, a.dtype)
        fused(np.ascontiguousarray(a[:, order]), np.ascontiguousarray(b[order]), first, c)
        yield name, c + last


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_kernel_exceeds_the_bound(dtype):
    format, record = formats.get(dtype), Record()
    kind = algorithms.accumulator(format).storage

    @settings(max_examples=EXAMPLES)
    @given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3, 7, 30]))
    @example(1, 1000)
    def hunt(seed, k):
        rng = np.random.default_rng(seed)
        x, weight = numbers(rng, (5, k), format), numbers(rng, (4, k), format)
        bias = numbers(rng, (4,), format) if rng.random() < 0.6 else np.zeros(4, format.storage)
        exact = matmul_ref.linear(x, weight, bias, certify=("rounding", "float64"))
        bound = matmul_ref.linear_bound(x, weight, bias, format=format)
        a, b, start = (v.astype(kind) for v in (x, weight.T, bias))
        with np.errstate(all="ignore"):
            for name, got in kernels(a, b, start, rng, format.storage):
                record.add((name,), (seed, k), got.astype(format.storage), exact, bound)

    hunt()
    record.tell(5 + (kind != format.storage))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parts_stored_in_16_bits_and_added_keep_to_the_bound(dtype):
    """Gradients of a broadcast operand: each batch element's product is stored, then added."""
    format, record = formats.get(dtype), Record()

    @settings(max_examples=EXAMPLES)
    @given(st.integers(0, 2**32 - 1))
    def hunt(seed):
        rng = np.random.default_rng(seed)
        a, dc = numbers(rng, (6, 2, 3), format), numbers(rng, (6, 2, 4), format)
        b = numbers(rng, (3, 4), format)
        exact = matmul_ref.backward(dc, a, b, certify=("rounding", "float64")).db
        bound = matmul_ref.backward_bound(dc, a, b, format=format).db
        with np.errstate(all="ignore"):
            wide_a, wide_dc = a.astype(np.float32), dc.astype(np.float32)
            parts = (wide_a[:, 0, :, None] * wide_dc[:, 0, None]) + (
                wide_a[:, 1, :, None] * wide_dc[:, 1, None]
            )
            got = sum(parts.astype(format.storage).astype(np.float32)).astype(format.storage)
        record.add(("db",), seed, got, exact, bound)

    hunt()
    record.tell(1)


def test_one_product_that_underflows_takes_nearly_all_of_its_bound():
    x, weight = np.float32([[2.0**-75]]), np.float32([[2.0**-75]])
    bound = matmul_ref.linear_bound(x, weight, format="float32")[0, 0]
    assert (x * weight)[0, 0] == 0.0
    assert Fraction(2) ** -150 <= Fraction(bound) < Fraction(2) ** -150 * Fraction(1001, 1000)
