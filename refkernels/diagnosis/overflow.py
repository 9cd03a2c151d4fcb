"""A partial sum of products that overflows; the evidence is in the places of the wrong elements."""

from __future__ import annotations

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis import places, products
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.problem import Array, Doubles, Problem
from refkernels.records.words import OR

_BORDER = 2.0**-5  # in binary logarithms: this near the format's end, either side is possible


def named(problem: Problem, format: Format) -> str:
    """The formats of that range that may hold an intermediate."""
    held = dict.fromkeys((format, problem.format, formats.working_format(problem.format)))
    return OR.join(other.name for other in held if other.emax == format.emax)


def of_product(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Claim | None:
    """A partial sum that may have overflowed (in float16 too); every wrong element is special."""
    product = products.of(problem, output)
    if product is None or np.isfinite(wide[wrong]).any():
        return None
    with np.errstate(all="ignore"):
        size = np.abs(to_float64(product.a)) @ np.abs(to_float64(product.b))
        if product.bias is not None:
            size = size + np.abs(to_float64(product.bias))
        size = np.log2(size).reshape(wide.shape)
    for format in dict.fromkeys((problem.format, formats.BINARY16)):
        beyond = size > format.emax + 1 - _BORDER
        if beyond[wrong].all():
            details = {
                "intermediate": "a partial sum",
                "format": named(problem, format),
                "wrong": int(np.count_nonzero(wrong)),
                "overflows": int(np.count_nonzero(size > format.emax + 1)),
            }
            earned = places.by_key(size, beyond, wrong & beyond)
            bits_gained = places.shared(problem, output, wrong, earned)
            prediction = Prediction(wrong=wrong, bits_gained=bits_gained)
            return Claim("early_overflow", output, prediction, details, trials=2)
    return None
