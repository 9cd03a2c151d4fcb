"""How well what a kernel said fits an answer: the verdict that it would get."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.diagnosis.problem import Answer, Problem
from refkernels.metrology import judge

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Fit:
    """One output against an answer: `record` is what `judge` says of it."""

    output: str
    record: dict[str, Any]
    elements: int
    equal: int  # bits equal to the correctly rounded answer, where that is certain

    @property
    def verdict(self) -> str:
        return str(self.record["verdict"])

    @property
    def over_bound(self) -> float:
        """The largest error / bound."""
        return as_float(self.record["bound"]["max_ratio"])

    @property
    def over_plain(self) -> float:
        """RMS error over that of the plain algorithm."""
        return as_float(self.record["plain"]["ratio"])

    @property
    def ordinary(self) -> bool:
        """Whether this is what rounding makes of the answer: inside the bound in every element,
        and no further from it than a few times the plain algorithm."""
        fine = self.verdict in ("rounding", "correctly_rounded")
        return fine and "unusual" not in self.record["flags"]

    @property
    def exact(self) -> bool:
        """Whether every bit is that of the correctly rounded answer."""
        return self.elements > 0 and self.equal == self.elements


def fit(
    problem: Problem,
    output: str,
    got: Array,
    answer: Answer,
    condition: npt.NDArray[np.float64] | None = None,
) -> Fit | None:
    """One output against an answer; None where the answer has none, or one of another shape."""
    reference = answer.reference.get(output)
    if reference is None or reference.shape != got.shape:
        return None
    record: dict[str, Any] = {"format": formats.of(got).name}
    record |= judge(
        problem.op if answer.invariant else replace(problem.op, invariants=()),
        problem.direction,
        output,
        got,
        reference,
        bound=answer.bound[output],
        condition=condition,
        plain=answer.plain.get(output),
        inputs=problem.inputs,
        params=problem.params,
    )
    rounded, certain = reference.round(formats.of(got))
    same = _same_bits(got, rounded)
    if answer is not problem.truth:  # a hypothesis in float64 has bits by its own roundings
        same &= certain
    return Fit(output, record, got.size, int(np.count_nonzero(same)))


def equal_bits(a: Array, b: Array) -> int:
    """How many elements have the same bits; any NaN equals any NaN. Same shape and dtype."""
    return int(np.count_nonzero(_same_bits(a, b)))


def _same_bits(a: Array, b: Array) -> npt.NDArray[np.bool_]:
    bits = formats.of(a).bits_dtype
    same = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    result: npt.NDArray[np.bool_] = same.reshape(a.shape) | (np.isnan(a) & np.isnan(b))
    return result


def as_float(value: Any) -> float:
    """A number of a record, whose infinities are words; 0 where there is none."""
    return 0.0 if value is None else float(value)
