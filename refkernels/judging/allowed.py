"""The error that an answer may have, and where every bit is determined.

A worst-case bound of a sum grows with the number of its terms. Adding 0 rounds nothing, so a
formula's bound counts the terms that are not 0 (`contexts.bound`). For a product of matrices 12 are
added: a kernel that takes a product by the three largest of the four products of split floats
(3xTF32) errs by 3 2^-22 |a b| = 12 u |a b| more, also where there are few. Outputs of fewer than 24
bits need none: the rounding of the result outweighs everything else.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.judging.questions import KernelQuestion
from refkernels.metrology import outputs as answered
from refkernels.truth import with_underflow

Doubles = npt.NDArray[np.float64]
SPLIT = 12.0


def errors(
    question: KernelQuestion, asked: answered.Asked, formats: Mapping[str, Format]
) -> dict[str, Doubles]:
    """The allowed error of every element of the outputs, each in its format, also where a form
    leaves the format's range."""
    op = question.op
    if op.definition is None or (op.formulas is None and not op.sums):
        return {name: truth.reach()[name] for name, truth in asked.truths.items()}
    by_format = {}
    for format in set(formats.values()):
        extra = SPLIT if format.p >= BINARY32.p else 0.0
        bounds = op.definition.bound(
            question.direction, question.inputs, question.params, format, extra
        )
        by_format[format] = with_underflow(bounds, format, question.inputs)
    return {
        name: np.broadcast_to(by_format[formats[name]][name], exact.shape)
        for name, exact in asked.reference.items()
    }


def sums_that_fit(question: KernelQuestion) -> dict[str, bool]:
    """By output, whether the sums of its terms' absolute values stay below 2^p, so that no partial
    sum of these integers rounds. The op itself computes them, from absolute values."""
    sizes = {n: np.abs(to_float64(array)) for n, array in question.floats.items()}
    largest = question.op.plain(
        question.direction, {**question.inputs, **sizes}, question.params, BINARY64
    )
    least = max(question.format.p, BINARY32.p)
    return {
        name: bool(np.max(np.abs(array), initial=0.0) < 2.0 ** min(least, 52))
        for name, array in largest.items()
    }
