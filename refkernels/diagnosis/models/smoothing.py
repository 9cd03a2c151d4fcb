"""Label smoothing of float64 logits that is computed in float32."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.diagnosis.formulas import is_right
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.variants.formulas import answer
from refkernels.loss_ref.cross_entropy import rows_smoothed_by, smoothed_by
from refkernels.ops import Fault


def in_float32(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Either the labels are made and smoothed in float32, as in Paddle, where class weights act on
    rows; or only the two shares are, as in MindSpore."""
    if not problem.params.get("label_smoothing") or problem.format is not formats.BINARY64:
        return
    e, classes = np.float32(problem.params["label_smoothing"]), problem.inputs["x"].shape[-1]
    remaining, class_share = np.float32(1) - e, e / np.float32(classes)
    for cause, label_share in (
        ("float32_labels", _exact(remaining + class_share) - _exact(class_share)),
        ("float32_smoothing", _exact(remaining)),
    ):

        def shares(xp: Any, n: Any, e: Any, label_share: Fraction = label_share) -> Any:
            return xp.number(label_share), xp.number(_exact(class_share))

        yield from _variant(problem, smoothed_by(cause, shares))
        if problem.inputs.get("weight") is not None:
            weighted = rows_smoothed_by("row_weights", shares, classes)
            yield from _variant(problem, weighted, **{"with": cause})


def _exact(number: Any) -> Fraction:
    return Fraction(float(number))


def _variant(problem: Problem, fault: Fault, **details: Any) -> Iterator[Variant]:
    formula = getattr(fault, problem.direction)
    if not is_right(problem, formula):
        yield Variant(fault.cause, details, answer(problem, formula))
