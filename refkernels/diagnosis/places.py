"""The evidence in where an output is wrong, whatever its values there are.

A wrong NaN proves that a kernel is wrong, not why. A cause that marks m of n distinct places, of
which k are the wrong ones, is told from chance by C(n, k) / C(m, k): any k places would all be
among the m with the inverse of that probability. One wrong argument among thirteen is 3.7 bits,
however often the input repeats it.
"""

from __future__ import annotations

import math

import numpy as np

from refkernels.diagnosis import units
from refkernels.diagnosis.problem import Array, Doubles, Problem


def bits(places: int, marked: int, wrong: int) -> float:
    """log2 (C(places, wrong) / C(marked, wrong)), for wrong <= marked <= places."""
    return (_log2_choices(places, wrong) - _log2_choices(marked, wrong)) if wrong else 0.0


def _log2_choices(total: int, chosen: int) -> float:
    natural_log = math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)
    return natural_log / math.log(2.0)


def by_key(keys: Doubles, marked: Array, wrong: Array) -> float:
    """The bits where equal keys are one place; every wrong place is marked."""
    numbers = [np.unique(keys[mask]).size for mask in (~marked, marked, marked & wrong)]
    return bits(numbers[0] + numbers[1], numbers[1], numbers[2])


def by_unit(problem: Problem, output: str, wrong: Array, marked: Array | None = None) -> float:
    """The bits of a cause that marks exactly the wrong elements, or more: their units are the
    places."""
    counted = units.of(problem, output)
    masks = (wrong if marked is None else marked, wrong)
    numbers = [int(np.count_nonzero(counted.any(counted.chosen(mask)))) for mask in masks]
    return bits(counted.any(counted.chosen(wrong)).size, *numbers)


def shared(problem: Problem, output: str, wrong: Array, total: float) -> Doubles:
    """The bits of each element, of which the counted wrong ones earn `total` together."""
    number = int(np.count_nonzero(units.of(problem, output).chosen(wrong)))
    return np.full(wrong.shape, total / max(number, 1))
