"""The questions that an op takes, and the inputs that a kernel says it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.op import Direction, Op
from refkernels.ops.function_formulas import definition

AXES = frozenset(range(5))  # how many leading axes there may be


def is_question(
    op: Op, direction: Direction, inputs: Mapping[str, Any], params: Mapping[str, Any]
) -> bool:
    """Whether the op takes these shapes and params: a beta2 of 1.007 is refused."""
    try:
        definition(op).question(direction, inputs, params)
    except (ValueError, TypeError):
        return False
    return True


def is_float(array: Any) -> bool:
    return isinstance(array, np.ndarray) and formats.is_one(array.dtype)


@dataclass(frozen=True)
class KernelDomain:
    """The inputs that a kernel takes. `left_out`: optional ones that it does not take; `lengths`:
    the only ones, by letter; `dtypes`: the only formats of an input of integers or 8-bit numbers;
    `shapes`: those of its use, by input, which are asked first; `axes`: the numbers of leading axes
    or, if the op's cases give the shapes, of the first input; `allow_overflow`: as for `judge`."""

    left_out: frozenset[str] = frozenset()
    lengths: Mapping[str, Sequence[int]] | None = None
    dtypes: Mapping[str, Sequence[str]] | None = None
    shapes: Mapping[str, Sequence[int]] | None = None
    axes: frozenset[int] = AXES
    allow_overflow: bool | None = None


ANYTHING = KernelDomain()
