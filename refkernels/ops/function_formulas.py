"""Every op as a formula, those that are functions of one number too."""

from __future__ import annotations

import string

from refkernels.op import Op
from refkernels.ops.formula_op import formulas_of
from refkernels.ops.formulas import Formulas

_FUNCTIONS: dict[tuple[str, int], Formulas] = {}


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
