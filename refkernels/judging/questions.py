"""What a kernel is asked, and what it says of the inputs that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.op import Direction, Op

Array = npt.NDArray[Any]
AXES = frozenset(range(5))  # how many leading axes there may be


def is_question(
    op: Op, direction: Direction, inputs: Mapping[str, Any], params: Mapping[str, Any]
) -> bool:
    """Whether the op takes these shapes and params: a beta2 of 1.007 is refused."""
    try:
        if op.definition is not None:
            op.definition.question(direction, inputs, params)
    except (ValueError, TypeError):
        return False
    return True


def is_float(array: Any) -> bool:
    return isinstance(array, np.ndarray) and formats.is_one(array.dtype)


@dataclass(frozen=True, eq=False)
class KernelQuestion:
    """One question to a kernel. `exact`: every right order of its sums gives the same bits, and
    they are demanded. `allow_overflow`: as for `judge`."""

    family: str
    name: str
    op: Op
    direction: Direction
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    exact: bool = False
    allow_overflow: bool | None = None

    @property
    def plain(self) -> bool:
        """Whether its arrays are dense, of usual lengths, and have elements."""
        usual = self.family not in ("hard", "strides", "wide", "long")
        return usual and all(a.size for a in self.inputs.values() if isinstance(a, np.ndarray))

    @property
    def owed(self) -> bool:
        """Whether no kernel may decline it: plain arrays, the op's own params, no masks."""
        masked = any(name in self.op.optional for name in self.inputs.keys() - self.floats.keys())
        return self.plain and not masked and dict(self.params) == dict(self.op.params)

    @property
    def format(self) -> Format:
        """The format of the floating inputs: the narrowest."""
        return min(map(formats.of, self.floats.values()), key=lambda format: format.p)

    @property
    def floats(self) -> dict[str, Array]:
        """The floating inputs that are arrays."""
        return {name: array for name, array in self.inputs.items() if is_float(array)}


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
