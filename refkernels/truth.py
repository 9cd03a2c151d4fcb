"""The truth of a question: what the oracle says of it, found once, when it is first asked for.

Whoever judges, explains or reports a question holds one `Truth` and takes everything from it: the
certified answer, the bound that the named forms keep to, the condition numbers, and what the plain
algorithm answers. The oracle runs once, however much of this is asked for: an op says by its
`solvers` what else follows from an answer; of an op without them every part is computed by itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, tiers
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.op import Arrays, Direction, Op, Solution

Doubles = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Truth:
    """What the oracle says of one question; every part by output name.

    op, direction, inputs, params   the question. The arrays must not change while it is kept
    format      of the outputs: every rounding to it is decided as far as the oracle can
    """

    op: Op
    direction: Direction
    inputs: Arrays
    params: Mapping[str, Any]
    format: Format

    @property
    def reference(self) -> Mapping[str, Enclosure]:
        """The certified answer."""
        return self._solved[1]

    def bound(self, format: Format | None = None) -> Mapping[str, Doubles]:
        """The error that the named forms keep to in the truth's format, or in another,
        rounding to it included.

        An op's bound is one for inputs in the format's reach; `with_underflow` where they are not.
        """
        asked = format or self.format
        if asked not in self._bounds:
            forms = self._forms if asked == self.format else {}
            largest = {
                name: np.maximum.reduce([one[name] for one in forms.values()])
                for name in next(iter(forms.values()), {})
            }
            found = MappingProxyType(largest) or self._named(self._solution.bound(asked))
            self._bounds[asked] = MappingProxyType(with_underflow(found, asked, self.inputs))
        return self._bounds[asked]

    @property
    def forms(self) -> Mapping[str, Doubles]:
        """The bound of the first output by each named form, the sharpest first: `Op.forms`."""
        first = self.op.names(self.direction)[0]
        return MappingProxyType({form: one[first] for form, one in self._forms.items()})

    @cached_property
    def _forms(self) -> dict[str, dict[str, Doubles]]:
        return self.op.forms(self.direction, self.inputs, self.params, self.format)

    @cached_property
    def condition(self) -> Mapping[str, Doubles]:
        """Condition numbers; they do not depend on the format."""
        return self._named(self._solution.condition())

    def plain(self, format: Format | None = None) -> Mapping[str, Array]:
        """What the plain sequential algorithm answers in the truth's format, or in another. Where
        that does not hold the inputs, computed in one that does, and rounded once at the end."""
        asked = format or self.format
        if asked not in self._plains:
            self._plains[asked] = MappingProxyType(self._plain(asked))
        return self._plains[asked]

    def _plain(self, format: Format) -> dict[str, Array]:
        question = self.direction, self.inputs, self.params
        if holds(format, self.inputs):
            return self.op.plain(*question, format)
        double = BINARY64 in _formats(self.inputs)
        answers = self.op.plain(*question, BINARY64 if double else BINARY32)
        return {name: formats.round_to(to_float64(a), format) for name, a in answers.items()}

    def complete(self) -> Truth:
        """The same, every part of it computed now."""
        _ = self.reference, self.bound(), self.condition, self.plain()
        return self

    @property
    def tiers(self) -> Mapping[str, int]:
        """How many elements of the answer, all outputs together, each tier of the oracle gave."""
        return self._solved[2]

    @property
    def seconds(self) -> float:
        """How long the certified answer took."""
        return self._solved[3]

    @cached_property
    def _bounds(self) -> dict[Format, Mapping[str, Doubles]]:
        return {}

    @cached_property
    def _plains(self) -> dict[Format, Mapping[str, Array]]:
        return {}

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
    """Whether the format has every number of the arrays' formats; integers have none, and every
    format has those of 8 bits."""
    return all(format.holds(own) for own in _formats(arrays))


def with_underflow(bounds: Mapping[str, Doubles], format: Format, arrays: Arrays) -> dict[str, Any]:
    """The bounds of outputs in the format, with half a subnormal for results that are subnormal in
    it and not in the inputs' formats: where it does not hold the inputs (`metrology.outputs`)."""
    lost = 0.0 if holds(format, arrays) else format.min_subnormal / 2.0
    return {name: bound + lost if lost else bound for name, bound in bounds.items()}


def _formats(arrays: Arrays) -> set[Format]:
    return {formats.of(array) for array in arrays.values() if formats.is_one(array.dtype)}
