"""The check of a C function's abi against its op, before anything runs.

    float32* x, float32* y[x_rows], float32 eps, int64 x_last

A pointer is one of the op's inputs or outputs. A number is one of its params or a length: `n`, or
NAME_size, NAME_rows, NAME_last, NAME_0, ... of an input (`remote/kernel_adapter.py`, which would
refuse case after case). A name that no case has is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refkernels.suggestion import did_you_mean, quoted

if TYPE_CHECKING:
    from refkernels.op import Op
    from refkernels.records.words import Direction

NUMBERS = ("int32", "int64", "float32", "float64")
_ARGUMENT = re.compile(r"(\w+)(\s*\*\s*|\s+)(\w+)\s*(?:\[([\w\s]*)\])?")
_FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
_ARRAYS = (*_FLOATS, "int8", "int16", "int32", "int64", "uint8", "bool")
_C_NAMES = {"float": "float32", "double": "float64", "int": "int32", "long": "int64"}


class KernelError(ValueError):
    """The name is not a kernel that can be run: one sentence, with a suggested fix."""


Argument = tuple[str, bool, str, str | None]


def read(abi: str, op: Op, direction: Direction, kernel: str) -> list[Argument]:
    """Each argument's type, whether it is a pointer, its name, and the lengths in its brackets. An
    empty abi has none. Raises KernelError for an argument that is none, and for a name or type that
    no case has."""
    inputs, outputs = op.takes(direction), op.names(direction)
    pointed_to = set()
    arguments: list[Argument] = []
    if not abi:
        return arguments
    for part in (part.strip() for part in abi.split(",")):
        match = _ARGUMENT.fullmatch(part)
        if match is None or (match[4] is not None and "*" not in match[2]):
            raise KernelError(
                f"{quoted(part)} in the abi of {kernel} is not an argument: write TYPE* NAME for "
                "an array and TYPE NAME for a number"
            )
        dtype, between, name, shape = match.groups()
        pointer = "*" in between
        _check_type(dtype, part, _ARRAYS if pointer else NUMBERS)
        arguments.append((dtype, pointer, name, shape))
        if pointer:
            pointed_to.add(name)
            if name not in (*inputs, *outputs):
                raise KernelError(
                    f"the abi of {kernel} has an array {quoted(name)}, and {op.name} {direction} "
                    f"takes {', '.join(inputs)} and returns {', '.join(outputs)}"
                )
        elif name not in op.params and not _is_length(name, inputs):
            raise KernelError(
                f"the abi of {kernel} has a number {quoted(name)}, which is neither a param of "
                f"{op.name} ({', '.join(op.params) or 'it has none'}) nor a length {_LENGTHS}"
            )
        for length in (shape or "").split():
            if not _is_length(length, inputs):
                raise KernelError(
                    f"{quoted(length)} in {quoted(part)} is not a length: write one {_LENGTHS}"
                )
    if not pointed_to & set(outputs):
        raise KernelError(
            f"the abi of {kernel} has no output: {op.name} {direction} returns "
            f"{', '.join(outputs)}, so add an argument such as float32* {outputs[0]}"
        )
    return arguments


_LENGTHS = "(n, or x_size, x_rows, x_last, x_0, x_1, ... of an input x)"


def _check_type(dtype: str, part: str, types: tuple[str, ...]) -> None:
    if dtype in types:
        return
    meant = _C_NAMES.get(dtype, dtype.removesuffix("_t"))
    hint = f"write {meant}" if meant in types else did_you_mean(dtype, types, "write one of")
    raise KernelError(f"{quoted(dtype)} in {quoted(part)} is not a type here: {hint}")


def _is_length(name: str, inputs: Sequence[str]) -> bool:
    array, _, which = name.rpartition("_")
    return name == "n" or (
        array in inputs and (which in ("size", "rows", "last") or which.isdecimal())
    )
