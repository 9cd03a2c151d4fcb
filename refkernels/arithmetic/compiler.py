"""Numba and LLVM's names for intrinsics, imported when a kernel is first compiled or read.

Their import takes half a second, and a process whose arrays are `small` needs no kernel.
"""

import functools
import importlib
from collections.abc import Callable
from typing import Any


class _Module:
    """A module that is imported when an attribute of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


ir = _Module("llvmlite.ir")
types = _Module("numba.types")
cgutils = _Module("numba.core.cgutils")


class intrinsic:
    """`numba.extending.intrinsic`: a function that kernels call, written in LLVM's instructions.

    The decorated definition (typing_context, *types of the arguments) returns a signature and a
    function that generates the instructions.
    """

    def __init__(self, definition: Callable[..., Any]) -> None:
        self.definition = definition
        self.in_python: Callable[..., Any] = self  # the same function, for `interpreted`
        functools.update_wrapper(self, definition)

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """The type of this object where a kernel names it."""
        from numba.core.typing.templates import make_intrinsic_template

        template = make_intrinsic_template(self, self.definition, self.definition.__name__)
        return types.Function(template)

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self.definition.__name__} is called by kernels only.")

    def __deepcopy__(self, memo: Any) -> "intrinsic":
        return self  # Numba copies its statements
