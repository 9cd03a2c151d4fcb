"""Group norm with another number of groups: the size of a group in its place, or a usual one."""

from __future__ import annotations

from collections.abc import Iterator

from refkernels.diagnosis.hypothesis import VALUE, Variant
from refkernels.diagnosis.problem import Arrays, Problem

_PARAM = "num_groups"
_USUAL = (1, 2, 4, 8, 16, 32)


def other_numbers(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The op with every such number that divides the channels."""
    asked, channels = int(problem.params[_PARAM]), problem.inputs["x"].shape[1]
    numbers = dict.fromkeys((channels // asked, channels, *_USUAL))
    possible = [number for number in numbers if 0 < number != asked and channels % number == 0]
    for number in possible:
        details = {"param": _PARAM, "value": number, "asked": asked}
        answer = problem.ask(params={_PARAM: number})
        yield Variant(VALUE, details, answer, trials=len(possible))
