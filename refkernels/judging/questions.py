"""What an op can be asked, and a kernel: the questions that the op takes, the inputs that a kernel
says it takes, and the op's own cases: shapes, integers and params that no signature says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.op import Direction, Op, core
from refkernels.ops.function_formulas import definition

ELEMENTS = (2**14, 2**16, 2**19)  # of all inputs of a case, by the size of a round
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


@dataclass(frozen=True, eq=False)
class OpCases:
    """The cases of an op in one direction and dtype, without the inputs that a kernel does not
    take, and in the formats that it takes."""

    op: Op
    direction: Direction
    dtype: str
    domain: KernelDomain = ANYTHING

    @cached_property
    def all(self) -> list[Any]:
        """Those of the dtype and the direction, or else of the dtype."""
        known = [case for case in self.op.cases() if not self.domain.dtypes or self._has(case)]
        matching = [
            case
            for case in core(known, self.dtype)
            if self.dtype in case.dtypes and self.direction in case.directions
        ]
        cases = matching or [case for case in known if self.dtype in case.dtypes]
        return [case for case in cases if case.regime != "invalid"]  # a kernel may answer anything

    def _has(self, case: Any) -> bool:
        """Whether the case has formats that the kernel takes, in its inputs and params."""
        only, (inputs, params) = self.domain.dtypes or {}, self.built(case)
        known = {**params, **{n: a.dtype.name for n, a in inputs.items() if n in only}}
        return all(known.get(name, names[0]) in names for name, names in only.items())

    @with_default_fenv
    def built(self, case: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The inputs and params of a case."""
        arrays, params = case.build(self.dtype)
        takes = self.op.takes(self.direction)
        inputs = {n: arrays[n] for n in takes if n in arrays and n not in self.domain.left_out}
        return inputs, {**self.op.params, **params}


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
