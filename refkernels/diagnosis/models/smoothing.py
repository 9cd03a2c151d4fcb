"""Label smoothing spread over a wrong number of classes, or computed in float32.

The wrong number is the length of another axis, the number of all rows, the classes padded to a
block, or one more or fewer than the classes: the code reads the wrong axis, pads its vocabulary, or
reserves a class for padding.
"""

from __future__ import annotations

import functools
import math
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

_BLOCKS = (8, 16, 32, 64, 128, 256)


def over_other_classes(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The loss, or its gradient, with e / K' for e / K."""
    numbers = _numbers(problem.inputs["x"].shape) if _smooths(problem) else []
    for number in numbers:
        shares = functools.partial(_spread, number=number)
        fault = smoothed_by("smoothing_class_count", shares)
        yield from _variant(problem, fault, len(numbers), classes=number)


def in_float32(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """float64 logits smoothed in float32: either the labels are made and smoothed in float32, as in
    Paddle, where class weights act on rows; or only the two shares are, as in MindSpore."""
    if not _smooths(problem) or problem.format is not formats.BINARY64:
        return
    e, classes = np.float32(problem.params["label_smoothing"]), problem.inputs["x"].shape[-1]
    remaining, class_share = np.float32(1) - e, e / np.float32(classes)
    for cause, label_share in (
        ("float32_labels", _exact(remaining + class_share) - _exact(class_share)),
        ("float32_smoothing", _exact(remaining)),
    ):
        shares = functools.partial(_fixed, label_share=label_share, class_share=_exact(class_share))
        yield from _variant(problem, smoothed_by(cause, shares), 1)
        if problem.inputs.get("weight") is not None:
            weighted = rows_smoothed_by("row_weights", shares, classes)
            yield from _variant(problem, weighted, 1, **{"with": cause})


def _exact(number: Any) -> Fraction:
    return Fraction(float(number))


def _smooths(problem: Problem) -> bool:
    return bool(problem.params.get("label_smoothing"))


def _spread(xp: Any, n: Any, e: Any, number: int) -> tuple[Any, Any]:
    return 1 - e, e / number


def _fixed(
    xp: Any, n: Any, e: Any, label_share: Fraction, class_share: Fraction
) -> tuple[Any, Any]:
    return xp.number(label_share), xp.number(class_share)


def _variant(problem: Problem, fault: Fault, trials: int, **details: Any) -> Iterator[Variant]:
    formula = getattr(fault, problem.direction)
    if not is_right(problem, formula):
        yield Variant(fault.cause, details, answer(problem, formula), trials=trials)


def _numbers(shape: tuple[int, ...]) -> list[int]:
    """The numbers that may be mistaken for the number of classes."""
    *rows, classes = shape
    padded = [-(-classes // block) * block for block in _BLOCKS]
    numbers = [*rows, math.prod(rows), classes - 1, classes + 1, *padded]
    return [n for n in dict.fromkeys(map(int, np.array(numbers))) if n > 0 and n != classes]
