"""Function: one real function of one variable, as the shared machinery needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.fast import Fast
from refkernels.op import Case, Invariant

if TYPE_CHECKING:
    from refkernels.elementwise.running import Primitive

Doubles: TypeAlias = npt.NDArray[np.float64]
Array: TypeAlias = npt.NDArray[Any]
Ball: TypeAlias = tuple[int, int, int]  # (mid ± radius) * 2^exponent
Filler: TypeAlias = Callable[[Any, Any, Any, Any, Any], None]
LIMIT = 4.0
LIMIT_SOURCE = (
    "library limit: 4 ulp, the largest single-precision maximum of such functions in the CUDA C++ "
    "Programming Guide; OpenCL's full profile has 2 to 5, and 16 for erf and erfc"
)


@dataclass(frozen=True)
class Form:
    """A named way to compute a function, as a formula: `formula(xp, x)`, or `(xp, dy, x)` of dx."""

    name: str
    formula: Callable[..., Any]


@dataclass(frozen=True)
class Function:
    """f and f', in three tiers.

    `fast`: the float64 tier, for inputs of 32 bits and fewer (`Fast`).
    `values(x, hi, lo, radius, scale)`, `slopes(...)`: the double-double tier. They fill flat arrays
    of one length for any float64 x, specials included, so that f(x) lies in (hi + lo ± radius)
    2^scale with hi = fl(hi + lo); on the calling thread, with the GIL released.
    `exact_value(x, precision)`, `exact_slope(x, precision)`: a ball that holds f(x) for a finite x
    that the tier before left open, about as sharp as the precision in bits; radius 0 where the
    value is a binary fraction.
    `exact_gradient(dy, x, precision)`: the same for dy f'(x) at once, for a function whose slope is
    algebraic: dy / x may be a rounding boundary where 1 / x is not even a binary fraction.
    `condition(x)`, `slope_condition(x)`: |x f'(x) / f(x)| and |x f''(x) / f'(x)| of float64 x.
    `limit`: the ulp that a library's f may be off, with its `limit_source`; None for an f made of
    other functions, which has `forms` instead. `slope_forms`: the forms of dy f'(x), for every
    function. `primitives`: the library functions that the forms call. `definition`: f in terms of
    the primitives of formulas, where it is none itself.
    """

    name: str
    fast: Fast
    values: Filler
    slopes: Filler
    exact_value: Callable[[float, int], Ball]
    exact_slope: Callable[[float, int], Ball]
    condition: Callable[[Doubles], Doubles]
    slope_condition: Callable[[Doubles], Doubles]
    cases: Callable[[], list[Case]]
    invariants: tuple[Invariant, ...] = ()
    exact_gradient: Callable[[float, float, int], Ball] | None = None
    limit: float | None = LIMIT
    limit_source: str = LIMIT_SOURCE
    forms: tuple[Form, ...] = ()
    slope_forms: tuple[Form, ...] = ()
    primitives: Mapping[str, Primitive] = field(default_factory=dict)
    definition: Callable[..., Any] | None = None

    def formula(self, xp: Any, x: Any) -> Any:
        """f(x) as a formula: its definition, or the primitive of its name."""
        return self.definition(xp, x) if self.definition else xp.function(self.name, x)
