"""Amplification: an upper bound on how much a formula magnifies relative errors of its inputs.

    amplification_i >= sum_j |dy_i/dx_j| |x_j| / |y_i|,  the condition number

Operations are exact, and every input may be off by eps |x|. `Bound` without roundings then gives
how far y may be off: each of its rules is at least the linear one, sum |df/da| r_a. The paths from
one input to y are added in magnitude, so that softmax(x) is charged for e and for sum e; the
condition number itself comes from `Gradient`. The pivot has derivative 0 here too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.rounding import Doubles, Rounding
from refkernels.contexts.ball import outward
from refkernels.contexts.bound import Bound
from refkernels.contexts.bound_value import BoundValue, parts
from refkernels.contexts.value import Value


class _Exact(Rounding):
    """No rounding, no range."""

    unit = 0.0
    half = 0.0

    def beyond(self, size: Doubles) -> npt.NDArray[np.bool_]:
        return np.asarray(~(size < np.inf))

    def lost(self, size: Doubles, underflow: bool = True) -> Doubles:
        return np.zeros(np.shape(size))

    def holds(self, values: Doubles) -> npt.NDArray[np.bool_]:
        return np.ones(np.shape(values), bool)

    def narrower(self, other: Rounding) -> bool:
        return False


class Amplification(Bound):
    """Exact operations on inputs of relative error `eps`; params are exact."""

    def __init__(self, eps: float = 2.0**-40) -> None:
        super().__init__("float64", limit=0.0)
        self.working = self.storage = _Exact(formats.BINARY64)
        self.eps = eps
        self.name = "Amplification"

    def array(self, values: npt.NDArray[Any]) -> BoundValue:
        exact = self.ball.array(values)
        return BoundValue(self, exact, outward(self.eps * np.abs(exact.mid)))

    def number(self, value: Any) -> BoundValue:
        return BoundValue(self, self.ball.number(value), 0.0)

    def pi(self) -> BoundValue:
        return BoundValue(self, self.ball.pi(), 0.0)

    def library(
        self, formula: Callable[..., Value], limit: int, inputs: Sequence[Value], *beside: Any
    ) -> Value:
        return formula(self, *inputs, *beside)

    def amplification(self, result: Value) -> Doubles:
        """An upper bound on the condition number of each element; infinite where the result may be
        0, and 0 where it does not depend on the inputs."""
        value = parts(result)
        with np.errstate(all="ignore"):
            least = np.abs(value.exact.mid) - value.exact.radius * (1.0 + 2.0**-50)
            ratio = value.error / (least * self.eps) * (1.0 + 2.0**-40)
            ratio = np.where(least > 0.0, ratio, np.inf)
            return np.where(value.error > 0.0, ratio, 0.0)
