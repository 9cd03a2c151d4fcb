"""What an assertion is asked, checked before anything is computed: op, inputs, params, limits."""

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arguments import as_mapping
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.formats import BINARY32, Format
from refkernels.op import DIRECTIONS, DTYPES, Direction, Op

Array = npt.NDArray[Any]


def op_of(op: Any, direction: Any) -> Op:
    """The op's record. Raises TypeError or ValueError where there is none, or no such direction."""
    if not isinstance(op, str | Op):
        raise TypeError(f"op is of type {_type(op)}: give an op's name, such as 'layernorm'.")
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        raise ValueError(f"direction is {said(direction)}: it must be 'forward' or 'backward'.")
    return registry.get(op) if isinstance(op, str) else op


def inputs_of(op: Op, direction: Direction, inputs: Any) -> dict[str, Array]:
    """The inputs as arrays, by name, in the op's order."""
    if not isinstance(inputs, Mapping):
        takes = ", ".join(op.takes(direction))
        raise TypeError(f"inputs must map names to arrays; {op.name} {direction} takes {takes}.")
    inputs = as_mapping(inputs, "inputs")
    given = {name for name, value in inputs.items() if value is not None}
    unknown = given - set(op.takes(direction))
    missing = set(op.takes(direction)) - set(op.optional) - given
    if unknown or missing:
        raise ValueError(
            f"{op.name} {direction} takes {', '.join(op.takes(direction))} (optional: "
            f"{', '.join(op.optional) or 'none'}); unknown here: {_listed(unknown)}; "
            f"missing: {_listed(missing)}."
        )
    return {
        name: as_float_array(inputs[name], name) for name in op.takes(direction) if name in given
    }


def params_of(op: Op, params: Any) -> dict[str, Any]:
    """The params, by name: numbers, or lists of numbers."""
    params = as_mapping(params, "params")
    if strange := set(params) - set(op.params):
        raise ValueError(
            f"{op.name} has no parameter {_listed(strange)}: its own are {_listed(set(op.params))}."
        )
    for name, value in params.items():
        several = value if isinstance(value, list | tuple) else (value,)
        if isinstance(op.params[name], str) and isinstance(value, str):
            continue
        if not all(one is None or _is_number(one) for one in several):
            raise TypeError(f"{name} is {said(value)}: give a number, or a list of numbers.")
        if any(one is not None and _is_huge(one) for one in several):
            raise ValueError(f"{name} is too large: no float holds it.")
    return params


def limit_of(value: Any, name: str) -> float:
    """A number >= 0, infinity included."""
    if not _is_number(value):
        raise TypeError(f"{name} is of type {_type(value)}: it must be a number >= 0.")
    number = float(value) if not _is_huge(value) else math.inf if value > 0 else -math.inf
    if not number >= 0.0:
        raise ValueError(f"{name} is {number:g}: it must be a number >= 0.")
    return number


def check_dtype(
    op: Op, direction: Direction, inputs: Mapping[str, Array], outputs: Mapping[str, Array],
    dtype: Any,
) -> None:  # fmt: skip
    """The first output has the dtype that was asked for; or that of an input, or float32 where all
    inputs have 16 bits. The others (statistics, gradients of weights) are free.

    Raises AssertionError where it has another, ValueError for what is no dtype.
    """
    __tracebackhide__ = True
    first = op.names(direction)[0]
    given = {formats.of(array) for array in inputs.values()}
    wanted = given if dtype is None else {_format(dtype)}
    if dtype is None and all(one.storage.itemsize == 2 for one in given):
        wanted = {*given, BINARY32}
    if first in outputs and formats.of(outputs[first]) not in wanted:
        got = outputs[first].dtype
        where = "" if dtype is not None else " where the inputs are " + _and(given)
        cure = f"say dtype='{got}' if that is meant" if dtype is None else f"not {_and(wanted)}"
        raise AssertionError(f"{op.name}'s {first} is {got}{where}: {cure}.")


def _is_number(value: Any) -> bool:
    """Whether it is a real number that can be read."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool | np.timedelta64):
        return False
    try:
        _is_huge(value)
    except Exception:  # of a class of the caller's own
        return False
    return True


def _is_huge(value: Any) -> bool:
    try:
        float(value)
    except OverflowError:
        return True
    return False


def _format(dtype: Any) -> Format:
    """The format of a name, a NumPy or a torch dtype."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
    name = str(name).rpartition(".")[2]
    if name not in DTYPES:
        raise ValueError(f"dtype is {said(dtype)}: choose one of {', '.join(DTYPES)}.")
    return formats.get(name)


def _and(given: set[Format]) -> str:
    return " and ".join(sorted(one.name for one in given))


def _listed(names: set[Any]) -> str:
    return ", ".join(sorted(map(str, names))) or "none"


def _type(value: Any) -> str:
    return type(value).__name__


def said(value: Any) -> str:
    """A value as an error quotes it: a text as it is, of anything else the type."""
    return repr(value) if isinstance(value, str) else f"of type {_type(value)}"
