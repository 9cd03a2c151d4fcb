"""How the one call of a Model gives an op its arrays and params: `bound`.

A Model's parameters become inputs of the op: judge draws them, and the Model's state is replaced as
by `load_state_dict`. So each has the lengths of the Model's own; the other lengths are free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from refkernels.frameworks.kernels import facts_of
from refkernels.frameworks.remote.kernel_adapter import matched
from refkernels.frameworks.torch_names import ARGUMENTS
from refkernels.op import Op

LARGEST = 1 << 20  # elements of a Model's parameters, all of which each question has
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Binding:
    """`inputs`: for an input of the op, the number of the Model's input; `state`: for an input of
    the op, the name of the Model's parameter; `params`: the op's params; `lengths`: by letter of
    the op's signature, the lengths of the parameters."""

    inputs: Mapping[str, int]
    state: Mapping[str, str]
    params: Mapping[str, Any]
    lengths: Mapping[str, tuple[int, ...]]


def bound(
    op: Op,
    function: str,
    arguments: tuple[Sequence[Mapping[str, Any]], Mapping[str, Mapping[str, Any]]],
    state: Mapping[str, Sequence[int]],
) -> Binding | None:
    """The binding of a call whose arguments have these sources (`remote/task.py`); None if one of
    them is computed, or has a form that the op does not have."""
    if function not in ARGUMENTS or op.definition is None:
        return None
    positional, named = arguments
    sources = {**dict(zip(ARGUMENTS[function], positional, strict=False)), **named}
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in sources]
    meaning, _ = matched(parameters, facts_of(op, function), "forward")
    inputs, own, params = dict[str, int](), dict[str, str](), dict(op.params)
    for parameter, source in sources.items():
        name = meaning.get(parameter, parameter)
        array, absent = name in op.inputs, source.get("value", ...) is None
        if array and "input" in source:
            inputs[name] = source["input"]
        elif array and "state" in source:
            own[name] = source["state"]
        elif not (absent if array else "value" in source and _set(params, name, source["value"])):
            return None
    takes = op.definition.way("forward").signature.takes
    lengths: dict[str, set[int]] = {}
    for name, key in own.items():
        if len(takes[name].own) != len(state[key]):
            return None
        for letter, length in zip(takes[name].own, state[key], strict=True):
            lengths.setdefault(letter, set()).add(int(length))
    elements = sum(math.prod(state[key]) for key in own.values())
    if any(len(values) > 1 for values in lengths.values()) or elements > LARGEST:
        return None
    return Binding(inputs, own, params, {x: tuple(values) for x, values in lengths.items()})


def _set(params: dict[str, Any], name: str, value: Any) -> bool:
    """Set a param from torch's argument; False where the op has no such param or value."""
    if name == "normalized_shape":
        return isinstance(value, list) and len(value) == 1
    if isinstance(value, list):  # one number for each axis
        if len(set(value)) != 1:
            return False
        value = value[0]
    if name not in params or (name == "groups" and value != 1) or value is None:
        return False
    params[name] = value
    return True
