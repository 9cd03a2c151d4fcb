"""Matrix products in a working precision: the sequential algorithm, bit for bit as written."""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, sums_in_order
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.matmul_ref.contraction import Array, Contraction


def accumulator(format: Format) -> Format:
    """The format of sums: float32 for the 16-bit formats, else the format itself."""
    return formats.working_format(format) if format.storage.itemsize < 4 else format


def plain(contraction: Contraction, format: Format | str) -> npt.NDArray[Any]:
    """A contraction in a working format, its terms added in order, an addend last: float32 or
    float64 throughout; a 16-bit format's numbers are multiplied and summed in float32 and rounded
    once at the end. Inputs of another dtype are rounded to the format first.

    |error| <= K u |a|.|b| while nothing over- or underflows, with no condition on K. Source:
    Jeannerod and Rump (2013), doi:10.1137/120894488.
    """
    target = formats.get(format)
    working = accumulator(target).storage
    left = _working(contraction.left, target, working)
    right = _working(contraction.right, target, working)
    result = np.zeros(contraction.batched_shape, working)
    pairs = zip(contraction.left_index, contraction.right_index, strict=True)
    with np.errstate(all="ignore"):
        for b, (i, j) in enumerate(pairs):
            sums_in_order.products(left[i], right[j], result[b])
        if contraction.addend is not None:
            result += _working(contraction.addend, target, working)
        return result.reshape(contraction.shape).astype(target.storage)


def _working(values: Array, format: Format, working: npt.DTypeLike) -> Array:
    """The values, rounded to the format, as a contiguous, writable array of the working dtype (a
    read-only one would need another compilation)."""
    if values.dtype != format.storage:
        values = formats.round_to(to_float64(values), format)
    return np.require(values, working, ["C", "W"])
