"""LayerNorm's mean and rstd stored in a narrower format before use, rounded or truncated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.models.layernorm import rowwise
from refkernels.diagnosis.problem import Arrays, Doubles, Problem

_CAUSES = {"float32": "float32_statistics"}
_OWN = 8.0  # the error of a kernel's own statistics, in units of the working precision


def stored_statistics(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """y = (x - fl(mean)) fl(rstd) weight + bias and the gradients, with fl to a format narrower
    than the kernel's working precision. Where the kernel's mean may round to the other neighbour,
    the answer is uncertain by that distance."""
    if not {"y", "dx", "dweight"} & set(outputs):
        return
    rows = rowwise.of(problem, outputs)
    work = formats.BINARY64 if problem.format.p > formats.BINARY32.p else formats.BINARY32
    size = np.abs(rows.x).max(axis=1, initial=0.0, keepdims=True)
    with np.errstate(all="ignore"):
        mean_error = _OWN * work.u * size
        rstd_error = _OWN * work.u * rows.rstd * (1.0 + np.square(size * rows.rstd))
    for format in (formats.BINARY32, formats.BINARY16, formats.BFLOAT16):
        if format.p >= work.p:
            continue
        for truncates in (False, True):
            mean, mean_spread = _stored(rows.mean, mean_error, format, truncates)
            rstd, rstd_spread = _stored(rows.rstd, rstd_error, format, truncates)
            cause = _CAUSES.get(format.name, "low_precision_statistics")
            yield from rowwise.variants(
                "truncated_statistics" if truncates else cause,
                {"format": format.name},
                problem,
                rows,
                mean,
                rstd,
                (mean_spread, rstd_spread),
            )


def _stored(
    values: Doubles, error: Doubles, format: Format, truncates: bool
) -> tuple[Doubles, Doubles]:
    """The values in the format, and the distance to the neighbour that they may have instead."""
    store = formats.truncate_to if truncates else formats.round_to
    with np.errstate(all="ignore"):
        kept, low, high = (
            to_float64(store(shifted, format))
            for shifted in (values, values - error, values + error)
        )
        return kept, np.nan_to_num(np.maximum(high - kept, kept - low), nan=0.0)
