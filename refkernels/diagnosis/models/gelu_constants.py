"""GELU, by erf and by its tanh approximation, with other constants: sqrt(2) or its inverse in
float32; sqrt(2 / pi), 0.044715 or both in float32; sqrt(2 / pi) in a few decimals.

Each is an op, certified from its stable form; the bound is that of this form or of the one that
cancels, 1 + erf or 1 + tanh.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.activation_ref.formulas import limits
from refkernels.arithmetic import formats
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Arrays, Problem
from refkernels.elementary_ref.forms import CUBIC, DENSITY
from refkernels.op import Op
from refkernels.ops import formula_op
from refkernels.ops.formula import Formula, derived

_HALF = Fraction(1, 2)
_DECIMALS = ("0.7978845608", "0.79788456", "0.7978846", "0.797885", "0.79788", "0.7979", "0.8")


def other_constants(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """A kernel with constants of few decimals, and a float64 kernel with constants of float32."""
    for cause, constants in _CONSTANTS[problem.op.name]:
        if cause == "float32_constants" and problem.format.p <= formats.BINARY32.p:
            continue
        stable, unstable = (problem.ask(op=op) for op in _ops(problem.op.name, constants))
        details = {"constants": ", ".join(f"{float(constant):.12g}" for constant in constants)}
        for plain in (stable, unstable):
            answer = replace(stable, bound=plain.bound, plain=plain.plain)
            if any(_distinguishable(problem, name, answer) for name in outputs):
                yield Variant(cause, details, answer)


def _distinguishable(problem: Problem, name: str, alternative: Answer) -> bool:
    """Whether more than rounding separates the two answers: some right element lies beyond the
    alternative's bound."""
    if name not in alternative.reference:
        return False
    right_values, other_values = (
        np.asarray(answer.reference[name]) for answer in (problem.truth, alternative)
    )
    with np.errstate(invalid="ignore"):
        return bool(np.any(np.abs(right_values - other_values) > alternative.bound[name]))


def _narrow(value: float | Fraction) -> Fraction:
    return Fraction(float(np.float32(float(value))))


_K, _C = 2 * DENSITY, CUBIC
_CONSTANTS = {
    "gelu": (
        ("float32_constants", (1 / _narrow(math.sqrt(2.0)),)),
        ("float32_constants", (_narrow(math.sqrt(0.5)),)),
    ),
    "gelu_tanh": (
        ("float32_constants", (_narrow(_K), _narrow(_C))),
        ("float32_constants", (_narrow(_K), _C)),
        ("float32_constants", (_K, _narrow(_C))),
        *(("rounded_constants", (Fraction(decimals), _C)) for decimals in _DECIMALS),
    ),
}


@functools.cache
def _ops(name: str, constants: tuple[Fraction, ...]) -> tuple[Op, Op]:
    """The ops of the stable form, and of the one that cancels. At -inf they are their limit."""
    form: Callable[..., Formula] = _by_erf if name == "gelu" else _by_tanh
    return _op(form(*constants, stable=True)), _op(form(*constants, stable=False))


def _op(form: Formula) -> Op:
    return formula_op(
        "gelu",
        "x[...] -> y[...]",
        forms={"form": form},
        backward={"form": derived(form, ("y",), {"dy": "y"}, ("x",))},
        prepare=functools.partial(limits, below="x"),
        cases=list,
    )


def _by_erf(c: Fraction, stable: bool) -> Formula:
    """x (1 + erf(c x)) / 2 = x erfc(-c x) / 2."""

    def formula(xp: Any, x: Any) -> Any:
        z, half = x * xp.number(c), xp.number(_HALF)
        return x * ((xp.erfc(-z) if stable else 1 + xp.erf(z)) * half)

    return formula


def _by_tanh(k: Fraction, c: Fraction, stable: bool) -> Formula:
    """x (1 + tanh z) / 2 = x / (1 + e^-2z), z = k (x + c x³)."""

    def formula(xp: Any, x: Any) -> Any:
        z = xp.number(k) * (x + xp.number(c) * (x * x * x))
        if not stable:
            return x * ((1 + xp.tanh(z)) * xp.number(_HALF))
        e = xp.exp(-abs(2 * z))
        return x * (xp.where(z < 0, e, xp.number(1)) / (1 + e))

    return formula
