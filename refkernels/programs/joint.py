"""The gradients of a program: the framework's own, and ours beside them.

The framework's backward pass is a program too, the joint one. Its values are those of the forward
program's derivatives by other steps, whose cost in a format a right kernel may have: it is a form
beside the derived one, and the bound holds for both. The answer is derived, which encloses every
slope at a kink, where both agree; elsewhere it is the framework's, and `JointWarning` says so. Of
the user's own rules, an autograd.Function, the framework's program is the only form.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.contexts.ball import Ball
from refkernels.contexts.context import Context
from refkernels.op import Op
from refkernels.ops import readings
from refkernels.ops.formulas import restored
from refkernels.programs.operators import check, evaluate
from refkernels.programs.program import ProgramError, TorchProgram
from refkernels.programs.spread import StatisticalWarning


class JointWarning(UserWarning):
    """The gradients are not, or not only, the framework's own."""

    flag = "derived"


def readable(program: TorchProgram) -> tuple[TorchProgram | None, str]:
    """The joint program, or why there is none."""
    joint, xp = program.joint, Ball()
    if isinstance(joint, str):
        return None, joint
    floats = [item for item in joint.inputs if item.tensor.is_float]
    try:
        check(joint)
        with np.errstate(all="ignore"):
            evaluate(joint, xp, {item.node: xp.array(item.array) for item in floats})
    except ProgramError as error:
        return None, str(error).partition(" (")[0].removeprefix(f"{joint.name}: ")
    return joint, ""


def formula(
    joint: TorchProgram, names: tuple[str, ...], read: Callable[..., Any], xp: Context, /,
    **arguments: Any,
) -> Any:  # fmt: skip
    """The gradients of the inputs `names`, by the joint program; 0 where the framework has none."""
    (cotangent,) = arguments.keys() - {"wide", *(item.name for item in joint.inputs)}
    values = {**arguments, "cotangent": arguments[cotangent]}
    taken = [item for item in joint.inputs if item.name in values]
    outputs = dict(zip(joint.gradients, read(taken, xp, **values), strict=True))
    zero = xp.number(0)
    return tuple(outputs.get(n, xp.broadcast(zero, arguments[n].shape)) for n in names)


def compared(op: Op, forms: Mapping[str, Callable[..., Any]], dtype: str, why: str) -> Op:
    """The op whose derived gradients are compared with the joint program's, and replaced where they
    disagree; or say why they cannot be."""
    formulas, settled = op.formulas, op.backward
    if formulas is None or settled is None or "definition" not in forms:
        return op

    def answer(certify: Any = "enclosure", **inputs: Any) -> dict[str, Any]:
        answers = settled(certify=certify, **inputs)
        if why:
            _warn(f"{op.name}: gradients are derived from the forward program: {why}.")
        if "joint" not in forms:
            return answers
        question, reading = formulas.question("backward", inputs, {}), readings.double_double()
        with np.errstate(all="ignore"):
            read = readings.read(forms["joint"], reading, question, tuple(answers))
        others = {n: restored(question, n, trusted(*parts)) for n, parts in read.items()}
        apart = {name: distance(answers[name], other) > 0 for name, other in others.items()}
        if any(places.any() for places in apart.values()):  # constants are rounded, perhaps
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", StatisticalWarning)
                bounds = formulas.bounded("backward", forms["joint"], inputs, {}, dtype)
            apart = {n: distance(answers[n], other) > bounds[n] for n, other in others.items()}
        if told := {name: int(places.sum()) for name, places in apart.items() if places.any()}:
            counts = ", ".join(f"{count} of {name}" for name, count in told.items())
            _warn(f"{op.name}: gradients are the framework's, not the derivatives: {counts}.")
            sharp = formulas.certified("backward", forms["joint"], inputs, {}, certify)
            for name in told:
                places = np.flatnonzero(apart[name])
                answers[name] = answers[name].replace(places, sharp[name].reshape(-1)[places])
        return answers

    return replace(op, backward=answer)


def _warn(text: str) -> None:
    warnings.warn(text, JointWarning, stacklevel=3)


def distance(a: Enclosure, b: Enclosure) -> Any:
    """Between two enclosures, 0 where they have a number in common; of what is no number 0."""
    with np.errstate(all="ignore"):
        scale = np.maximum(a.scale, b.scale)
        parts = (np.ldexp(part, e.scale - scale) for e in (a, b) for part in (e.hi, e.lo, e.radius))
        hi, lo, radius, other, rest, width = parts
        apart = np.abs((hi - other) + (lo - rest)) - (radius + width)
        return np.ldexp(np.fmax(apart, 0.0), scale)
