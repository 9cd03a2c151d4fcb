"""What an op can be asked, and a kernel: the questions that the op takes, the inputs that a kernel
says it takes, and the op's own cases: shapes, integers and params that no signature says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.op import Case, Direction, Op, core
from refkernels.ops.function_formulas import definition

ELEMENTS = (2**14, 2**16, 2**19)  # of all inputs of a case, by the size of a round
Built = tuple[dict[str, Any], dict[str, Any]]  # inputs and params
AXES = frozenset(range(5))  # how many leading axes there may be


def is_question(
    op: Op, direction: Direction, inputs: Mapping[str, Any], params: Mapping[str, Any]
) -> bool:
    """Whether the op takes these shapes and params: a beta2 of 1.007 is refused."""
    try:
        definition(op).question(direction, inputs, params)
    except (ValueError, TypeError):
        return False
    return True


def is_float(array: Any) -> bool:
    return isinstance(array, np.ndarray) and formats.is_one(array.dtype)


def is_whole(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "iu"


@dataclass(frozen=True)
class KernelDomain:
    """The inputs that a kernel takes. `left_out`: optional ones that it does not take; `lengths`:
    the only ones, by letter; `dtypes`: the only formats of an input of integers or 8-bit numbers;
    `shapes`: those of its use, by input, which are asked first; `axes`: the numbers of leading axes
    or, if the op's cases give the shapes, of the first input; `allow_overflow` and `finite`: as for
    `judge`."""

    left_out: frozenset[str] = frozenset()
    lengths: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dtypes: Mapping[str, Sequence[str]] | None = None
    shapes: Mapping[str, Sequence[int]] | None = None
    axes: frozenset[int] = AXES
    allow_overflow: bool | None = None
    finite: bool = False


ANYTHING = KernelDomain()


@with_default_fenv
def cases_of(op: Op, direction: Direction, dtype: str, domain: KernelDomain) -> list[Built]:
    """The inputs and params of an op's cases of the dtype and the direction, or else of the dtype,
    without the inputs that a kernel does not take, and in the formats that it takes."""
    only = domain.dtypes or {}

    def built(case: Case) -> Built:
        arrays, params = case.build(dtype)
        takes = (name for name in op.takes(direction) if name not in domain.left_out)
        return {n: arrays[n] for n in takes if n in arrays}, {**op.params, **params}

    def fits(case: Case) -> bool:
        inputs, params = built(case)
        own = {**params, **{n: a.dtype.name for n, a in inputs.items() if n in only}}
        return all(own.get(name, names[0]) in names for name, names in only.items())

    known = [case for case in op.cases() if not only or fits(case)]
    of_dtype = [case for case in core(known, dtype) if dtype in case.dtypes]
    chosen = [case for case in of_dtype if direction in case.directions]
    chosen = chosen or [case for case in known if dtype in case.dtypes]
    return [built(case) for case in chosen if case.regime != "invalid"]  # may be answered anyhow


def first_axes(inputs: Mapping[str, Any]) -> int:
    """How many axes the first input has, or the first array of a list."""
    value = next(iter(inputs.values()))
    return int(np.ndim(value[0] if isinstance(value, list | tuple) else value))


def elements(inputs: Mapping[str, Any]) -> int:
    """Of all arrays."""
    lists = (value if isinstance(value, list) else [value] for value in inputs.values())
    return sum(np.size(array) for arrays in lists for array in arrays)


def shape_of(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"of {len(value)}"
    return "(" + ", ".join(map(str, value.shape)) + ("," if value.ndim == 1 else "") + ")"


def with_marker(inputs: Mapping[str, Any], before: Any, after: Any) -> dict[str, Any]:
    """The inputs, in which integers equal to a param's old value (labels to ignore) have its new
    value."""
    if type(before) is not int or type(after) is not int:
        return dict(inputs)
    return {
        name: np.where(array == before, array.dtype.type(after), array)
        if isinstance(array, np.ndarray) and array.dtype.kind == "i"
        else array
        for name, array in inputs.items()
    }
