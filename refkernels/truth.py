"""The truth of a question: the oracle's answer, computed once, on first use.

Judging, explaining and reporting share one `Truth` per question. It holds the certified answer, the
bound of the op's named forms, the condition numbers, and the plain algorithm's answer. An op with
`solvers` runs its oracle once for the first three; for other ops each part is computed separately.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, tiers
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import BINARY16, BINARY32, BINARY64, Format
from refkernels.op import Arrays, Direction, Op, Solution
from refkernels.range_limits import RangeLimits

Doubles = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
_FEW = 16  # elements, whose errors are compared with those of more orders of summation:
_ORDERS = ("sequential", 0), ("reversed", 0), ("pairwise", 0), *(("random", k) for k in range(5))


@dataclass(frozen=True, eq=False)
class Truth:
    """The oracle's answer to one question, each part by output name.

    op, direction, inputs, params   the question; its arrays must not change while this is in use
    format      of the outputs: the oracle decides every rounding to it, as far as it can
    """

    op: Op
    direction: Direction
    inputs: Arrays
    params: Mapping[str, Any]
    format: Format
    _bounds: dict[Format, Mapping[str, Doubles]] = field(default_factory=dict, init=False)
    _limits: dict[Format, RangeLimits] = field(default_factory=dict, init=False)
    _plains: dict[Format, Mapping[str, Array]] = field(default_factory=dict, init=False)

    @property
    def reference(self) -> Mapping[str, Enclosure]:
        """The certified answer."""
        return self._solved[1]

    def bound(self, format: Format | None = None) -> Mapping[str, Doubles]:
        """The error bound of the named forms in the truth's format, or in another, including the
        final rounding; where a form may leave the format's range, that of `RangeLimits`."""
        target = format or self.format
        if target not in self._bounds:
            limits = self.range_limits(target)
            sharp = limits.sharpened(self.reach(target), self.reference)
            self._bounds[target] = MappingProxyType(sharp)
        return self._bounds[target]

    def _bound_in(self, format: Format) -> Mapping[str, Doubles]:
        """The op's bound, without a second run of its oracle or reading of its forms."""
        formulas = self.op.formulas
        covered = formulas is not None and formulas.widest
        forms = self._forms if format == self.format and not covered else {}
        names = next(iter(forms.values()), {})
        largest = {n: np.maximum.reduce([bounds[n] for bounds in forms.values()]) for n in names}
        return largest or self._named(self._solution.bound(format))

    def reach(self, format: Format | None = None) -> Mapping[str, Doubles]:
        """How far a named form may be from the truth, also where it leaves the format's range:
        infinite where it may overflow.

        An op's bound holds for inputs within the format's range; `with_underflow` extends it.
        """
        target = format or self.format
        return with_underflow(self.range_limits(target).bound_in(target), target, self.inputs)

    def range_limits(self, format: Format | None = None) -> RangeLimits:
        """What limits answers in the truth's format, or in another, besides rounding."""
        target = format or self.format
        if target not in self._limits:
            question = self.op, self.direction, self.inputs, self.params
            self._limits[target] = RangeLimits(*question, target, cache(self._bound_in))
        return self._limits[target]

    @property
    def forms(self) -> Mapping[str, Doubles]:
        """The first output's bound for each named form, sharpest first: `Op.forms`."""
        first = self.op.names(self.direction)[0]
        largest = self.bound()[first]
        return MappingProxyType(
            {form: np.minimum(bounds[first], largest) for form, bounds in self._forms.items()}
        )

    @cached_property
    def _forms(self) -> dict[str, dict[str, Doubles]]:
        return self.op.forms(self.direction, self.inputs, self.params, self.format)

    def attainable(self, output: str) -> tuple[dict[str, Doubles], ...]:
        """The bounds of an output by form, in groups: `Op.attainable`."""
        return tuple({n: b[output] for n, b in forms.items()} for forms in self._attained if forms)

    @cached_property
    def _attained(self) -> tuple[dict[str, dict[str, Doubles]], ...]:
        return self.op.attainable(self.direction, self.inputs, self.params, self.format)

    @cached_property
    def condition(self) -> Mapping[str, Doubles]:
        """Condition numbers; they do not depend on the format."""
        return self._named(self._solution.condition())

    def plain(self, format: Format | None = None) -> Mapping[str, Array]:
        """The plain sequential algorithm's answer in the truth's format, or in another. If that
        format cannot hold the inputs, the answer is computed in one that can and rounded once."""
        target = format or self.format
        if target not in self._plains:
            plain = partial(self.op.plain, self.direction, self.inputs, self.params)
            self._plains[target] = MappingProxyType(self._rounded(target, plain))
        return self._plains[target]

    def _rounded(
        self, format: Format, compute: Callable[[Format], Mapping[str, Array]]
    ) -> dict[str, Array]:
        """What is computed in the format, or in one that holds the inputs and rounded once."""
        if holds(format, self.inputs):
            return dict(compute(format))
        answers = compute(BINARY64 if BINARY64 in _formats(self.inputs) else BINARY32)
        return {name: formats.round_to(to_float64(a), format) for name, a in answers.items()}

    def right(self, output: str) -> Iterator[Array]:
        """Answers of right kernels, to compare an error with: the plain algorithm's; for inputs of
        16 bits, a tensor core's; and for a few elements, whose errors are small by luck in one
        order of summation, those of other orders."""
        yield self.plain()[output]
        definition = self.op.definition
        if definition is None or self.op.elementwise:
            return
        if all(format.p <= BINARY16.p for format in _formats(self.inputs)):
            for core in ("hopper", "ampere", "volta"):
                yield self._computed(arithmetic="tensor cores", core=core)[output]
        if self.reference[output].size <= _FEW:
            for (order, seed), fma in itertools.product(_ORDERS, (True, False)):
                yield self._computed(order=order, seed=seed, fma=fma)[output]

    @cached_property
    def _computed(self) -> Callable[..., Mapping[str, Array]]:
        """What a right kernel computes by the first form in an arithmetic: of all outputs, once."""
        definition = self.op.definition
        assert definition is not None
        question = self.direction, definition.first(self.direction), self.inputs, self.params
        computed = partial(definition.computed, *question)
        return cache(lambda **how: self._rounded(self.format, partial(computed, **how)))

    def complete(self) -> Truth:
        """The same truth, with every part already computed."""
        _ = self.reference, self.bound(), self.condition, self.plain()
        return self

    @property
    def tiers(self) -> Mapping[str, int]:
        """How many elements each tier of the oracle answered, in all outputs together."""
        return self._solved[2]

    @property
    def seconds(self) -> float:
        """The seconds that the certified answer took."""
        return self._solved[3]

    @property
    def _solution(self) -> Solution:
        return self._solved[0]

    @cached_property
    def _solved(self) -> tuple[Solution, Mapping[str, Enclosure], Mapping[str, int], float]:
        begin = time.perf_counter()
        with tiers.counted() as tally:
            solution = self.op.solve(
                self.direction, self.inputs, self.params, ("rounding", self.format)
            )
        seconds = time.perf_counter() - begin
        return solution, self._named(solution.answer), MappingProxyType(tally), seconds

    def _named(self, result: Any) -> Mapping[str, Any]:
        return MappingProxyType(self.op.by_name(self.direction, result))


def holds(format: Format, arrays: Arrays) -> bool:
    """Whether the format represents every number of the arrays' formats. Integer arrays have no
    format, and every format holds 8-bit floats."""
    return all(format.holds(other) for other in _formats(arrays))


def with_underflow(bounds: Mapping[str, Doubles], format: Format, arrays: Arrays) -> dict[str, Any]:
    """The bounds of outputs in the format. If it does not hold the inputs, half its smallest
    subnormal is added, for results that are subnormal only in it (`metrology.outputs`)."""
    underflow = 0.0 if holds(format, arrays) else format.min_subnormal / 2.0
    return {name: bound + underflow if underflow else bound for name, bound in bounds.items()}


def _formats(arrays: Arrays) -> set[Format]:
    return {formats.of(array) for array in arrays.values() if formats.is_one(array.dtype)}
