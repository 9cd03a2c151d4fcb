"""Constants of a formula, rounded: sqrt(2 / pi) as 0.79788, or held in a narrower format."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.contexts.doubles import Doubles
from refkernels.contexts.graph import Node, apply
from refkernels.contexts.working import data
from refkernels.diagnosis.edits.catalogue import Program, by, rule

_XP = Doubles()
FORMATS = ("bfloat16", "float16", "tf32", "float32")
_DIGITS = range(1, 13)
_PURE = ("number", "pi", "add", "subtract", "multiply", "divide", "square", "power", "function")
_LEAST = 2.0**-48  # relative: what shows in any format


@rule("rounded_constants", "constant")  # one constant or its inverse, or all of them
def rounded_constants(program: Program) -> Iterator[Any]:
    values = dict(_constants(program))
    for inverse, to in itertools.product((False, True), (*FORMATS, *_DIGITS)):
        if inverse:
            held = {node: 1 / h for node, v in values.items() if (h := _held(1 / v, to))}
        else:
            held = {node: _held(value, to) for node, value in values.items()}
        alone = [{node: value} for node, value in held.items()]
        for rounded in alone if inverse or len(values) == 1 else (held, *alone):
            new = {n: v for n, v in rounded.items() if abs(v - values[n]) > abs(v) * _LEAST}
            changes = {n: by()(lambda xp, v=v: xp.number(v)) for n, v in new.items()}
            told = ", ".join(f"{float(v):.12g}" for v in {**values, **new}.values())
            if new:
                yield next(iter(new)), changes, {"constants": told, **_format(to)}


def parts(program: Program) -> dict[Node, Any]:
    """The values in float64 of the parts of a formula that depend on no input."""
    known: dict[Node, Any] = {}
    for node in program.nodes:
        if not node.shape and node.op in _PURE and all(part in known for part in node.operands):
            known[node] = apply(node, _XP, [known[part] for part in node.operands])
    return known


def _constants(program: Program) -> Iterator[tuple[Node, Fraction]]:
    """The largest such parts that are numbers, and that float32 does not hold."""
    known = {node: value for node, value in parts(program).items() if np.isfinite(data(value))}
    for node, value in known.items():
        exact = Fraction(node.option if node.op == "number" else float(data(value)))
        inside = all(user in known for user in program.users.get(node, ()))
        if not inside and exact and exact != _held(exact, "float32"):
            yield node, exact


def _held(value: Fraction, to: str | int) -> Fraction:
    """The value rounded; itself where the format has no number as large."""
    if isinstance(to, int):
        return Fraction(f"{float(value):.{to - 1}e}")
    rounded = float(formats.round_to(np.array(float(value)), formats.get(to)))
    return Fraction(rounded) if np.isfinite(rounded) else value


def _format(to: str | int) -> dict[str, str]:
    return {"format": to} if isinstance(to, str) else {}
