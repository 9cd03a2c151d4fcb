"""The sign of a zero as an invariant of an op, where all its forms give the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.op import Arrays, Invariant, Op
from refkernels.ops.formula import Formula

Reading = Callable[[float], Mapping[str, Any]]
STATEMENT = "a product, a quotient or an odd function of a zero has the sign that IEEE 754 gives it"


def sign_of_zero(
    output: str, readings: Callable[[Arrays, Mapping[str, Any]], Iterable[Reading]]
) -> Invariant:
    """The invariant of an output of the forward pass. A gradient has none: kernels add it to what
    is there. `readings`, of inputs and params: the forms, each of which gives the outputs for a
    sign of the zeros that have none (`contexts.signed_zeros`)."""

    def violated(
        got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]
    ) -> npt.NDArray[np.bool_]:
        wide = to_float64(got)
        wrong = np.asarray(wide == 0.0)
        if not wrong.any() or not any(map(_has_zero, inputs.values())):
            return np.zeros(wrong.shape, np.bool_)
        for reading in readings(inputs, params):
            for made in (0.0, -0.0):
                right = np.asarray(reading(made)[output])
                wrong = wrong & (right == 0.0) & (np.signbit(right) != np.signbit(wide))
                if not wrong.any():
                    return wrong
        return wrong

    return Invariant("sign_of_zero", STATEMENT, "forward", output, violated)


def of_function(op: Op) -> Op:
    """The op with the invariant, if it is a function that is no formula. A library's function has
    the sign of the certified value at 0, which is IEEE 754's."""
    function = op.real_function
    if function is None:
        return op

    def readings(inputs: Arrays, params: Mapping[str, Any]) -> Iterable[Reading]:
        from refkernels.contexts.signed_zeros import SignedZeros
        from refkernels.contexts.working import data

        def read(form: Formula, made: float) -> Mapping[str, Any]:
            xp = SignedZeros(made=made)
            return {"y": data(form(xp, x=xp.array(x)))}

        x = to_float64(inputs["x"])
        if function.limit is not None:
            at_zero = op.forward(x=np.array([0.0, -0.0])).hi
            signed = np.where(x == 0.0, at_zero[np.signbit(x).astype(int)], np.nan)
            return [lambda made: {"y": signed}]
        return [partial(read, form) for form in function.forms]

    return replace(op, invariants=(*op.invariants, sign_of_zero("y", readings)))


def _has_zero(array: Any) -> bool:
    """Whether an input, or one of a list, holds the number 0."""
    parts = array if isinstance(array, list | tuple) else [array]
    floats = [part for part in parts if part is not None and part.dtype.kind not in "iub"]
    return any(bool(np.any(part == 0)) for part in floats)
