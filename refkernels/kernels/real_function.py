"""RealFunction: one real function of one variable, as formulas and oracles know it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.fast import Fast

Doubles: TypeAlias = npt.NDArray[np.float64]
Array: TypeAlias = npt.NDArray[Any]
Filler: TypeAlias = Callable[[Any, Any, Any, Any, Any], None]
LIMIT = 4.0
LIMIT_SOURCE = (
    "library limit: 4 ulp, the largest single-precision maximum of such functions in the CUDA C++ "
    "Programming Guide; OpenCL's full profile has 2 to 5, and 16 for erf and erfc"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class RealFunction:
    """f in two tiers, and what it is.

    `fast`: the float64 tier, for inputs of 32 bits and fewer (`Fast`).
    `values(x, hi, lo, radius, scale)`: the double-double tier. It fills flat arrays of one length
    for any float64 x, specials included, so that f(x) lies in (hi + lo ± radius) 2^scale with
    hi = fl(hi + lo); on the calling thread, with the GIL released.
    `limit`: the ulp that a library's f may be off, with its `limit_source`; None for an f made of
    other functions.
    `definition`: f in terms of the primitives of formulas, where it is none itself.
    """

    name: str
    fast: Fast
    values: Filler
    limit: float | None = LIMIT
    limit_source: str = LIMIT_SOURCE
    definition: Callable[..., Any] | None = None

    def formula(self, xp: Any, x: Any) -> Any:
        """f(x) as a formula: its definition, or the primitive of its name."""
        return self.definition(xp, x) if self.definition else xp.function(self.name, x)
