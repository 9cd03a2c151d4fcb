"""The error that an answer may have, and where every bit is determined.

**Products that count.** A worst-case bound of a sum of products grows with the number K of its
terms, and a product with a zero factor rounds nothing: adding 0 is exact. So the bound of a sum of
K terms is multiplied by (m + 12) / K, where m of its products are not zero. The bound is
K u P + K h (1 + K u) (`matmul_ref.bounds`), and grows with K alone; with m + 12 terms it holds for
a kernel that takes a product by the three largest of the four products of split floats (3xTF32),
which errs by 3 2^-22 |a b| = 12 u |a b| more, also where K is small. The op itself computes m, from
inputs with ones in place of numbers that are not zero. A formula's bound counts the terms of each
of its sums that are not zero (`contexts.bound`); its products of matrices get the same 12. Outputs
of fewer than 24 bits keep their bound: the rounding of the result outweighs everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    shares, allowed = _shares(question), {}
    for name, bound in _bounds(question, asked, formats).items():
        allowed[name] = np.broadcast_to(bound, asked.reference[name].shape)
        if formats[name].p >= BINARY32.p and name in question.op.sums:
            allowed[name] = np.asarray(allowed[name] * shares.get(name, 1.0))
    return allowed


def _bounds(
    question: KernelQuestion, asked: answered.Asked, formats: Mapping[str, Format]
) -> Mapping[str, Doubles]:
    """The bounds of the op's forms, with products of matrices by split floats."""
    if question.op.formulas is None:
        return {name: truth.reach()[name] for name, truth in asked.truths.items()}
    by_format = {}
    for format in set(formats.values()):
        extra = SPLIT if format.p >= BINARY32.p else 0.0
        bounds = question.op.formulas.bound(
            question.direction, question.inputs, question.params, format, extra
        )
        by_format[format] = with_underflow(bounds, format, question.inputs)
    return {name: by_format[formats[name]][name] for name in asked.reference}


def _shares(question: KernelQuestion) -> dict[str, Any]:
    """(m + 12) / K of each output: see the module's header."""
    if not question.op.sums:
        return {}
    masks = {name: (array != 0).astype(np.float64) for name, array in question.inputs.items()}
    ones = {name: np.ones_like(mask) for name, mask in masks.items()}
    counted, terms = (
        question.op.plain(question.direction, arrays, question.params, BINARY64)
        for arrays in (masks, ones)
    )
    with np.errstate(all="ignore"):
        return {n: np.where(terms[n] > 0, (counted[n] + SPLIT) / terms[n], 1.0) for n in counted}


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
