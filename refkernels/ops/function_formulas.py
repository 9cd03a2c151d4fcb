"""Every op as a formula, those that are functions of one number too."""

from __future__ import annotations

import string
from functools import partial
from typing import Any

from refkernels.elementwise.function import Form, Function
from refkernels.op import Op
from refkernels.ops.formula_op import formulas_of
from refkernels.ops.formulas import Formulas

_FUNCTIONS: dict[tuple[str, int], Formulas] = {}


def _read(form: Form, xp: Any, **arrays: Any) -> Any:
    return form.formula(xp, *arrays.values())


def named_forms(function: Function) -> Formulas:
    """A function's formula, with the forms of dy f'(x) that its bound is proven for."""
    forms = {form.name: partial(_read, form) for form in function.slope_forms}
    once = {"formula": function.formula}
    return formulas_of(function.name, "x[...] -> y[...]", forms=once, backward=forms)


def definition(op: Op, axes: int = 0) -> Formulas:
    """The formulas of an op: its own or, of a function, its definition. `axes`: the axes of a
    function's x that its formula sees, as an edit of the formula may need them."""
    if op.definition is not None:
        return op.definition
    if (op.name, axes) not in _FUNCTIONS:
        assert op.real_function is not None
        letters = " ".join(string.ascii_lowercase[:axes])
        signature = f"x[{letters or '...'}] -> y[{letters or '...'}]"
        forms = {"formula": op.real_function.formula}
        _FUNCTIONS[op.name, axes] = formulas_of(op.name, signature, letters, forms=forms)
    return _FUNCTIONS[op.name, axes]
