"""An elementwise answer with the bound and the condition numbers that follow from it."""

from dataclasses import dataclass
from functools import cached_property

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.question import Certify
from refkernels.elementwise import bounds, oracle
from refkernels.elementwise.function import Function
from refkernels.kernels.real_function import Array, Doubles


@dataclass(frozen=True)
class FunctionSolution:
    """A `refkernels.op.Solution` of y = f(x), whose values give the bound, or of dx = dy f'(x)."""

    function: Function
    certify: Certify
    x: Array
    dy: Array | None = None

    @cached_property
    def answer(self) -> Enclosure:
        if self.dy is None:
            return oracle.forward(self.function, self.x, self.certify)
        return oracle.backward(self.function, self.dy, self.x, self.certify)

    def bound(self, format: Format) -> Doubles:
        if self.dy is None:
            return bounds.forward_bound(self.function, self.x, format=format, known=self.answer)
        return bounds.backward_bound(self.function, self.dy, self.x, format=format)

    def condition(self) -> Doubles:
        if self.dy is None:
            return bounds.forward_condition(self.function, self.x)
        return bounds.backward_condition(self.function, self.dy, self.x)
