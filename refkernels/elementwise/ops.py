"""A family's public functions by name, and the `Op` record of each function."""

from collections.abc import Callable
from functools import partial
from typing import Any

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.question import Certify
from refkernels.arithmetic.wording import shown
from refkernels.elementwise import bounds, oracle, plain
from refkernels.elementwise.function import Array, Doubles, Function
from refkernels.elementwise.solution import FunctionSolution, SlopeSolution
from refkernels.op import Case, Op


class Family:
    """The functions of one oracle module, by name.

    Every method raises ValueError, with the known names, for any other name, and the errors of the
    function of the same name in `oracle`, `bounds` or `plain`.
    """

    def __init__(self, module: str, functions: tuple[Function, ...]) -> None:
        self.module = module
        self.functions = {function.name: function for function in functions}

    def function(self, name: str) -> Function:
        """The function of that name."""
        if not isinstance(name, str) or name not in self.functions:
            *leading, last = self.functions
            raise ValueError(
                f"{self.module} knows {', '.join(leading)} and {last}, not {shown(name)}."
            )
        return self.functions[name]

    def forward(self, name: str, x: Any, *, certify: Certify = "enclosure") -> Enclosure:
        """f(x): see `oracle.forward`."""
        return oracle.forward(self.function(name), x, certify)

    def backward(self, name: str, dy: Any, x: Any, *, certify: Certify = "enclosure") -> Enclosure:
        """dx = dy f'(x), dy and x of one shape: see `oracle.backward`."""
        return oracle.backward(self.function(name), dy, x, certify)

    def forward_bound(
        self, name: str, x: Any, *, format: Format | str, limit: float | None = None
    ) -> Doubles:
        """limit · ulp(f(x)), or the bound of f's named forms: see `bounds.forward_bound`."""
        return bounds.forward_bound(self.function(name), x, format=format, limit=limit)

    def backward_bound(
        self, name: str, dy: Any, x: Any, *, format: Format | str, limit: float | None = None
    ) -> Doubles:
        """The bound of the named forms of dy f'(x): see `bounds.backward_bound`."""
        return bounds.backward_bound(self.function(name), dy, x, format=format, limit=limit)

    def form_bounds(
        self, name: str, *arrays: Any, format: Format | str, limit: float | None = None
    ) -> dict[str, Doubles]:
        """The bound of each named form: see `bounds.form_bounds`."""
        return bounds.form_bounds(self.function(name), *arrays, format=format, limit=limit)

    def forward_condition(self, name: str, x: Any) -> Doubles:
        """|x f'(x) / f(x)|."""
        return bounds.forward_condition(self.function(name), x)

    def backward_condition(self, name: str, dy: Any, x: Any) -> Doubles:
        """|x f''(x) / f'(x)|."""
        return bounds.backward_condition(self.function(name), dy, x)

    def forward_plain(self, name: str, x: Any, *, format: Format | str) -> Array:
        """f(x) by the plain algorithm in the format."""
        return plain.forward_plain(self.function(name), x, format=format)

    def backward_plain(self, name: str, dy: Any, x: Any, *, format: Format | str) -> Array:
        """dy f'(x) by the plain algorithm in the format."""
        return plain.backward_plain(self.function(name), dy, x, format=format)

    def cases(self, name: str) -> list[Case]:
        """All cases of one function."""
        return self.function(name).cases()

    @property
    def ops(self) -> tuple[Op, ...]:
        """One Op record per function, in the order given."""
        return tuple(self._op(function) for function in self.functions.values())

    def _op(self, function: Function) -> Op:
        def of(method: Callable[..., Any]) -> Callable[..., Any]:
            return partial(method, function.name)

        def solve_forward(x: Any, *, certify: Certify) -> FunctionSolution:
            return FunctionSolution(function, x, certify)

        def solve_backward(dy: Any, x: Any, *, certify: Certify) -> SlopeSolution:
            return SlopeSolution(function, dy, x, certify)

        return Op(
            name=function.name,
            inputs=("x",),
            outputs=("y",),
            cotangent="dy",
            gradients=("dx",),
            forward=of(self.forward),
            backward=of(self.backward),
            forward_bound=of(self.forward_bound),
            backward_bound=of(self.backward_bound),
            forward_condition=of(self.forward_condition),
            backward_condition=of(self.backward_condition),
            forward_plain=of(self.forward_plain),
            backward_plain=of(self.backward_plain),
            solvers={"forward": solve_forward, "backward": solve_backward},
            cases=function.cases,
            invariants=function.invariants,
            row_inputs=("x",),
            row_gradients=("dx",),
            elementwise=True,
            limit=function.limit,
            limit_source=function.limit_source,
            form_bounds=of(self.form_bounds),
            fast=function.fast,
            real_function=function,
        )
