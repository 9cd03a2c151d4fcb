"""Unstored: the bound of a kernel that keeps only its last result in the storage format.

What the forward pass saved is narrow all the same: a kernel that is given y cannot know x.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.bound import Bound
from refkernels.contexts.bound_value import BoundValue, parts
from refkernels.contexts.value import Value


class Unstored(Bound):
    """`from_saved`: whether the formula read something that the forward pass saved. The arguments
    are those of `Bound`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.from_saved = False

    def store(self, a: Value) -> BoundValue:
        return self.enter(a)

    def saved(self, a: Value) -> BoundValue:
        self.from_saved = True
        return super().store(a)

    def bound(self, result: Value) -> npt.NDArray[np.float64]:
        return parts(super().store(result)).error
