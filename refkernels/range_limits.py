"""What limits an answer besides rounding: the format's range, and inputs that rounding undoes.

The *scale* of an element is the larger of its exact value and of the RMS of its output. A bound of
more than an eighth of it is *vague*: it would let zeros pass, or the truth with its sign changed.
Where it is vague,

- and more than 4 times the bound with unlimited exponents, the element is *range-limited*: it is
  held to the latter, or to what a named form computes when an intermediate result overflows or
  underflows (`contexts.reachable`);
- otherwise rounding alone may undo the element: an error of more than an eighth of its scale is
  undecided (`ill_conditioned`).

Where all exact values of an output are 0, it has no scale. Then a bound is taken at its word unless
the inputs are next to a singularity: unless it grows faster with the unit roundoff than it does at
a higher precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format, without_range, working_format
from refkernels.op import Arrays, Direction, Op

if TYPE_CHECKING:
    from refkernels.ops.formulas import Formulas

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
VAGUE = 1.0 / 8.0
"""Of an element's scale: a larger bound says nothing about it."""
LIMITED = 4.0
"""Times the bound with unlimited exponents: a larger bound allows for a range that is left."""
_FINER = 10  # bits of precision between bounds that are compared


def doubtful_error(exact: Enclosure, format: Format) -> Doubles | None:
    """An eighth of every element's scale, the format's smallest subnormal at least; NaN where the
    exact value is not finite. None where the output has no scale."""
    with np.errstate(all="ignore"):
        size = np.abs(exact.hi) * np.exp2(np.asarray(exact.scale, np.float64))
        size = np.where(np.isfinite(exact.hi), size, np.nan)
        known = np.isfinite(size)
        if not np.any(exact.hi[known]):
            return None
        largest = float(np.max(size, where=known, initial=0.0))
        squares = np.sum(np.square(size / (largest or 1.0)), where=known)
        rms = largest * float(np.sqrt(squares / np.count_nonzero(known)))
        return np.asarray(np.maximum(np.maximum(size, rms) * VAGUE, format.min_subnormal))


def _leaves(bound: Doubles, unlimited: Doubles) -> Bools:
    """Where a bound allows for a range that is left, or for an infinite input."""
    return np.asarray(np.isinf(bound) | (bound > LIMITED * unlimited))


@dataclass(frozen=True, eq=False)
class RangeLimits:
    """The readings of an op's formulas that say more than its bound, each made on first use.

    `bound_in`: the op's bound in a format, whose exponents may be wider than any kernel's.
    """

    op: Op
    direction: Direction
    inputs: Arrays
    params: Mapping[str, Any]
    format: Format
    bound_in: Callable[[Format], Mapping[str, Doubles]]

    def sharpened(self, bounds: Mapping[str, Doubles], exact: Mapping[str, Enclosure]) -> Any:
        """The bounds, that of unlimited exponents in range-limited elements."""
        vague = {n: self._vague(b, exact[n]) for n, b in bounds.items() if n in exact}
        if self._formulas is None or not any(where.any() for where in vague.values()):
            return bounds
        sharp = self._of_all(self._unlimited)
        return dict(bounds) | {
            name: np.where(where & _leaves(bounds[name], sharp[name]), sharp[name], bounds[name])
            for name, where in vague.items()
        }

    def _vague(self, bound: Doubles, exact: Enclosure) -> Bools:
        least = doubtful_error(exact, self.format)
        return np.asarray((bound > 0.0 if least is None else bound > least) & np.isfinite(exact.hi))

    def reached(self, output: str, got: npt.NDArray[Any], bound: Doubles, where: Bools) -> Bools:
        """Which of these elements, outside the bound, have what a named form may give where an
        intermediate result leaves the range; of an op without forms, infinities and NaN where its
        bound is infinite."""
        if self._formulas is None:
            return np.asarray(where & np.isinf(bound) & ~np.isfinite(to_float64(got)))
        # What a form computes is within the bound of the forms, but where that is infinite or has
        # been sharpened: elsewhere nothing has to be read to refuse it.
        own = self.bound_in(self.format)[output]
        left = where & (np.isinf(own) | (bound < own))
        if left.any():
            left &= _leaves(own, self._of_all(self._unlimited)[output])
        if self.op.formulas is None:  # a bound of its own may hold where all forms leave the range
            named = self._of_all(self._named(self.format))[output]
            if (wider := where & (named > bound)).any():
                wide_named = self._of_all(self._forms_unlimited)[output]
                left |= wider & _leaves(named, wide_named) & np.isfinite(wide_named)
        if not left.any():  # what a form computes there takes longer than its bounds
            return left
        wide, found = to_float64(got), np.zeros(got.shape, np.bool_)
        for low, high, nan in (outputs[output] for outputs in self._reachable.values()):
            found |= ((low <= wide) & (wide <= high)) | (np.isnan(wide) & nan)
        return found & left

    @cached_property
    def _reachable(self) -> dict[str, dict[str, Any]]:
        assert self._formulas is not None
        return self._formulas.reachable(*self._question, self.format)

    def regular(self, output: str) -> bool:
        """Whether rounding is small for an output without a scale."""
        if self._formulas is None:
            return True
        formulas, sizes = self._formulas, []
        for bits in (0, _FINER, 2 * _FINER):
            wide = without_range(self.format), without_range(working_format(self.format))
            finer, working = (replace(f, p=f.p + bits, emax=1022) for f in wide)
            bounds = formulas.form_bounds(*self._question, finer, working=working).values()
            sizes.append(max(float(np.max(bound[output], initial=0.0)) for bound in bounds))
        first, second, third = sizes
        return third == 0.0 or (np.isfinite(first) and first * third <= 4.0 * second * second)

    def forms(self, output: str, where: Bools) -> dict[str, list[str]]:
        """Which forms overflow or underflow in some of these elements, and which do not leave the
        range in any."""
        told: dict[str, list[str]] = {"overflows": [], "underflows": [], "stays": []}
        if self._formulas is None:
            return told
        limited = {
            "overflows": self._named(without_range(self.format, above=False)),
            "underflows": self._named(without_range(self.format, below=False)),
        }
        for form, bounds in self._forms_unlimited.items():
            wide, unlimited = ((w, b[form][output]) for w, b in limited.items()), bounds[output]
            words = [word for word, bound in wide if np.any(_leaves(bound, unlimited) & where)]
            for word in words or ["stays"]:
                told[word].append(form)
        return told

    # --- the readings ------------------------------------------------------------------------

    @cached_property
    def _formulas(self) -> Formulas | None:
        """The named forms; None of no elements, and for a function, whose bound holds in the whole
        range, but that of its slope (`elementwise.bounds`)."""
        function = self.op.real_function if self.direction == "backward" else None
        empty = not all(np.size(array) for array in self.inputs.values())
        if empty or self.op.definition is not None or function is None:
            return None if empty else self.op.definition
        return function.formulas

    @cached_property
    def _forms_unlimited(self) -> dict[str, dict[str, Doubles]]:
        """The bound of each form with unlimited exponents, but for a result in subnormals."""
        return {f: self._stored(b) for f, b in self._named(without_range(self.format)).items()}

    @cached_property
    def _unlimited(self) -> Mapping[str, Mapping[str, Doubles]]:
        """The same, of all forms together under "" for an op with a bound of its own."""
        if self.op.formulas is not None:
            return self._forms_unlimited
        return {"": self._stored(self.bound_in(without_range(self.format)))}

    def _stored(self, bounds: Mapping[str, Doubles]) -> dict[str, Doubles]:
        return {name: bound + self.format.min_subnormal / 2.0 for name, bound in bounds.items()}

    @cached_property
    def _named(self) -> Callable[[Format], Mapping[str, Mapping[str, Doubles]]]:
        """The bound of each named form in a format; the op's own, where it has a single one."""
        formulas = self._formulas
        assert formulas is not None
        if self.op.formulas is None and len(forms := formulas.of(self.direction).forms) == 1:
            return lambda format: dict.fromkeys(forms, self.bound_in(format))
        return cache(partial(formulas.form_bounds, *self._question))

    @property
    def _question(self) -> tuple[Direction, Arrays, Mapping[str, Any]]:
        return self.direction, self.inputs, {**self.op.params, **self.params}

    def _of_all(self, bounds_of_forms: Mapping[str, Mapping[str, Doubles]]) -> dict[str, Doubles]:
        """The bound of all forms; of the widest one where that covers the others."""
        widest = self.op.formulas.widest if self.op.formulas else ""
        chosen = [bounds_of_forms[widest]] if widest else list(bounds_of_forms.values())
        return {name: np.maximum.reduce([b[name] for b in chosen]) for name in chosen[0]}
