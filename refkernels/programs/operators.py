"""The table of ATen's operators, and the reading of a program in a context."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.contexts.context import Context
from refkernels.contexts.value import Mask, Value
from refkernels.programs import elementwise, layers, moving
from refkernels.programs.calls import Call, Low, Tape
from refkernels.programs.program import ProgramError, Ref, Step, Tensor, TorchProgram

OPERATORS = {
    **elementwise.RULES,
    **{f"aten.{name}": rule for name, rule in moving.MOVING.items()},
    **{f"aten.{name}": rule for name, rule in moving.REDUCTIONS.items()},
    **{f"aten.{name}": rule for name, rule in layers.LAYERS.items()},
}
MOVING = frozenset(f"aten.{name}" for name in moving.MOVING)
APART = MOVING | elementwise.RULES.keys() | {"getitem"}
"""The operators whose results' elements have nothing to do with each other."""
ROUNDING = {f"aten.{name}.default" for name in ("floor", "ceil", "round", "trunc")}
OF_WHOLE = {"add", "sub", "mul", "neg", "abs", "clamp", "maximum", "minimum", "where", "_to_copy"}
"""The operators that make whole numbers, and those that make them of whole numbers."""

GRADIENT = "gradient of "


def rule_of(operator: str) -> Callable[..., Any] | None:
    """The rule of an operator; of a gradient, by the operator's own."""
    forward = operator.removeprefix(GRADIENT)
    if forward == operator:
        return OPERATORS.get(operator)
    return functools.partial(_pulled, forward) if forward in OPERATORS else None


def _pulled(operator: str, c: Call, cotangent: Any, *given: Any) -> tuple[Any, ...]:
    """The gradients of an operator by its first arguments of floats, by its tape."""
    tape, wanted = Tape(c.xp), c.node.gives
    leaves, arguments = list[Any](), list[Any]()
    for argument in given:
        is_tensor = isinstance(argument, Value | np.ndarray) or argument is None
        if is_tensor and len(leaves) < len(wanted):
            tensor = wanted[len(leaves)]
            if argument is None and tensor is not None:  # its numbers do not matter
                argument = c.broadcast(c.number(0), tensor.shape)
            leaves.append(argument if argument is None else tape.leaf(c.plain(argument)))
            argument = leaves[-1]
        elif isinstance(argument, Value):
            argument = tape.leaf(argument)
        arguments.append(argument)
    g = c.plain(cotangent)
    step = replace(c.node, operator=operator, gives=(Tensor(g.shape, c.tensor.dtype),))
    outputs = OPERATORS[operator](Call(tape, step, c.operands, c.main), *arguments)
    output = outputs[0] if isinstance(outputs, tuple) else outputs
    present = (leaf for leaf in leaves if leaf is not None)
    pulled = iter(tape.pull(c.broadcast(output, g.shape), g, [*present]))
    return tuple(None if leaf is None else next(pulled) for leaf in leaves)


def check(program: TorchProgram) -> None:
    """Raises ProgramError for an operator that no rule reads: its name, and the user's line."""
    for node in program.nodes:
        if node.value is None and node.operator != "getitem" and not rule_of(node.operator):
            raise ProgramError(
                f"{program.name}: {node.operator} is not covered ({node.place}): declare the "
                "function by a formula in xp, refkernels.oracle(formula, signature)."
            )


def evaluate(program: TorchProgram, xp: Context, inputs: Mapping[str, Any]) -> list[Any]:
    """The outputs in a context. `inputs`: by node, Values of floats and arrays of integers."""
    known: dict[str, Any] = {}
    for item in program.inputs:
        known[item.node] = inputs.get(item.node, item.array)
    last, watch = _last_uses(program), getattr(xp, "watch", None)
    whole = _whole(program)
    for place, node in enumerate(program.nodes):
        known[node.name] = _result(program, xp, node, known)
        if node.name in whole and isinstance(known[node.name], Value):
            known[node.name] = xp.round(known[node.name])  # whatever a sum has rounded
        if watch is not None:
            watch(node, known[node.name])
        for name in last.get(place, ()):
            del known[name]
    return [_plain(program, xp, known[name]) for name in program.outputs]


def _whole(program: TorchProgram) -> set[str]:
    """The results that are whole numbers by their operators."""
    tensors = program.tensors.items()
    whole = {name for name, t in tensors if isinstance(t, Tensor) and not t.is_float}
    for node in program.nodes:
        keeps = node.operator in MOVING or OF_WHOLE.issuperset(node.operator.split(".")[1:2])
        keeps &= whole.issuperset(node.needs)
        keeps &= all(not isinstance(a, float) or a.is_integer() for a in node.arguments)
        if keeps or node.operator in ROUNDING:
            whole.add(node.name)
    return whole


def _last_uses(program: TorchProgram) -> dict[int, list[str]]:
    """The results that no later node needs, by node."""
    called = ((node.name, *node.needs) for node in program.nodes)
    last = {name: place for place, names in enumerate(called) for name in names}
    kept = {*program.outputs, *(item.node for item in program.inputs)}
    ends: dict[int, list[str]] = {}
    for name, place in last.items():
        if name not in kept:
            ends.setdefault(place, []).append(name)
    return ends


def _result(program: TorchProgram, xp: Context, node: Step, known: Mapping[str, Any]) -> Any:
    if node.value is not None:
        return xp.array(node.value) if node.tensor.is_float else node.value
    if node.operator == "getitem":
        source, number = node.arguments
        result = known[source.node][number]
        result = result() if callable(result) else result
        if result is None:
            raise ProgramError(
                f"{program.name}: the places or statistics that {source.node} gives beside its "
                f"numbers are not covered ({node.place})."
            )
        return result
    tensors = (program.tensors[name] for name in node.needs)
    operands = tuple(t for t in tensors if isinstance(t, Tensor) and t.is_float)
    call = Call(xp, node, operands, program.dtype)
    rule = rule_of(node.operator)
    assert rule is not None  # `check` has seen it
    try:
        result = rule(call, *(_argument(a, known) for a in node.arguments))
    except IndexError as error:
        raise call.refuse(f"has no such place: {error}") from None
    first = result[0] if isinstance(result, tuple) else result
    if first is result or not node.several:
        return _kept(call, first, node.gives[0])
    return tuple(_kept(call, *pair) for pair in zip(result, node.gives, strict=False))


def _argument(argument: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(argument, Ref):
        return known[argument.node]
    if isinstance(argument, list):
        return [_argument(item, known) for item in argument]
    return argument


def _kept(call: Call, result: Any, tensor: Tensor | None) -> Any:
    """A result as the node gives it: its dtype, its shape, its format."""
    if result is None or tensor is None:
        return None
    if callable(result):  # if it is read
        return lambda: _kept(call, result(), tensor)
    if isinstance(result, np.ndarray | np.generic):
        array = np.asarray(result)
        result = call.value(array) if tensor.is_float else array.astype(tensor.dtype)
    if tuple(result.shape) != tensor.shape:
        result = call.broadcast(result, tensor.shape)
    if tensor.is_float and isinstance(result, Value | Low) and call.node.operator not in MOVING:
        return call.stored(result, tensor)
    return result


def _plain(program: TorchProgram, xp: Context, result: Any) -> Value:
    """An output, a value: -inf by the definition where it is masked; truth values are 0 and 1."""
    if isinstance(result, Low):
        return xp.where(result.low, xp.log(xp.number(0)), result.value)
    if isinstance(result, Mask):
        return xp.where(result, xp.number(1), xp.number(0))
    return result if isinstance(result, Value) else xp.array(result.astype(np.float64))
