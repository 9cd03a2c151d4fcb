"""The cases of an op, on which the frameworks are measured, as parameters of a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arguments import as_names, as_text
from refkernels.arithmetic import formats
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.judging.challenges import FAMILIES, Drawer
from refkernels.judging.questions import KernelDomain
from refkernels.op import Case, Direction, Op, core
from refkernels.records.words import DIRECTIONS
from refkernels.suggestion import did_you_mean, quoted
from refkernels.testing.assertions import assert_kernel

LEVELS = ("core", "full")
_FEW = 32  # elements of an array that is printed whole


@dataclass(frozen=True)
class KernelCase:
    """One question to a kernel: `inputs` by name, the cotangent included, and `params`.

    The arrays are built on first use, from the seed in the case's name: always the
    same bits. They are read-only: `{name: array.copy()}` for a kernel that writes to its inputs.
    """

    op: Op
    direction: Direction
    dtype: str
    case: Case

    @property
    def __name__(self) -> str:  # pytest's id
        return f"{self.case.name} {self.dtype} {self.direction}"

    def __str__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        """The question, with the numbers of small arrays: what Hypothesis prints of a failure."""
        arrays = [f"{name}={_shown(array)}" for name, array in self.inputs.items()]
        params = [f"{name}={value!r}" for name, value in self._built[1].items()]
        return f"<{self}: {', '.join([*arrays, *params])}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # Hypothesis shows fields instead
        printer.text(repr(self))

    @cached_property
    def _built(self) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
        arrays, params = with_default_fenv(self.case.build)(self.dtype)
        inputs = {name: arrays[name] for name in self.op.takes(self.direction) if name in arrays}
        for array in inputs.values():
            array.flags.writeable = False
        return inputs, {**self.op.params, **params}

    @property
    def inputs(self) -> dict[str, npt.NDArray[Any]]:
        return dict(self._built[0])

    @property
    def params(self) -> dict[str, Any]:
        return dict(self._built[1])

    def check(self, outputs: Any, **demands: Any) -> None:
        """`assert_kernel` of this question: `outputs`, or the kernel, and its demands."""
        __tracebackhide__ = True
        assert_kernel(self.op, self.inputs, outputs, self.params, self.direction, **demands)


@with_default_fenv
def cases(
    op: str | Op,
    dtype: Any = "float32",
    level: str = "core",
    directions: Iterable[Direction] = DIRECTIONS,
) -> list[KernelCase]:
    """The cases of an op, for `pytest.mark.parametrize`, which names each test after its case:

        @pytest.mark.parametrize("case", cases("softmax", directions=["forward"]))
        def test_my_softmax(case):
            case.check(my_softmax(**case.inputs, **case.params))

    op          a name that `refkernels.registry` knows, or an `Op` of your own with cases
    dtype       of the floating inputs, or several
    level       "core": a few cases of each regime, those that `refkernels measure` measures by
                default and large ones; "full": all. Both have, for every op, more rows and a
                longer axis than 16 bits count, and scores that are all far below 0
    directions  "forward", "backward", both by default

    Raises ValueError for an unknown op, dtype, level or direction, and if the op has no such case;
    TypeError for arguments of other types.
    """
    record = registry.get(op)
    if as_text(level, "level") not in LEVELS:
        raise ValueError(f"There is no level {quoted(level)}: {did_you_mean(level, LEVELS)}.")
    selected = list(_questions(record, _as_dtypes(dtype), level, _as_directions(directions)))
    if not selected:
        raise ValueError(f"{record.name} has no case in {dtype}.")
    return selected


def _questions(
    op: Op, dtypes: Iterable[Any], level: str, directions: list[Any]
) -> Iterator[KernelCase]:
    for direction in directions:
        if direction not in DIRECTIONS:
            raise ValueError(
                f"There is no direction {quoted(str(direction))}: give 'forward' or 'backward'."
            )
    for requested in dtypes:
        dtype = formats.get(requested).name
        asked = [direction for direction in op.directions if direction in directions]
        all_cases = op.cases() if level == "full" else core(op.cases(), dtype)
        listed = [case for case in all_cases if dtype in case.dtypes]
        for case in listed:
            for direction in (way for way in asked if way in case.directions):
                yield KernelCase(op, direction, dtype, case)
        for direction in asked if listed else ():
            for case in _drawn(op, direction, dtype):
                yield KernelCase(op, direction, dtype, case)


def _drawn(op: Op, direction: Direction, dtype: str) -> Iterator[Case]:
    """Cases by rules that hold for every op, those of the judge: with the optional inputs, and
    without."""
    challenges = []
    for left_out in dict.fromkeys((frozenset[str](), frozenset(op.optional))):
        drawer, rng = Drawer(op, direction, dtype, KernelDomain(left_out)), np.random.default_rng(0)
        challenges += [*drawer.some(FAMILIES["negative"], rng, 0), *drawer.wide(rng)]
    for number, drawn in enumerate(challenges):
        arrays, params, shown = dict(drawn.inputs), dict(drawn.params), {"number": number}
        name = f"{op.name}/{drawn.family}[number={number},seed=0]"
        build = partial(_given, arrays, params)
        yield Case(name, op.name, drawn.family, shown, 0, build, (dtype,), (direction,))


def _given(arrays: Any, params: Any, dtype: str) -> Any:
    return arrays, params


def _shown(array: npt.NDArray[Any]) -> str:
    """The numbers of a small array, the shape of another."""
    if array.size > _FEW:
        return str(array.shape)
    return " ".join(np.array2string(array, separator=", ", floatmode="unique").split())


def _as_dtypes(value: Any) -> Iterable[Any]:
    single = isinstance(value, str | type | np.dtype) or not isinstance(value, Iterable)
    return (value,) if single else value


def _as_directions(directions: Any) -> list[str]:
    single = isinstance(directions, str)
    return [directions] if single else list(as_names(directions, "directions"))
