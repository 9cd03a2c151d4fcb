"""Label smoothing spread over another number of classes than the row has.

The number is that of another axis, of all rows, of classes padded to a block, or one more or less
than the classes: code that reads the wrong axis, pads its vocabulary, or keeps a class for padding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from refkernels.diagnosis.formulas import is_right
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.variants.formulas import answer
from refkernels.loss_ref.cross_entropy import spread_over

_BLOCKS = (8, 16, 32, 64, 128, 256)


def over_other_classes(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The loss, or its gradient, with e / K' for e / K."""
    if not problem.params.get("label_smoothing"):
        return
    numbers = _numbers(problem.inputs["x"].shape)
    for number in numbers:
        formula = getattr(spread_over(number), problem.direction)
        if not is_right(problem, formula):
            details = {"classes": number}
            yield Variant(
                "smoothing_class_count", details, answer(problem, formula), trials=len(numbers)
            )


def _numbers(shape: tuple[int, ...]) -> list[int]:
    """What may be taken for the number of classes."""
    *rows, classes = shape
    padded = [-(-classes // block) * block for block in _BLOCKS]
    numbers = [*rows, math.prod(rows), classes - 1, classes + 1, *padded]
    return [n for n in dict.fromkeys(map(int, np.array(numbers))) if n > 0 and n != classes]
