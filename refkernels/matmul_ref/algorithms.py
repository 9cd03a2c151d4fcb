"""Matrix products in a working precision: kernels generic in dtype, bit for bit as written.

Each fills c (M, N) from a (M, K) and b (K, N), all of one dtype, float32 or float64; the K terms
of every element are taken in order (pairwise: NumPy's tree). u is the dtype's unit roundoff and
bounds are for each element, |a|.|b| being sum_k |a_ik b_kj|, while nothing over- or underflows.
In float64 they are plain reference kernels; in float32, models to compare a framework's bits with.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.eft import fma
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.summation import (
    dot2_step,
    kahan_step,
    neumaier_step,
)
from refkernels.arithmetic.summation import pairwise as pairwise_sum
from refkernels.matmul_ref.contraction import Array, Contraction

Kernel = Callable[[Array, Array, Array], None]


@njit
def plain(a: Any, b: Any, c: Any) -> None:
    """c_ij = fl(c_ij + fl(a_ik b_kj)), k in order; |error| <= K u |a|.|b|.

    Source: Jeannerod and Rump (2013), doi:10.1137/120894488: no condition on K.
    """
    c[:] = 0
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            a_ik = a[i, k]
            for j in range(b.shape[1]):
                c[i, j] += a_ik * b[k, j]


@njit
def plain_fma(a: Any, b: Any, c: Any) -> None:
    """c_ij = fma(a_ik, b_kj, c_ij), k in order; |error| <= K u |a|.|b|."""
    c[:] = 0
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            a_ik = a[i, k]
            for j in range(b.shape[1]):
                c[i, j] = fma(a_ik, b[k, j], c[i, j])


@njit
def pairwise(a: Any, b: Any, c: Any) -> None:
    """The rounded products are summed pairwise; |error| <= gamma_(20 + log2(K / 64)) |a|.|b|."""
    products = np.empty(a.shape[1], a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                products[k] = a[i, k] * b[k, j]
            c[i, j] = pairwise_sum(products)


@njit
def kahan(a: Any, b: Any, c: Any) -> None:
    """The rounded products are summed by Kahan; |error| <= (3u + O(K u^2)) |a|.|b|."""
    errors = np.empty(b.shape[1], a.dtype)
    c[:] = 0
    for i in range(a.shape[0]):
        errors[:] = 0
        for k in range(a.shape[1]):
            a_ik = a[i, k]
            for j in range(b.shape[1]):
                c[i, j], errors[j] = kahan_step(c[i, j], errors[j], a_ik * b[k, j])


@njit
def neumaier(a: Any, b: Any, c: Any) -> None:
    """The rounded products are summed by Neumaier; |error| <= (2u + O(K^2 u^2)) |a|.|b|."""
    errors = np.empty(b.shape[1], a.dtype)
    c[:] = 0
    for i in range(a.shape[0]):
        errors[:] = 0
        for k in range(a.shape[1]):
            a_ik = a[i, k]
            for j in range(b.shape[1]):
                c[i, j], errors[j] = neumaier_step(c[i, j], errors[j], a_ik * b[k, j])
        c[i] += errors


@njit
def dot2(a: Any, b: Any, c: Any) -> None:
    """Ogita, Rump, Oishi's Dot2; |error| <= u |c_ij| + gamma_K^2 |a|.|b|."""
    errors = np.empty(b.shape[1], a.dtype)
    c[:] = 0
    for i in range(a.shape[0]):
        errors[:] = 0
        for k in range(a.shape[1]):
            a_ik = a[i, k]
            for j in range(b.shape[1]):
                c[i, j], errors[j] = dot2_step(c[i, j], errors[j], a_ik, b[k, j])
        c[i] += errors


ALGORITHMS: dict[str, Kernel] = {
    "plain": plain,
    "plain_fma": plain_fma,
    "pairwise": pairwise,
    "kahan": kahan,
    "neumaier": neumaier,
    "dot2": dot2,
}


def accumulator(format: Format) -> Format:
    """The format of sums: float32 for the 16-bit formats, else the format itself."""
    return formats.working_format(format) if format.storage.itemsize < 4 else format


def run(kernel: Kernel, contraction: Contraction, format: Format | str) -> npt.NDArray[Any]:
    """A contraction by one of the kernels, in a working format: float32 or float64 throughout;
    a 16-bit format's numbers are multiplied and summed in float32 and rounded once at the end.
    An addend is added last. Inputs of another dtype are rounded to the format first.
    """
    target = formats.get(format)
    working = accumulator(target).storage
    left = _working(contraction.left, target, working)
    right = _working(contraction.right, target, working)
    result = np.empty(contraction.batched_shape, working)
    pairs = zip(contraction.left_index, contraction.right_index, strict=True)
    with np.errstate(all="ignore"):
        for b, (i, j) in enumerate(pairs):
            kernel(left[i], right[j], result[b])
        if contraction.addend is not None:
            result += _working(contraction.addend, target, working)
        return result.reshape(contraction.shape).astype(target.storage)


def _working(values: Array, format: Format, working: npt.DTypeLike) -> Array:
    """The values, rounded to the format, as a contiguous, writable array of the working dtype (a
    read-only one would need another compilation)."""
    if values.dtype != format.storage:
        values = formats.round_to(to_float64(values), format)
    return np.require(values, working, ["C", "W"])
