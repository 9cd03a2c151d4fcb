"""What a kernel is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.op import Direction, Op

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class KernelQuestion:
    """One question to a kernel. `exact`: every right order of its sums gives the same bits, and
    they are demanded. `plain`: dense arrays with elements. `allow_overflow`: as for `judge`."""

    family: str
    name: str
    op: Op
    direction: Direction
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    exact: bool = False
    plain: bool = True
    allow_overflow: bool | None = None

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
        return {
            name: array
            for name, array in self.inputs.items()
            if isinstance(array, np.ndarray) and formats.is_one(array.dtype)
        }
