"""The oracle of a program: an op like any other, whose formula reads the program.

Its inputs are those of the function, by name, and its parameters and buffers, which may be left
out: they then have the values that they had when the program was read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.contexts.context import Context
from refkernels.contexts.gradient import Taped
from refkernels.contexts.value import Value
from refkernels.op import Case, Direction, Op
from refkernels.ops.canonical import Prepared
from refkernels.ops.cases import without_nan
from refkernels.ops.formula_op import formula_op
from refkernels.programs import joint
from refkernels.programs.calls import Tape
from refkernels.programs.estimate import estimated
from refkernels.programs.operators import APART, check, evaluate
from refkernels.programs.program import (
    KINDS,
    ProgramError,
    ProgramInput,
    Tensor,
    TorchProgram,
)
from refkernels.programs.spread import Traced


def op_of(program: TorchProgram, name: str) -> Op:
    """The op of a program, under a name. Raises ProgramError for what no oracle reads, with the
    node and the line of the user's code."""
    check(program)
    outputs = _outputs(program)
    used = {*program.outputs, *(name for node in program.nodes for name in node.needs)}
    given = (i for i in program.inputs if i.kind == "input" or i.node in used)
    taken = [i for i in sorted(given, key=lambda i: KINDS.index(i.kind)) if i.kind != "constant"]
    takes = (f"{i.name}{_axes(i.tensor)}{_kind(i)}" for i in taken)
    main = program.dtype
    gives = (f"{n}{_axes(t)}{'' if t.dtype == main else ':low'}" for n, t in outputs.items())
    signature = f"{', '.join(takes)} -> {', '.join(gives)}"
    if not taken:
        raise ProgramError(f"{program.name} takes no tensors: its answer is always the same.")
    apart = all(node.operator in APART for node in program.nodes if node.value is None)
    named = zip(outputs.items(), program.outputs, strict=True)
    steps = None if apart else {name: step for (name, t), step in named if t.is_float}
    formula = Traced(functools.partial(_formula, program, taken), work(program), name, steps)
    smooth = next(iter(outputs.values())).is_float
    leaves = [i for i in taken if smooth and i.tensor.is_float and i.kind in ("input", "parameter")]
    differentiated = tuple(item.name for item in leaves)
    own, why = joint.readable(program)
    gradients: dict[str, Any] = {}
    if own:  # it comes first, for its special values
        read = functools.partial(_formula, own)
        gradients["joint"] = functools.partial(joint.formula, own, differentiated, read)
    if not program.custom_gradients:
        gradients["definition"] = functools.partial(_backward, program, taken, differentiated)
    title = f"{name} backward"
    backward = {n: Traced(f, 4 * work(program), title, {}) for n, f in gradients.items()}
    op = formula_op(
        name,
        signature,
        forms={"definition": formula},
        backward=backward if differentiated and backward else None,
        backward_truth=backward.get("definition"),
        gradients=differentiated if backward else [],
        prepare=functools.partial(_prepared, taken),
        cases=lambda: _cases(program, taken, op, outputs),
    )
    assert op.formulas is not None
    op = replace(op, forward=estimated(op.formulas, op.forward, main), whole=main)
    return joint.compared(op, backward, main, why)


def _cases(
    program: TorchProgram, taken: list[ProgramInput], op: Op, outputs: Mapping[str, Tensor]
) -> list[Case]:
    """The example, and normal numbers in its shapes: their sizes where an example's numbers are not
    negative and others give NaN."""
    (first, tensor), *_ = outputs.items()
    given = [item for item in taken if item.kind == "input"]

    def build(dtype: str, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        rng, inputs = np.random.default_rng(seed), {}
        for item in given:
            inputs[item.name] = item.array
            if item.tensor.is_float:
                drawn = rng.standard_normal(item.tensor.shape) if seed else item.array.astype(float)
                inputs[item.name] = np.asarray(formats.round_to(drawn, dtype))
        positive = [i.name for i in given if i.tensor.is_float and np.all(i.array >= 0)]
        if seed and positive:
            inputs = without_nan(op, inputs, positive, formats.get(dtype))
        dy = formats.round_to(rng.standard_normal(tensor.shape), dtype)
        return {**inputs, f"d{first}": np.asarray(dy)}, {}

    return [
        Case(f"{op.name}_{regime}", op.name, regime, {}, seed, functools.partial(build, seed=seed))
        for seed, regime in enumerate(("example", "normal"))
    ]


def _axes(tensor: Tensor) -> str:
    return f"[{' '.join(map(str, tensor.shape))}]"


def _kind(item: ProgramInput) -> str:
    kind = "" if item.tensor.is_float else ":bool" if item.tensor.dtype == "bool" else ":int"
    return kind if item.kind == "input" else f"?{kind}"


def _outputs(program: TorchProgram) -> dict[str, Tensor]:
    tensors = [program.tensors[name] for name in program.outputs]
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise ProgramError(f"{program.name} returns a tuple of an operator.")
    if len(tensors) == 1:
        return {"y": tensors[0]}
    return {f"y{k}": tensor for k, tensor in enumerate(tensors)}


def work(program: TorchProgram) -> int:
    """About how many numbers a reading computes: of a product, one for each of its terms. Each
    counts 32 times, since Arb's budget is for answers that read some rows, once: a program of more
    than 2^19 keeps what double-doubles know."""
    total = 0
    for node in program.nodes:
        sizes = [math.prod(tensor.shape) for tensor in node.gives if tensor is not None]
        tensors = (program.tensors[name] for name in node.needs)
        shapes = [tensor.shape for tensor in tensors if isinstance(tensor, Tensor)]
        factor = 1
        if any(part in node.operator for part in ("mm.", "scaled_dot_product")):
            factor = shapes[0][-1] if shapes and shapes[0] else 1
        elif "convolution" in node.operator and len(shapes) > 1:
            factor = math.prod(shapes[1][1:])
        total += 32 * sum(sizes) * factor
    return total


def _prepared(
    taken: list[ProgramInput], inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """The parameters that were not given have their own values. `wide`: a program of float32 is
    asked in float64, where a kernel's scalars are not rounded to float32."""
    own = {i.name: i.array for i in taken if i.kind != "input" and inputs.get(i.name) is None}
    for item in taken:
        array = inputs.get(item.name)
        if array is not None and array.shape != item.tensor.shape:
            raise ValueError(
                f"{item.name} has shape {array.shape}, but the program was read for "
                f"{item.tensor.shape}."
            )
    wide = any(getattr(inputs.get(i.name), "dtype", "") == np.float64 for i in taken)
    return Prepared({**inputs, **own}, {**params, "wide": wide})


def _formula(
    program: TorchProgram,
    taken: list[ProgramInput],
    xp: Context,
    /,
    wide: bool = False,
    **arguments: Any,
) -> Any:
    """The outputs, with one row in front."""
    program = program.widened if wide and program.dtype == "float32" else program
    values = {item.node: _entered(xp, item, arguments[item.name]) for item in taken}
    for item in program.inputs:
        if item.node not in values and item.tensor.is_float:
            values[item.node] = xp.array(item.array)
    lengths = {length for item in taken for length in item.tensor.shape}
    row = (1,) if len(lengths) > 1 else (1, 1)  # as `canonical` has an output without axes
    outputs = evaluate(program, xp, values)
    return tuple(xp.reshape(y, (1, *y.shape) if y.shape else row) for y in outputs)


def _entered(xp: Context, item: ProgramInput, given: Any) -> Any:
    """An input in the program's shape."""
    if isinstance(given, Value):
        return xp.reshape(given, item.tensor.shape)
    return np.reshape(given, item.tensor.shape).astype(item.tensor.dtype)


def _backward(
    program: TorchProgram,
    taken: list[ProgramInput],
    names: tuple[str, ...],
    xp: Context,
    /,
    **arguments: Any,
) -> Any:
    """The gradients, by the tape of the same program."""
    tape = Tape(xp)
    first = next(iter(_outputs(program)))
    cotangent = arguments.pop(f"d{first}")
    nodes: dict[str, Any] = {
        name: Taped(tape, value) if isinstance(value, Value) else value
        for name, value in arguments.items()
    }
    outputs = _formula(program, taken, tape, **nodes)
    leaves = [nodes[name] for name in names]
    return tuple(tape.pull(outputs[0], xp.reshape(cotangent, outputs[0].shape), leaves))
