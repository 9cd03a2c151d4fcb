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
from refkernels.op import DIRECTIONS, Case, Op

STANDARD = "IEEE 754-2019, section 9.2.1"
_SHARED = """
x           float16, bfloat16, float32 or float64, of any shape (NumPy, DLPack, `__array__`)
certify     the question (`refkernels.Enclosure`)

The radius is that of float64; narrower inputs have 2^-49 unless the question needs more. The bound
of kernels is `forward_bound`: a library limit in ulp, or that of the function's forms.
Raises TypeError for other dtypes, ValueError for an unknown question."""


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

    def forward(self, name: str, x: Any, *, certify: Certify = "enclosure") -> Enclosure:
        """f(x): see `oracle.forward`."""
        return oracle.forward(self.function(name), x, certify)

    def backward(self, name: str, dy: Any, x: Any, *, certify: Certify = "enclosure") -> Enclosure:
        """dx = dy f'(x), element by element, of the function of that name.

        dy, x       of one shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
        certify     the question (`refkernels.Enclosure`): the radius is as small as it asks

        Special values are those of one IEEE product dy · f'(x). The bound of kernels is
        `backward_bound`, proven for the named forms. Raises TypeError for other dtypes, ValueError
        for shapes that differ, an unknown name and an unknown question.
        """
        return oracle.backward(self.function(name), dy, x, certify)

    def forward_bound(
        self, name: str, x: Any, *, format: Format | str, limit: float | None = None
    ) -> Doubles:
        """The bound on |fl(f(x)) - f(x)| in the format, float64, of x's shape: limit ulp(f(x)) for
        a library function, else that of f's named forms (`bounds.forward_bound`).

        Raises TypeError for other dtypes, ValueError for an unknown name or format and a negative
        limit.
        """
        return bounds.forward_bound(self.function(name), x, format=format, limit=limit)

    def backward_bound(
        self, name: str, dy: Any, x: Any, *, format: Format | str, limit: float | None = None
    ) -> Doubles:
        """The bound of the named forms of dy f'(x), float64, of x's shape
        (`bounds.backward_bound`); `limit`, in ulp, is that of the library functions that they
        call. Raises as `backward`, and ValueError for an unknown format and a negative limit.
        """
        return bounds.backward_bound(self.function(name), dy, x, format=format, limit=limit)

    def form_bounds(
        self, name: str, *arrays: Any, format: Format | str, limit: float | None = None
    ) -> dict[str, Doubles]:
        """The bound of each named form: see `bounds.form_bounds`."""
        return bounds.form_bounds(self.function(name), *arrays, format=format, limit=limit)

    def forward_condition(self, name: str, x: Any) -> Doubles:
        """|x f'(x) / f(x)|, float64, of x's shape. Raises TypeError for other dtypes, ValueError
        for an unknown name.
        """
        return bounds.forward_condition(self.function(name), x)

    def backward_condition(self, name: str, dy: Any, x: Any) -> Doubles:
        """|x f''(x) / f'(x)|, float64, of x's shape. Raises as `backward`."""
        return bounds.backward_condition(self.function(name), dy, x)

    def forward_plain(self, name: str, x: Any, *, format: Format | str) -> Array:
        """fl(f(x)) in the format, of x's shape. Raises as `forward_bound`."""
        return plain.forward_plain(self.function(name), x, format=format)

    def backward_plain(self, name: str, dy: Any, x: Any, *, format: Format | str) -> Array:
        """fl(dy fl(f'(x))) in the format. Raises as `backward_bound`."""
        return plain.backward_plain(self.function(name), dy, x, format=format)

    def cases(self, name: str) -> list[Case]:
        """All cases of one function. Raises ValueError for an unknown name."""
        return self.function(name).cases()

    @property
    def ops(self) -> tuple[Op, ...]:
        """One Op record per function, in the order given."""
        return tuple(self._op(function) for function in self.functions.values())

    def _op(self, function: Function) -> Op:
        methods: dict[str, Any] = {
            direction + part: partial(getattr(self, direction + part), function.name)
            for direction in DIRECTIONS
            for part in ("", "_bound", "_condition", "_plain")
        }
        return Op(
            name=function.name,
            inputs=("x",),
            outputs=("y",),
            cotangent="dy",
            gradients=("dx",),
            **methods,
            solvers={
                "forward": partial(FunctionSolution, function),
                "backward": partial(SlopeSolution, function),
            },
            cases=function.cases,
            invariants=function.invariants,
            row_inputs=("x",),
            row_gradients=("dx",),
            elementwise=True,
            limit=function.limit,
            limit_source=function.limit_source,
            form_bounds=partial(self.form_bounds, function.name),
            fast=function.fast,
            real_function=function,
        )


def named(family: Family) -> list[str]:
    """The names of a family's public functions."""
    passes = (d + part for d in DIRECTIONS for part in ("", "_bound", "_condition", "_plain"))
    return sorted({*passes, "cases", *family.functions} - {"forward"})
