"""Checks of an assertion's limits and dtype, before anything is computed."""

import math
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import BINARY32, Format
from refkernels.op import DTYPES, Direction, Op
from refkernels.question import is_huge, is_number

Array = npt.NDArray[Any]


def limit_of(value: Any, name: str, least: str = ">= 0") -> float:
    """The value as a number >= 0, infinity included, or > 0. Raises TypeError or ValueError."""
    if not is_number(value):
        raise TypeError(f"{name} is of type {_type(value)}: it must be a number {least}.")
    number = float(value) if not is_huge(value) else math.inf if value > 0 else -math.inf
    if not (number > 0.0 or (number == 0.0 and least == ">= 0")):
        raise ValueError(f"{name} is {number:g}: it must be a number {least}.")
    return number


def check_dtype(
    op: Op, direction: Direction, inputs: Mapping[str, Array], outputs: Mapping[str, Array],
    dtype: Any,
) -> None:  # fmt: skip
    """Check that the first output has the given dtype; by default that of an input, or float32 if
    all inputs have 16 bits. The other outputs (statistics, gradients of weights) may have any.

    Raises AssertionError for another dtype, ValueError for a `dtype` that is not one.
    """
    __tracebackhide__ = True
    first = op.names(direction)[0]
    input_formats = {formats.of(array) for name, array in inputs.items() if name not in op.kinds}
    allowed = input_formats if dtype is None else {_format(dtype)}
    if dtype is None and op.any_format:
        return  # operands of low precision do not determine it
    if dtype is None and all(format.storage.itemsize == 2 for format in input_formats):
        allowed = {*input_formats, BINARY32}
    if first in outputs and formats.of(outputs[first]) not in allowed:
        actual = outputs[first].dtype
        where = "" if dtype is not None else " where the inputs are " + _joined(input_formats)
        cure = (
            f"say dtype='{actual}' if that is meant" if dtype is None else f"not {_joined(allowed)}"
        )
        raise AssertionError(f"{op.name}'s {first} is {actual}{where}: {cure}.")


def _format(dtype: Any) -> Format:
    """The format of a name, of a NumPy dtype or of a torch dtype."""
    text = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
    name = str(text).rpartition(".")[2]
    if name not in DTYPES:
        raise ValueError(f"dtype is {quoted(dtype)}: choose one of {', '.join(DTYPES)}.")
    return formats.get(name)


def _joined(chosen: set[Format]) -> str:
    return " and ".join(sorted(format.name for format in chosen))


def _type(value: Any) -> str:
    return type(value).__name__


def quoted(value: Any) -> str:
    """A value as an error quotes it: a string itself, the type of anything else."""
    return repr(value) if isinstance(value, str) else f"of type {_type(value)}"
