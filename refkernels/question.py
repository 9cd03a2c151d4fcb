"""Checks a caller's question: op, direction, inputs and params.

`assert_kernel` and `explain` read the question here before they compute anything. A bad question is
refused with a one-sentence error.
"""

from __future__ import annotations

import json
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arguments import as_mapping
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.protocols import read as read_protocol
from refkernels.arithmetic.wording import shown
from refkernels.op import DIRECTIONS, Direction, Op
from refkernels.suggestion import did_you_mean, quoted

Arrays = dict[str, npt.NDArray[Any]]


def read(op: Any, inputs: Any, params: Any, direction: Any) -> tuple[Op, Arrays, dict[str, Any]]:
    """The op's record, its inputs (without None) as arrays in the op's order, and its params.

    Raises TypeError for a value of an unreadable type; ValueError for an unknown op or direction,
    for unknown or missing names, and for params beyond float's range.
    """
    record = registry.get(op)
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        raise ValueError(f"direction is {shown(direction)}: give 'forward' or 'backward'.")
    if direction not in record.directions:
        raise ValueError(f"{record.name} has no backward pass: ask for its forward pass.")
    return record, _inputs(record, direction, inputs), _params(record, params)


def shared(inputs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The common inputs of several kernels, {"torch": {"x": x}, "paddle": {"x": x}}, by name.

    Raises ValueError if two kernels' inputs are not the same bits, and says where they differ:
    outputs for different inputs cannot be compared.
    """
    first_given: dict[str, tuple[str, Any]] = {}
    for kernel, kernel_inputs in inputs.items():
        for name, value in as_mapping(kernel_inputs, "inputs").items():
            if value is None:
                continue
            array = _as_given(value, name)
            first_kernel, first_array = first_given.setdefault(name, (kernel, array))
            if (difference := _difference(first_array, array)) is not None:
                raise ValueError(
                    f"{first_kernel} and {kernel} got different inputs: {name} {difference}. Give "
                    "both the same inputs, or explain each separately."
                )
    return {name: array for name, (_, array) in first_given.items()}


def _as_given(value: Any, name: str) -> npt.NDArray[Any]:
    """An input as an array, in its own dtype."""
    integers = read_protocol(value)
    if integers is not None and integers.dtype.kind in "iub":
        return integers
    return as_float_array(value, name)


def _difference(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> str | None:
    """How two arrays differ, None if they are the same bits."""
    for attribute in ("shape", "dtype"):
        if getattr(a, attribute) != getattr(b, attribute):
            return f"has {attribute} {getattr(a, attribute)} and {getattr(b, attribute)}"
    raw = [np.ascontiguousarray(array).reshape(array.size, 1).view(np.uint8) for array in (a, b)]
    places = np.flatnonzero((raw[0] != raw[1]).any(axis=1))
    if not places.size:
        return None
    index = tuple(int(i) for i in np.unravel_index(places[0], a.shape))
    place = f" at [{', '.join(map(str, index))}]" if index else ""
    return f"differs in {places.size} of {a.size} elements, first{place}: {a[index]} and {b[index]}"


def _inputs(op: Op, direction: Direction, inputs: Any) -> Arrays:
    present = {
        name: value for name, value in as_mapping(inputs, "inputs").items() if value is not None
    }
    takes = op.takes(direction)
    if unknown := [name for name in present if name not in takes]:
        advice = did_you_mean(unknown[0], takes, "it takes")
        raise ValueError(f"{op.name} {direction} takes no {quoted(unknown[0])}: {advice}.")
    if missing := [name for name in takes if name not in present and name not in op.optional]:
        raise ValueError(f"{op.name} {direction} needs {missing[0]!r} among its inputs.")
    return {name: op.array(name, present[name]) for name in takes if name in present}


def _params(op: Op, params: Any) -> dict[str, Any]:
    given = as_mapping(params, "params")
    # A dict, as rotary's scaling, is kept as its JSON.
    settings = {n: _text(x) if isinstance(x, dict) and x else x for n, x in given.items()}
    if unknown := [name for name in settings if name not in op.params]:
        advice = did_you_mean(unknown[0], op.params or ("none",), "it has")
        raise ValueError(f"{op.name} has no parameter {quoted(unknown[0])}: {advice}.")
    for name, value in settings.items():
        # An op tells which texts it knows, to whoever gives a truth value: causal=True.
        if isinstance(value, bool | str) and isinstance(op.params[name], bool | str):
            continue
        values = value if isinstance(value, list | tuple) else (value,)
        if not all(number is None or is_number(number) for number in values):
            raise TypeError(f"{name} is {shown(value)}: give a number, or a list of numbers.")
        if any(number is not None and is_huge(number) for number in values):
            raise ValueError(f"{name} is too large: no float holds it.")
    return settings


def is_number(value: Any) -> bool:
    """Whether it is a real number that `float` can convert, or rejects only as too large."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.timedelta64)


def is_huge(value: Any) -> bool:
    """Whether a real number is beyond float's range."""
    try:
        float(value)
    except OverflowError:
        return True
    return False


def _text(setting: dict[str, Any]) -> Any:
    """A dict as a param that is text; as it is, for a message of its own, where JSON has none."""
    try:
        return json.dumps(setting)
    except (TypeError, ValueError):
        return setting
