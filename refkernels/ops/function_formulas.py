"""Every op as a formula, those that are functions of one number too."""

from __future__ import annotations

from refkernels.op import Op
from refkernels.ops.formula_op import formulas_of
from refkernels.ops.formulas import Formulas

_FUNCTIONS: dict[str, Formulas] = {}


def definition(op: Op) -> Formulas:
    """The formulas of an op: its own or, of a function, its definition."""
    if op.definition is not None:
        return op.definition
    if op.name not in _FUNCTIONS:
        assert op.real_function is not None
        forms = {"formula": op.real_function.formula}
        _FUNCTIONS[op.name] = formulas_of(op.name, "x[...] -> y[...]", forms=forms)
    return _FUNCTIONS[op.name]
