"""Rows that a kernel never wrote, from one row to the last: it stopped there.

Their places alone are evidence: by chance, k wrong rows of n are all among the last m once in
C(n, k) / C(m, k). Most of these m must be wrong, and the first must give a reason to stop: a result
that is not defined, or 0. If all wrong rows are larger than the others, that may be the reason.

nnacl's float32 softmax, which is MindSpore's on a CPU, returns an error at a row whose exponentials
sum to 0, and the op goes on (mindspore-ai/mindspore, nnacl/fp32/softmax_fp32.c, SoftmaxLastAxis).
"""

from __future__ import annotations

import math

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import places
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.problem import Array, Problem

CAUSE = "stopped_early"
_FEWEST = 2  # rows before the first wrong one, and from it on


def early(problem: Problem, output: str, wrong: Array) -> Claim | None:
    """The claim that the output ends with rows most of whose elements are wrong, after right rows
    and one without a result. None for an op whose elements do not depend on rows."""
    definition = problem.op.definition
    if definition is None or not definition.forward.signature.coupled or wrong.ndim < 2:
        return None
    by_row = wrong.reshape(-1, wrong.shape[-1])
    wrong_rows = np.any(by_row, axis=1)
    rows = len(by_row)
    first = int(np.argmax(wrong_rows))
    number = int(np.count_nonzero(wrong_rows))
    mostly = 2 * np.count_nonzero(by_row) >= by_row[first:].size
    if min(first, number) < _FEWEST or not mostly:
        return None
    exact = np.asarray(problem.truth.reference[output]).reshape(by_row.shape)[first - 1 : first + 1]
    if not np.any(~np.isfinite(exact).all(axis=1) | ~exact.any(axis=1)):
        return None
    bits = places.bits(rows, rows - first, number)
    prediction = Prediction(
        wrong=wrong,
        counted=not _ordered(problem, rows, first),
        bits_gained=places.shared(problem, output, wrong, bits),
    )
    details = {"first": first, "rows": rows}
    return Claim(CAUSE, output, prediction, details, price=math.log2(rows))


def _ordered(problem: Problem, rows: int, first: int) -> bool:
    """Whether the rows after the first wrong one lie beyond those before it by some size of an
    input's rows."""
    for x in problem.inputs.values():
        if x.ndim < 2 or x.size != rows * x.shape[-1] or x.dtype.kind in "biu":
            continue
        values = to_float64(x).reshape(rows, -1)
        finite = np.where(np.isfinite(values), values, 0.0)
        for size in (finite.max(axis=1), finite.min(axis=1), np.abs(finite).sum(axis=1)):
            before, after = size[:first], size[first + 1 :]
            if after.max() < before.min() or before.max() < after.min():
                return True
    return False
