"""A class whose instances become arrays but have no arithmetic: every attempt says why.

NumPy would otherwise turn such an object into an array wherever it meets one, and silently drop
what the array does not hold.
"""

from typing import Any, NoReturn

import numpy as np

_LOOKING = (  # functions whose results need no radius
    np.shape, np.ndim, np.size, np.iscomplexobj, np.isrealobj,
    np.allclose, np.isclose, np.array_equal,
)  # fmt: skip


class NoArithmetic:
    """Operators, comparisons and NumPy's functions raise TypeError, except `np.asarray` and its
    like, functions of shape or dtype alone, and tests whether numbers are close."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> NoReturn:
        raise _error(self, _called(ufunc))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if not any(function is looking for looking in _LOOKING):
            raise _error(self, _called(function))
        passed = (
            np.asarray(argument) if isinstance(argument, NoArithmetic) else argument
            for argument in args
        )
        return function(*passed, **options)

    def _refuse(self, *others: Any) -> NoReturn:
        raise _error(self, "An operator")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __divmod__ = __rdivmod__ = _refuse
    __neg__ = __pos__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = __int__ = _refuse

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NoArithmetic | np.ndarray | np.generic | int | float | list | tuple):
            self._refuse()
        return NotImplemented

    __hash__ = object.__hash__


def _called(function: object) -> str:
    return f"np.{getattr(function, '__name__', 'ufunc')}"


def _error(value: object, operation: str) -> TypeError:
    name = type(value).__name__
    return TypeError(
        f"{operation} does not know the radius of an {name} and would lose it: compute with its "
        "values, np.asarray(e), or with its parts, e.hi, e.lo and e.radius."
    )
