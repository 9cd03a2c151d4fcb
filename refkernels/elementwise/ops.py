"""A family's public functions by name, and the `Op` record of each function."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.arithmetic.wording import shown
from refkernels.elementwise import bounds, oracle, plain
from refkernels.elementwise.function import Function
from refkernels.elementwise.solution import FunctionSolution
from refkernels.op import DIRECTIONS, Case, Op

T = TypeVar("T")
PASSES: tuple[Callable[..., Any], ...] = (
    *(oracle.forward, bounds.forward_bound, bounds.forward_condition, plain.forward_plain),
    *(oracle.backward, bounds.backward_bound, bounds.backward_condition, plain.backward_plain),
)
STANDARD = "IEEE 754-2019, section 9.2.1"
_SHARED = """
x           float16, bfloat16, float32 or float64, of any shape (NumPy, DLPack, `__array__`)
certify     the question (`refkernels.Enclosure`)

The radius is that of float64; narrower inputs have 2^-49 unless the question needs more. The bound
of kernels is `forward_bound`: a library limit in ulp, or that of the function's forms.
Raises TypeError for other dtypes, ValueError for an unknown question."""


class Family:
    """The functions of one oracle module, by name."""

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

    def public(
        self, name: str, is_: str, exact: str, source: str = STANDARD, like: str = ""
    ) -> Callable[..., Enclosure]:
        """The function of that name, for users: what it is, how exactly, by whom; all else is
        told of the one that it is `like`, or here."""
        known = self.function(name)

        def function(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
            return oracle.forward(known, x, certify)

        rest = f"Otherwise as `{like}`." if like else _SHARED
        function.__name__ = function.__qualname__ = name
        function.__module__ = f"refkernels.{self.module}"
        function.__doc__ = f"y = {is_}.\n\n{exact}.\n{rest}\nSource: {source}."
        return function

    def by_name(self, of: Callable[..., T]) -> Callable[..., T]:
        """of(function, ...) as a function for users, of the function's name."""

        def function(name: str, *arrays: Any, **options: Any) -> T:
            return of(self.function(name), *arrays, **options)

        _, *rest = inspect.signature(of).parameters.values()
        first = inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        kept = [first, *(parameter for parameter in rest if parameter.name != "known")]
        vars(function)["__signature__"] = inspect.Signature(kept)
        function.__name__ = function.__qualname__ = of.__name__
        function.__module__, function.__doc__ = f"refkernels.{self.module}", of.__doc__
        return function

    def cases(self, name: str) -> list[Case]:
        """All cases of one function. Raises ValueError for an unknown name."""
        return self.function(name).cases()

    @property
    def ops(self) -> tuple[Op, ...]:
        """One Op record per function, in the order given."""
        return tuple(self._op(function) for function in self.functions.values())

    def _op(self, function: Function) -> Op:
        methods: dict[str, Any] = {of.__name__: partial(of, function) for of in PASSES}
        return Op(
            name=function.name,
            inputs=("x",),
            outputs=("y",),
            cotangent="dy",
            gradients=("dx",),
            **methods,
            solvers=dict.fromkeys(DIRECTIONS, partial(FunctionSolution, function)),
            cases=function.cases,
            invariants=function.invariants,
            row_inputs=("x",),
            row_gradients=("dx",),
            elementwise=True,
            limit=function.limit,
            limit_source=function.limit_source,
            form_bounds=partial(bounds.form_bounds, function),
            fast=function.fast,
            real_function=function,
        )


def named(family: Family) -> list[str]:
    """The names of a family's public functions."""
    passes = {of.__name__ for of in PASSES} - {"forward"}
    return sorted({*passes, "cases", *family.functions})
