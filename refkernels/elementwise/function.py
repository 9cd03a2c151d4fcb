"""Function: one real function of one variable, as the oracles of functions need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from refkernels.kernels.real_function import Doubles, RealFunction
from refkernels.op import Case, Invariant
from refkernels.ops.formula import derived
from refkernels.ops.formula_op import formulas_of
from refkernels.ops.formulas import Formulas

if TYPE_CHECKING:
    from refkernels.elementwise.running import Primitive

_DERIVED = partial(derived, outputs=("y",), cotangents={"dy": "y"}, inputs=("x",))


@dataclass(frozen=True)
class Form:
    """A named way to compute a function, as a formula: `formula(xp, x)`, or `(xp, dy, x)` of dx."""

    name: str
    formula: Callable[..., Any]

    def __call__(self, xp: Any, **arrays: Any) -> Any:
        return self.formula(xp, *arrays.values())


@dataclass(frozen=True)
class End:
    """Where f' is its limit for every format, but for the side on which it lies: x beyond `start`,
    away from zero. There f' lies strictly between the limit, ±0 or 1, and 2^-1000 of 1, or
    2^-10^8 beside a zero, towards `side`."""

    start: float
    limit: float
    side: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Function(RealFunction):
    """f and f', with all that an op has.

    `condition(x)`, `slope_condition(x)`: |x f'(x) / f(x)| and |x f''(x) / f'(x)| of float64 x.
    `forms`: those of an f that is made of other functions, which has no `limit`; `slope_forms`:
    those of dy f'(x), for every function. `primitives`: the library functions that the forms call.
    `truth(xp, x)`, `gradient(xp, dy, x)`: the certified formulas of f and of dy f'(x), where the
    definition and its derivative lose digits or zeros.
    `domain`: its ends, where the formula of f' does not show them, or is long in finding them.
    `ends`: where f' saturates.
    """

    condition: Callable[[Doubles], Doubles]
    slope_condition: Callable[[Doubles], Doubles]
    cases: Callable[[], list[Case]]
    invariants: tuple[Invariant, ...] = ()
    forms: tuple[Form, ...] = ()
    slope_forms: tuple[Form, ...] = ()
    primitives: Mapping[str, Primitive] = field(default_factory=dict)
    truth: Callable[..., Any] | None = None
    gradient: Callable[..., Any] | None = None
    domain: tuple[float, float] = (-float("inf"), float("inf"))
    ends: tuple[End, ...] = ()

    @cached_property
    def formulas(self) -> Formulas:
        """The formula of f, with the forms of dy f'(x) that its bound is proven for."""
        truth = self.truth or self.formula
        return formulas_of(
            self.name,
            "x[...] -> y[...]",
            forms={"formula": self.formula},
            truth=truth,
            backward={form.name: form for form in self.slope_forms},
            backward_truth=self.gradient or _DERIVED(truth),
        )
