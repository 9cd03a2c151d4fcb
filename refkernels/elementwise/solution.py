"""An elementwise answer with the bound and the condition numbers that follow from it."""

from dataclasses import dataclass
from functools import cached_property

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.question import Certify
from refkernels.elementwise import bounds, oracle
from refkernels.elementwise.function import Array, Doubles, Function


@dataclass(frozen=True)
class FunctionSolution:
    """A `refkernels.op.Solution` of y = f(x). The answer's values give the bound."""

    function: Function
    x: Array
    certify: Certify

    @cached_property
    def answer(self) -> Enclosure:
        return oracle.forward(self.function, self.x, self.certify)

    def bound(self, format: Format) -> Doubles:
        return bounds.forward_bound(self.function, self.x, format=format, known=self.answer)

    def condition(self) -> Doubles:
        return bounds.forward_condition(self.function, self.x)


@dataclass(frozen=True)
class SlopeSolution:
    """A `refkernels.op.Solution` of dx = dy f'(x), with the bound of its named forms."""

    function: Function
    dy: Array
    x: Array
    certify: Certify

    @cached_property
    def answer(self) -> Enclosure:
        return oracle.backward(self.function, self.dy, self.x, self.certify)

    def bound(self, format: Format) -> Doubles:
        return bounds.backward_bound(self.function, self.dy, self.x, format=format)

    def condition(self) -> Doubles:
        return bounds.backward_condition(self.function, self.dy, self.x)
