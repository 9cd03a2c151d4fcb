"""Arithmetic in 16 bits around sums in any order: rounded after every operation, as a kernel is
that computes in its arrays' format.

Each row's sum is solved for: the number of the format, near the right one, with which most elements
have the kernel's bits. What the forward pass saved is right, but for one rounding. A row earns the
bits that the elements save over the right answer, less those that tell its sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, Format, working_format
from refkernels.contexts.composed import Composed
from refkernels.contexts.graph import Node, in_order
from refkernels.contexts.working import RoundedArithmetic
from refkernels.diagnosis import evidence, recovered
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Claim
from refkernels.diagnosis.problem import READABLE, Arrays, Doubles, Problem
from refkernels.diagnosis.recovered import Recovered
from refkernels.metrology import ulp

_ELEMENTS = 1 << 9, READABLE  # that are read, of some rows first
_STEPS = range(-40, 41)  # spacings between a sum and the right one
_TIES = 2.0**-8  # the share of saved numbers so near a tie that another exp rounds them otherwise


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """For each output that is not ordinary, the first form whose sums can be solved for."""
    if problem.format not in (BINARY16, BFLOAT16) or problem.size > READABLE:
        return
    for name, got in outputs.items():
        seen, lengths = evidence.observe(problem, got, fits[name]), np.zeros(got.size)
        lengths[seen.units.places] = seen.lengths
        forms = () if fits[name].ordinary else problem.definition.of(problem.direction).forms
        for form in forms:
            some, every = (Screen(problem, {name: got}, form, elements=n) for n in _ELEMENTS)
            shown = _shown(some, name, lengths) and _shown(every, name, lengths)
            if shown:
                yield recovered.claim(problem, name, got, every, shown)
                break


def _shown(screen: Screen, name: str, lengths: Doubles) -> Recovered | None:
    """The bits of each row: its elements' code lengths, where no wider arithmetic gives them with
    the same sums, less those of its sums; an element that is not equal costs what a row may earn.
    None where too few are equal."""
    if not screen.has_a_program:
        return None
    program, seen, format = screen.program, screen.observed[name], screen.problem.format
    known = {n: _rounded(screen.value_of(n), format) for n in program.of("saved")}
    live = in_order([node for node in program.graph.outputs if node], {}, known)
    sums = [node for node in live if node.op in ("sum", "mean", "norm")]
    _, owner = recovered.shared(screen, name)
    if owner is None or not sums or any(math.prod(n.shape) != owner.max() + 1 for n in sums):
        return None

    def computed(values: Mapping[Node, Doubles], xp: RoundedArithmetic) -> Doubles:
        numbers = {**known, **values}
        edits = recovered.given([*numbers], numbers.values())
        return to_float64(screen.computed(program.graph, xp, edits)[name])

    best: dict[Node, Doubles] = {}
    for node in sums:
        right, most = _rounded(screen.value_of(node), format), np.full(math.prod(node.shape), -1.0)
        for step in sorted(_STEPS, key=abs):
            number = _rounded(right + step * ulp(right, format), format)
            equal = computed({**best, node: number}, Composed(format)) == seen.got
            count = np.bincount(owner, equal, most.size)
            better = np.reshape(count > most, node.shape)
            best[node] = np.where(better, number, best.get(node, number))
            most = np.maximum(most, count)
    model = computed(best, Composed(format))
    wide = computed(best, RoundedArithmetic(working_format(format), format))
    equal = model == seen.got
    if np.mean(equal) < 1.0 - _TIES:
        return None
    told = np.where(model != wide, lengths[screen.places(name)], 0.0)
    bits = np.bincount(owner, np.where(equal, told, -recovered.CAP))
    bits = np.minimum(bits - len(sums) * math.log2(len(_STEPS)), recovered.CAP)
    return Recovered("narrow_intermediates", {"format": format.name}, bits, owner, 1)


def _rounded(values: Any, format: Format) -> Doubles:
    return to_float64(formats.round_to(np.asarray(values, float), format))
